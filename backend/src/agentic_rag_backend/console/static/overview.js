// What the tenant has, whether everything works, what is stale, flags, and usage.

import { address, html, route, go, signal } from "./core.js";
import { api, session } from "./requests.js";
import { action, ago, badge, bytes, decimal, empty, facts, figures, jobLine, loaded, number, plural, resource, shortId, table, words } from "./widgets.js";

const DOCUMENT_STATES = ["ready", "partial", "pending", "processing", "failed", "unreadable", "cancelled", "deleting"];

export function view() {
  const status = resource(async (abort) => {
    const [own, health] = await Promise.all([api("/status", { signal: abort }), readHealth(abort)]);
    return { ...own.data, health };
  });
  return html`<div class="head"><h1>${() => session.value?.tenant?.name}</h1>${() => summary(status.data.value)}
      <span class="end">${action("Refresh", status.reload)}</span></div>
    ${loaded(status, (data) => html`<div class="columns"><div class="stack">${contents(data)}${themes(data, status.reload)}${models(data)}</div><div class="stack">${health(data)}</div></div>`)}
    <div class="stack lower">${usage()}${flags()}</div>`;
}

/** Return the state of stores and models. The response is 503 while a store is away. */
async function readHealth(abort) {
  const response = await fetch("../health/ready", { signal: abort, cache: "no-store" });
  return response.json();
}

const summary = (data) => data && html`<span>${badge(data.health.status)}</span><span class="soft">version ${data.version}, ${data.profile} profile</span>`;

function contents({ counts, warnings }) {
  const rows = DOCUMENT_STATES.filter((state) => counts[`documents_${state}`] > 0);
  return html`<section class="card"><h2>Contents</h2>
    ${figures([["documents", number(counts.documents)], ["chunks", number(counts.chunks)], ["entities", number(counts.entities)], ["relationships", number(counts.relationships)], ["mentions", number(counts.mentions)]])}
    ${rows.length === 0 && empty("There are no documents yet. Drop files under Documents, or:", "agentic-rag ingest FOLDER")}
    <ul class="plainlist row">${rows.map((state) => html`<li><a href=${address("documents", { state })}>${badge(state)} ${number(counts[`documents_${state}`])}</a></li>`)}</ul>
    ${warnings.map((text) => html`<p class="small">${badge("degraded")} ${text}</p>`)}</section>`;
}

function health({ health: { stores, models }, stores: kinds, workers, queue }) {
  const parts = { ...stores, ...models };
  const kind = { catalogue: kinds.catalogue, graph: kinds.graph, vectors: kinds.vectors, blobs: kinds.originals };
  const rows = Object.entries(parts).map(([name, state]) => ({ name, state }));
  return html`<section class="card"><h2>Health</h2>${table([
    { title: "Part", cell: ({ name }) => html`${words(name)} <span class="soft">${kind[name]}</span>` },
    { title: "State", cell: ({ state }) => [badge(state === "ok" ? "ok" : "unavailable"), state !== "ok" && html`<div class="small">${state}</div>`] },
  ], rows)}
  <p class="small soft">${workers ? `${plural(workers.alive, "worker")} for jobs` : ""}${queue ? `, ${JSON.stringify(queue)}` : ""}</p></section>`;
}

function themes({ communities, raptor }, reload) {
  return html`<section class="card"><h2>Themes</h2><div class="stack">
    ${themeIndex("Communities", communities, "/admin/communities/rebuild", reload, "themes")}
    ${themeIndex("RAPTOR tree", raptor, "/admin/raptor/rebuild", reload)}</div></section>`;
}

/** An index of themes: whether it is stale, and the button that builds it again. */
function themeIndex(title, { generation, stale, built_at: builtAt }, path, reload, place) {
  const job = signal(null);
  const rebuild = async () => (job.value = (await api(path, { json: {} })).data.job_id);
  const state = generation === 0 ? "not built" : stale ? "stale" : "ready";
  return html`<div class="row spread"><div>${place ? html`<a href=${address(place)}>${title}</a>` : title} ${badge(state)}
      <div class="small soft">${generation ? html`generation ${generation}, built ${ago(builtAt)}.` : "Searches work without it."}${generation && stale ? " Documents have changed since." : ""}</div></div>
    <div>${() => (job.value ? jobLine(job.value, reload) : stale && action(generation ? "Rebuild" : "Build", rebuild))}</div></div>`;
}

