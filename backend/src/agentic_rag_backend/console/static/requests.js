// Requests to the API. The key is in memory, and in the tab's storage if a person wants that.

import { signal } from "./core.js";

const STORED = "agentic-rag-key";
/** Who is signed in: `{key, tenant: {id, name} | null, operator}`, or null. `refusal` says why a key is no longer used. */
export const session = signal(null);
export const refusal = signal(null);
export const storedKey = () => sessionStorage.getItem(STORED);

/** Sign in with a key. Throws a Problem if the server refuses it. */
export async function signIn(key, remember) {
  session.value = { key, tenant: null, operator: false };
  try {
    const tenant = (await api("/tenants/me")).data;
    session.value = { key, tenant, operator: false };
  } catch (problem) {
    if (problem.status !== 422) {
      session.value = null;
      throw problem;
    }
    session.value = { key, tenant: null, operator: true }; // the operator's key names a tenant in a header
  }
  refusal.value = null;
  if (remember) sessionStorage.setItem(STORED, key);
}

/** Forget the key. */
export function signOut(problem = null) {
  sessionStorage.removeItem(STORED);
  refusal.value = problem;
  session.value = null;
}

/** A refused or failed request, with the members of its problem document. */
export class Problem extends Error {
  constructor(body) {
    super(body.detail);
    Object.assign(this, { title: "Error", code: "", status: 0, requestId: "", errors: [] }, body);
  }
}

/** Send a request to the API. Return the response; throw a Problem. `json`: the body. */
export async function request(path, { json, headers = {}, ...options } = {}) {
  const signedIn = session.peek();
  const sent = { ...headers, ...(signedIn && { Authorization: `Bearer ${signedIn.key}` }) };
  if (signedIn?.operator && signedIn.tenant && !path.startsWith("/tenants")) sent["X-Tenant-Id"] = signedIn.tenant.id;
  if (json !== undefined) Object.assign(options, { method: options.method ?? "POST", body: JSON.stringify(json) });
  if (json !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`../api/v1${path}`, { ...options, headers: sent, cache: "no-store", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ title: "No connection", code: "no_connection", detail: "The server does not respond. Start it with: agentic-rag serve" });
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({ title: response.statusText, detail: `The server answered with ${response.status}.` }));
  const problem = new Problem({ ...body, status: response.status });
  if (response.status === 401 && session.peek() === signedIn) signOut(problem);
  throw problem;
}

/** Send a request. Return `data` and `meta` of the response. */
export async function api(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? { data: null, meta: {} } : response.json();
}

/** Yield the events of a stream as `{name, data}`. An event `error` throws its Problem. */
export async function* events(path, options) {
  const response = await request(path, options);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
      if (!field("data")) continue;
      const event = { name: field("event"), data: JSON.parse(field("data")) };
      if (event.name === "error") throw new Problem(event.data);
      yield event;
    }
  }
}

/** Let the operator look at a tenant, or at none. */
export function actFor(tenant) {
  session.value = { ...session.peek(), tenant };
}
