// Any request to the API: its routes by the description of the API, the key of this tab, and the response.

import { effect, html, route, signal } from "./core.js";
import { request } from "./requests.js";
import { requestCode } from "./ask_actions.js";
import { action, badge, duration, loaded, openDialog, resource } from "./widgets.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const BASE = "/api/v1";

export function view() {
  const description = resource(readDescription);
  return html`<div class="head"><h1>Requests</h1><span class="soft">Every request uses the key of this tab.</span><span class="end"><a href="../api/v1/docs" target="_blank" rel="noopener">API documentation</a></span></div>
    <div class="view">${loaded(description, (routes) => explorer(routes))}</div>`;
}

/** Read the routes below the base path, with their parameters and examples. */
async function readDescription(abort) {
  const response = await request("/openapi.json", { signal: abort });
  const { paths, components } = await response.json();
  return Object.entries(paths).filter(([path]) => path.startsWith(BASE)).flatMap(([path, methods]) => METHODS.filter((method) => method in methods).map((method) => ({
    method: method.toUpperCase(),
    path: path.slice(BASE.length),
    ...methods[method],
    parameters: (methods[method].parameters ?? []).filter((parameter) => parameter.in !== "header"),
    example: exampleOf(methods[method].requestBody, components.schemas),
  })));
}

function exampleOf(body, schemas) {
  const media = body?.content["application/json"];
  if (!media) return null;
  const schema = media.schema.$ref ? schemas[media.schema.$ref.split("/").at(-1)] : media.schema;
  return media.example ?? schema?.examples?.[0] ?? {};
}

function explorer(routes) {
  const [filter, chosen] = [signal(""), signal(null)];
  const name = (item) => `${item.method} ${item.path}`;
  effect(() => (chosen.value = routes.find((item) => name(item) === route.value.query.get("route")) ?? routes.find((item) => name(item) === "GET /status")));
  const visible = () => routes.filter((item) => `${name(item)} ${item.summary}`.toLowerCase().includes(filter.value));
  return html`<div class="side"><nav class="sticky tight" aria-label="Routes"><input type="search" aria-label="Filter routes" placeholder="Filter routes" oninput=${(event) => (filter.value = event.target.value.trim().toLowerCase())}>
    <div>${() => html`<ul class="plainlist">${visible().map((item) => html`<li><a class="theme" href=${`#/requests?${new URLSearchParams({ route: name(item) })}`} aria-current=${() => (chosen.value === item ? "true" : null)}><span class="mono">${name(item)}</span><br><span class="soft">${item.summary}</span></a></li>`)}</ul>`}</div></nav>
    <div>${() => chosen.value && requestForm(chosen.value)}</div></div>`;
}

function requestForm(item) {
  const reply = signal(null);
  const fields = new Map();
  let body = null;
  const build = () => {
    const value = (parameter) => fields.get(parameter.name).value.trim();
    const path = item.parameters.filter((parameter) => parameter.in === "path").reduce((text, parameter) => text.replace(`{${parameter.name}}`, encodeURIComponent(value(parameter))), item.path);
    const query = new URLSearchParams(item.parameters.filter((parameter) => parameter.in === "query" && value(parameter)).map((parameter) => [parameter.name, value(parameter)]));
    return { path: `${path}${query.size ? `?${query}` : ""}`, json: body ? JSON.parse(body.value) : undefined };
  };
  const send = async () => {
    const { path, json } = build();
    const begin = performance.now();
    const response = await request(path, { method: item.method, json });
    reply.value = { status: response.status, time: performance.now() - begin, text: await readReply(response) };
  };
  const input = (parameter) => html`<label class="field"><span>${parameter.name}${parameter.required ? " (required)" : ""}${parameter.description && `: ${parameter.description}`}</span><input ref=${(element) => fields.set(parameter.name, element)}></label>`;
  return html`<section class="card stack"><div><h2 class="mono">${item.method} ${item.path}</h2><p>${item.description ?? item.summary}</p></div>
    ${item.parameters.map(input)}
    ${item.example && html`<label class="field"><span>Body (JSON)</span><textarea class="mono" rows="8" spellcheck="false" value=${JSON.stringify(item.example, null, 2)} ref=${(element) => (body = element)}></textarea></label>`}
    ${item.method === "DELETE" && html`<p class="small">${badge("stale")} This request changes data at once.</p>`}
    <div class="row">${action("Send", send, "main")}${action("curl · Python", () => {
      const { path, json } = build();
      openDialog("The same request", () => requestCode(path, json, item.method));
    })}</div>
    <div aria-live="polite">${() => reply.value && html`<p>${badge("ok")} · ${reply.value.status} <span class="soft">after ${duration(reply.value.time)}</span></p><pre tabindex="0">${reply.value.text}</pre>`}</div></section>`;
}

async function readReply(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!/json|text|xml/.test(type)) return `${type}, ${(await response.blob()).size} bytes`;
  const text = await response.text();
  return type.includes("application/json") ? JSON.stringify(JSON.parse(text), null, 2).slice(0, 200000) : text.slice(0, 200000);
}