function models({ models: own, model_settings: settings, calibration, ocr }) {
  return html`<section class="card"><h2>Models</h2>${facts([
    ["Embedder", html`${calibration.encoder ?? own.embedder} <span class="soft small">${own.embedder}</span>`],
    ["Language model", own.llm === "extractive" ? "none: answers quote the documents" : own.llm],
    ["Extraction", own.extraction],
    ["OCR", ocr.available ? `${ocr.engine}, ${ocr.languages.join(", ")}` : ocr.reason],
    ["Request limit", `${settings.request_timeout_s} s`],
  ])}</section>`;
}

// ---- Flags

function flags() {
  const list = resource(async (abort) => (await api("/features", { signal: abort })).data);
  const set = async (name, value) => {
    await api("/features", { method: "PATCH", json: { [name]: value } });
    await list.reload();
  };
  return html`<section class="card"><h2>Flags</h2>${loaded(list, (rows) => table([
    { title: "Flag", cell: (flag) => html`<div>${flag.description}</div><code class="soft">${flag.name}</code>` },
    { title: "Value", number: true, cell: (flag) => (typeof flag.value === "boolean" ? (flag.value ? "on" : "off") : decimal(flag.value)) },
    { title: "From", cell: (flag) => flag.source },
    { title: "Change", cell: (flag) => flagControl(flag, set) },
  ], rows, { label: "Flags" }))}</section>`;
}

function flagControl(flag, set) {
  let control = null;
  const read = () => Number(control.value);
  const change = typeof flag.value === "boolean"
    ? action(flag.value ? "Switch off" : "Switch on", () => set(flag.name, !flag.value))
    : html`<input class="short" type="number" min="0" max="1" step="0.05" value=${flag.value} aria-label=${flag.name} ref=${(element) => (control = element)}> ${action("Set", () => set(flag.name, read()))}`;
  return html`<div class="row">${change}${flag.source === "tenant" && action("Reset", () => set(flag.name, null), "plain", `Use the default: ${flag.default}`)}</div>`;
}

// ---- Usage

const PERIODS = { today: [0, 0], yesterday: [1, 1], "7 days": [6, 0], "30 days": [29, 0] };
const day = (back) => new Date(Date.now() - back * 86400000).toISOString().slice(0, 10);

function usage() {
  const choice = () => ({ period: route.value.query.get("period") ?? "30 days", by: route.value.query.get("by") ?? "day" });
  const report = resource(async (abort) => {
    const { period, by } = choice();
    const [from, to] = PERIODS[period] ?? PERIODS["30 days"];
    return (await api(`/usage?${new URLSearchParams({ from: day(from), to: day(to), by })}`, { signal: abort })).data;
  });
  const select = (name, values, label) => html`<label class="field"><span>${label}</span><select value=${() => choice()[name]}
    onchange=${(event) => go([], { ...choice(), [name]: event.target.value }, true)}>${values.map((value) => html`<option value=${value}>${value}</option>`)}</select></label>`;
  return html`<section class="card"><div class="row spread"><h2>Usage</h2><div class="row">${select("period", Object.keys(PERIODS), "Period")}${select("by", ["day", "stage", "model", "key"], "By")}</div></div>
    ${loaded(report, (data) => html`<div class="stack">${figures([["requests", number(data.requests)], ["model calls", number(data.calls)], ["tokens", number(data.prompt_tokens + data.completion_tokens)],
      [`cost, ${data.currency}`, data.cost === null ? `≥ ${decimal(data.known_cost)}` : decimal(data.cost)], ["stored", bytes(data.bytes)]])}
      ${data.groups.length === 0 ? empty("No usage in this period.") : table([
        { title: data.by, cell: ({ group }) => (data.by === "key" && group ? shortId(group) : group || "automatic work") },
        { title: "Requests", number: true, cell: (row) => number(row.requests) },
        { title: "Calls", number: true, cell: (row) => number(row.calls) },
        { title: "Failed", number: true, cell: (row) => number(row.failed_calls) },
        { title: "Tokens in", number: true, cell: (row) => number(row.prompt_tokens) },
        { title: "Tokens out", number: true, cell: (row) => number(row.completion_tokens) },
        { title: "Cost", number: true, cell: (row) => (row.cost === null ? "unknown" : decimal(row.cost)) },
      ], data.groups, { label: "Usage" })}</div>`)}</section>`;
}
