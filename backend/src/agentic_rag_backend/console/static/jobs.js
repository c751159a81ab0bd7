// Jobs: their stages, what they wait for, and why they failed.

import { address, cleanup, effect, go, html, route } from "./core.js";
import { api } from "./requests.js";
import { action, ago, bars, duration, empty, jobState, loaded, number, pager, pages, shortId, table, words } from "./widgets.js";

const STATES = ["queued", "running", "succeeded", "partial", "failed", "cancelled"];
const KINDS = ["ingest", "delete", "rebuild", "raptor", "evaluate", "generate", "tune", "reconcile", "import"];
const POLL_MS = 2000;

export function view() {
  const filter = () => Object.fromEntries(route.value.query);
  const list = pages((cursor, abort) => {
    const { state, kind, document: id } = filter();
    return api(`/jobs?${new URLSearchParams({ limit: 50, ...(state && { state }), ...(kind && { kind }), ...(id && { document_id: id }), ...(cursor && { cursor }) })}`, { signal: abort });
  });
  effect(() => {
    const active = list.items.value.some((job) => ["queued", "running"].includes(job.state));
    if (!active) return;
    const timer = setTimeout(list.reload, POLL_MS);
    cleanup(() => clearTimeout(timer));
  });
  const select = (name, values, label) => html`<label class="field"><span>${label}</span><select value=${() => filter()[name] ?? ""} onchange=${(event) => go("jobs", { ...filter(), [name]: event.target.value }, true)}>
    <option value="">all</option>${values.map((value) => html`<option value=${value}>${value}</option>`)}</select></label>`;
  return html`<div class="head"><h1>Jobs</h1><span class="end">${action("Refresh", list.reload)}</span></div>
    <div class="stack"><div class="row">${select("state", STATES, "State")}${select("kind", KINDS, "Kind")}${() => filter().document && html`<button type="button" onclick=${() => go("jobs", { ...filter(), document: "" }, true)}>All documents</button>`}</div>
    <div class="view">${loaded(list, () => [rows(list), pager(list)])}</div></div>`;
}

function rows(list) {
  if (list.items.value.length === 0) return empty("No job matches. Uploads and rebuilds are jobs:", "agentic-rag jobs list");
  return table([
    { title: "Job", cell: (job) => html`<b>${job.kind}</b> ${job.attempt > 1 && html`<span class="tag">attempt ${job.attempt}</span>`}<div>${shortId(job.id)}</div>` },
    { title: "State", cell: (job) => [jobState({ ...job, error: null, message: "" }), remark(job)] },
    { title: "Result", cell: result },
    { title: "Queued", cell: (job) => ago(job.created_at) },
    { title: "Waited", number: true, cell: (job) => duration(Date.parse(job.started_at ?? job.finished_at ?? new Date()) - Date.parse(job.created_at)) },
    { title: "Ran", number: true, cell: (job) => (job.started_at ? duration(Date.parse(job.finished_at ?? new Date()) - Date.parse(job.started_at)) : "–") },
    { title: "", cell: (job) => controls(job, list.reload) },
  ], list.items.value, { label: "Jobs" });
}

/** Why a job waits or failed. A job that waits for a store or a model says so, and is not stuck. */
function remark(job) {
  if (job.error) return html`<div class="small">${job.error.message} <code>${job.error.code}</code></div>`;
  if (job.cancel_requested && !job.finished_at) return html`<div class="small soft">its cancellation is requested</div>`;
  return job.message && html`<div class="small soft">${job.message}, since ${ago(job.updated_at)}</div>`;
}

function result(job) {
  const { stages_ms: stages, document_id: id, ...values } = job.result ?? {};
  const shown = Object.entries(values).filter(([, value]) => value !== 0 && value !== null && value !== false && typeof value !== "object");
  const times = Object.entries(stages ?? {}).map(([label, value]) => ({ label: words(label), value, text: duration(value) }));
  return html`${(job.document_id ?? id) && html`<a href=${address(["d", job.document_id ?? id])}>document</a> `}<span class="small soft">${shown.slice(0, 5).map(([name, value]) => `${words(name)} ${typeof value === "number" ? number(value) : value}`).join(", ")}</span>
    ${job.result && html`<details class="small"><summary>Details</summary>${times.length > 0 && bars(times, "Milliseconds by stage")}<pre tabindex="0">${JSON.stringify(job.result, null, 2)}</pre></details>`}`;
}

function controls(job, changed) {
  const send = (verb) => async () => {
    await api(`/jobs/${job.id}/${verb}`, { method: "POST" });
    await changed();
  };
  if (["queued", "running"].includes(job.state)) return action("Cancel", send("cancel"), "plain");
  return ["failed", "partial", "cancelled"].includes(job.state) ? action("Retry", send("retry"), "plain") : null;
}
