// The frame of the console: signing in, navigation, the theme, and the view that the address names.

import { append, effect, html, route, signal } from "./core.js";
import { refusal, session, signIn, signOut, storedKey } from "./requests.js";
import { errorBox, shortId } from "./widgets.js";

const VIEWS = {
  overview: ["Overview", () => import("./overview.js")],
  documents: ["Documents", () => import("./documents.js")],
  ask: ["Ask", () => import("./ask.js")],
  jobs: ["Jobs", () => import("./jobs.js")],
  themes: ["Themes", () => import("./themes.js")],
  graph: ["Graph", () => import("./graph.js")],
  evaluation: ["Evaluation", () => import("./evaluation.js")],
  requests: ["Requests", () => import("./explorer.js")],
  tenants: ["Tenants", () => import("./tenants.js")],
};
/** Addresses without a place of their own in the navigation. `d` is that of permalinks. */
const INNER = { d: ["documents", () => import("./document.js")] };
const OPERATOR = ["tenants"];

function nameView({ path }, { tenant }) {
  if (!tenant) return "tenants";
  return path[0] in VIEWS || path[0] in INNER ? path[0] : "overview";
}

// ---- Theme

const THEME = "agentic-rag-theme";
const theme = signal(localStorage.getItem(THEME) ?? "system");
effect(() => {
  document.documentElement.dataset.theme = theme.value;
  localStorage.setItem(THEME, theme.value);
});
const themeSwitch = () => html`<label class="field"><span>Theme</span><select value=${() => theme.value} onchange=${(event) => (theme.value = event.target.value)}>
  ${["system", "light", "dark"].map((name) => html`<option value=${name}>${name}</option>`)}</select></label>`;

// ---- Signing in

function loginPage() {
  const [failure, busy] = [signal(refusal.peek()), signal(false)];
  const submit = async (event) => {
    event.preventDefault();
    const { key, remember } = event.target.elements;
    busy.value = true;
    failure.value = null;
    try {
      await signIn(key.value.trim(), remember.checked);
    } catch (problem) {
      failure.value = problem;
    }
    busy.value = false;
  };
  return html`<main class="login stack"><div class="brand"><img src="./icon.svg" alt="" width="20" height="20">agentic-rag-backend</div>
    <h1>Console</h1>
    <form class="card stack" onsubmit=${submit}>
      <label class="field"><span>Key of a tenant, or the operator's key</span>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck="false" required autofocus></label>
      <label class="row small"><input type="checkbox" name="remember"> Keep the key in this tab until it is closed</label>
      <div class="row"><button class="main" type="submit" disabled=${() => busy.value}>Open</button></div>
      <div role="status">${() => failure.value && errorBox(failure.value)}</div>
    </form>
    <p class="small soft">The key is sent only to this server, in a header. A local server writes its first key to <code>credentials.json</code> in its data folder.
      ${route.peek().path[0] === "d" && " This address names a passage of a document. The key of its tenant opens it."}</p></main>`;
}

// ---- Frame

function frame() {
  const name = signal("");
  effect(() => (name.value = nameView(route.value, session.peek())));
  const place = () => INNER[name.value]?.[0] ?? name.value;
  const link = ([own, [label]]) => html`<a href=${`#/${own === "overview" ? "" : own}`} aria-current=${() => (place() === own ? "page" : null)}>${label}</a>`;
  const visible = Object.entries(VIEWS).filter(([own]) => (OPERATOR.includes(own) ? session.value.operator : session.value.tenant));
  return html`<a class="skip" href="#main" onclick=${(event) => (event.preventDefault(), document.querySelector("main").focus())}>Skip to content</a>
    <div class="frame"><header class="rail"><div class="brand"><img src="./icon.svg" alt="" width="20" height="20">Console</div>
      <nav aria-label="Views">${visible.map(link)}</nav>
      <div class="account"><div>${() => account(session.value)}</div>${themeSwitch()}<button type="button" onclick=${() => signOut()}>Sign out</button></div></header>
    <main id="main" tabindex="-1">${() => show(name.value)}</main></div>`;
}

const account = ({ tenant, operator }) => [
  html`<div class="soft">${operator ? "Operator" : "Tenant"}</div>`,
  tenant && html`<div><strong>${tenant.name}</strong><br>${shortId(tenant.id)}</div>`,
];

/** Return the element of a view. Its module is loaded when it is shown for the first time. */
function show(name) {
  const module = signal(null);
  const [place, load] = INNER[name] ?? [name, VIEWS[name][1]];
  document.title = `${VIEWS[place][0]} · Console`;
  load().then(
    (loaded) => (module.value = loaded),
    (error) => (module.value = { view: () => errorBox(error) }),
  );
  return html`<div class="view">${() => {
    let content = html`<p class="loading" role="status">Loading …</p>`;
    const { view } = module.value ?? {};
    if (view) effect(() => (content = view()), false); // what a view reads at first does not build it again
    return content;
  }}</div>`;
}

const signedIn = signal(false);
effect(() => (signedIn.value = session.value !== null && (session.value.tenant !== null || session.value.operator)));
const stored = storedKey();
if (stored) await signIn(stored, true).catch((problem) => signOut(problem));
append(document.body, () => (signedIn.value ? frame() : loginPage()));
