// Parts that views share: numbers, times, states, tables, errors, dialogs, and progress of jobs.

import { cleanup, effect, html, signal } from "./core.js";
import { Problem, api, events } from "./requests.js";

// ---- Values

const NUMBER = new Intl.NumberFormat();
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

export const number = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));
export const decimal = (value, digits = 2) => (typeof value === "number" ? value.toFixed(digits) : "–");
export const percent = (value) => `${Math.round(value * 100)} %`;
export const plural = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
export const words = (name) => name.replaceAll("_", " ");

export function bytes(value) {
  const unit = value < 1024 ? 0 : value < 1048576 ? 1 : 2;
  return `${unit ? (value / 1024 ** unit).toFixed(1) : value} ${["B", "KB", "MB"][unit]}`;
}

export function duration(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60000)} min ${Math.round((milliseconds % 60000) / 1000)} s`;
}

/** A time relative to now. The exact one appears when the pointer rests on it. */
export function ago(time) {
  if (!time) return "–";
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  const text = Math.abs(seconds) < 5 ? "just now" : RELATIVE.format(Math.round(seconds / length), unit);
  return html`<time datetime=${time} title=${EXACT.format(new Date(time))}>${text}</time>`;
}

export function copyButton(text, label) {
  const done = signal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    done.value = true;
    setTimeout(() => (done.value = false), 1500);
  };
  return html`<button class="plain" type="button" title=${label} aria-label=${label} onclick=${copy}>${() => (done.value ? "✓" : html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="M5.5 5.5h8v8h-8z M10.5 5.5v-3h-8v8h3" /></svg>`)}</button>`;
}

/** A shortened id, with a button that copies the whole one. */
export const shortId = (id) => html`<span class="id" title=${id}>${id.length > 12 ? `${id.slice(0, 8)}…` : id}${copyButton(id, `Copy ${id}`)}</span>`;

const STATES = {
  good: ["●", ["ready", "succeeded", "ok", "active", "supported", "right"]],
  warn: ["◐", ["partial", "degraded", "stale", "unverified"]],
  bad: ["✕", ["failed", "unreadable", "unavailable", "deleting", "revoked", "expired", "suspended", "wrong"]],
  busy: ["▶", ["running", "processing"]],
  idle: ["○", []],
};

/** A state as a shape and a word. */
export function badge(state, title) {
  const kind = Object.keys(STATES).find((name) => STATES[name][1].includes(state)) ?? "idle";
  return html`<span class="badge ${kind}" title=${title}><i aria-hidden="true">${STATES[kind][0]}</i>${state}</span>`;
}

// ---- Data

/** Load data now, and again when signals that `load` reads change. Earlier data stay until the new ones arrive. */
export function resource(load) {
  const [data, error, loading] = [signal(undefined), signal(null), signal(true)];
  let controller = null;
  async function reload() {
    controller?.abort();
    const own = (controller = new AbortController());
    loading.value = true;
    try {
      const loaded = await load(own.signal);
      if (own !== controller) return;
      data.value = loaded;
      error.value = null;
    } catch (problem) {
      if (problem.name === "AbortError" || own !== controller) return;
      error.value = problem;
    }
    loading.value = false;
  }
  effect(() => void reload());
  cleanup(() => controller.abort());
  return { data, error, loading, reload };
}

/** A region that shows loaded data, or its error. */
export const loaded = (source, render) => () => [
  source.error.value && errorBox(source.error.value),
  source.data.value === undefined ? !source.error.value && html`<p class="loading" role="status">Loading …</p>` : render(source.data.value),
];

/** All pages of a list so far: `items`, `more()`, and whether there are others. */
export function pages(load) {
  const items = signal([]);
  const next = signal(null);
  const first = resource(async (abort) => {
    const page = await load(null, abort);
    items.value = page.data;
    next.value = page.meta.nextCursor;
    return true;
  });
  const more = async () => {
    const page = await load(next.peek());
    items.value = [...items.peek(), ...page.data];
    next.value = page.meta.nextCursor;
  };
  return { ...first, items, next, more };
}

/** A button for the next page, and the number of rows so far. */
export const pager = (list) => () =>
  html`<div class="row small soft"><span>${number(list.items.value.length)} shown</span>${list.next.value && action("Show more", list.more, "plain")}</div>`;

export function table(columns, rows, { caption, label } = {}) {
  const kind = (column) => (column.number ? "number" : null);
  return html`<div class="scroll"><table aria-label=${label}>
    ${caption && html`<caption>${caption}</caption>`}
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${kind(column)}>${column.title || html`<span class="unseen">Actions</span>`}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${columns.map((column) => html`<td class=${kind(column)}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

export const figures = (pairs) => html`<div class="figures">${pairs.map(([label, value]) => html`<div class="figure"><b>${value}</b><span>${label}</span></div>`)}</div>`;

/** Names and values. */
export const facts = (pairs) => html`<dl>${pairs.filter(Boolean).map(([name, value]) => [html`<dt>${name}</dt>`, html`<dd>${value}</dd>`])}</dl>`;

/** An empty state, with the command that changes it. */
export const empty = (text, command) => html`<div class="empty"><p>${text}</p>${command && snippet(command)}</div>`;

export const snippet = (code) => html`<div class="row"><pre class="grow" tabindex="0">${code}</pre>${copyButton(code, "Copy the text")}</div>`;

export function errorBox(problem) {
  if (!(problem instanceof Problem)) problem = new Problem({ title: "Error of the console", code: problem.name, detail: problem.message });
  return html`<div class="error" role="alert"><b>${problem.title}</b> <code>${problem.code}</code>
    <p>${problem.message}</p>
    ${problem.errors.length > 1 && html`<ul>${problem.errors.map((item) => html`<li>${item.field}: ${item.message}</li>`)}</ul>`}
    <p class="small soft">${problem.requestId && ["Request ", shortId(problem.requestId), " · "]}<a href="../api/v1/docs" target="_blank" rel="noopener">API documentation</a></p></div>`;
}

/** Horizontal bars: `[label, value, text]` in rows. `offset` in a row moves its bar to the right, as in a waterfall. */
export function bars(rows, label) {
  const total = Math.max(...rows.map((row) => (row.offset ?? 0) + row.value), 1e-9);
  const share = (value) => `${(value / total) * 45}%`;
  return html`<svg class="chart" height=${rows.length * 24} role="img" aria-label="${label}">${rows.map((row, index) => html`<svg y=${index * 24} height="24" width="100%">
    <text x="0" y="16">${row.label}</text>
    <rect class=${row.dim ? "bar dim" : "bar"} x=${`${36 + ((row.offset ?? 0) / total) * 45}%`} y="6" width=${share(row.value)} height="12" rx="2" />
    <text class="soft" x="100%" y="16" text-anchor="end">${row.text}</text></svg>`)}</svg>`;
}

// ---- Actions

/** A button that runs `work` once at a time. Its error stays beside it. */
export function action(label, work, kind = "", title = null) {
  const [busy, failure] = [signal(false), signal(null)];
  const run = async () => {
    busy.value = true;
    failure.value = null;
    try {
      await work();
    } catch (problem) {
      if (problem.name !== "AbortError") failure.value = problem;
    }
    busy.value = false;
  };
  return html`<button type="button" class=${kind} title=${title} disabled=${() => busy.value} onclick=${run}>${label}</button>${() => failure.value && errorBox(failure.value)}`;
}

/** Show a dialog. `content` receives the function that closes it. */
export function openDialog(title, content) {
  const opener = document.activeElement;
  const dialog = html`<dialog aria-labelledby="dialog-title"><div class="head"><h2 id="dialog-title">${title}</h2>
    <button class="end" type="button" onclick=${() => dialog.close()}>Close</button></div></dialog>`;
  const end = effect(() => dialog.append(html`<div class="stack">${content(() => dialog.close())}</div>`), false);
  const leave = () => dialog.close(); // a link in it was followed
  addEventListener("hashchange", leave);
  dialog.addEventListener("close", () => {
    removeEventListener("hashchange", leave);
    end();
    dialog.remove();
    opener?.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
}

/** Ask before something that cannot be undone. */
export function confirm(title, text, label, work) {
  openDialog(title, (close) => html`<div class="stack"><p>${text}</p><div class="row">${action(label, async () => {
    await work();
    close();
  }, "danger")}<button type="button" onclick=${close}>Cancel</button></div></div>`);
}

// ---- Jobs

const MAX_STREAMS = 3; // browsers keep six connections to a server
let streams = 0;
const waiting = [];

/** Follow a job by its events. Call `report` with its progress, and return the job when it has ended. */
export async function followJob(id, report, abort) {
  if (streams >= MAX_STREAMS) await new Promise((resume) => waiting.push(resume));
  streams += 1;
  try {
    for await (const event of events(`/jobs/${id}/events`, { signal: abort })) {
      if (event.name === "done") return event.data;
      report(event.data);
    }
    return (await api(`/jobs/${id}`, { signal: abort })).data;
  } finally {
    streams -= 1;
    waiting.shift()?.();
  }
}

/** A line with the progress of a job. `ended` receives the job. */
export function jobLine(id, ended = () => {}) {
  const [job, failure] = [signal({ state: "queued", stage: "", done: 0, total: 0 }), signal(null)];
  const controller = new AbortController();
  cleanup(() => controller.abort());
  followJob(id, (progress) => (job.value = { state: "running", ...progress }), controller.signal)
    .then((last) => ended((job.value = last)))
    .catch((problem) => problem.name !== "AbortError" && (failure.value = problem));
  return () => (failure.value ? errorBox(failure.value) : jobState(job.value));
}

export function jobState(job) {
  const moving = job.state === "running" && job.total > 0;
  return html`<span class="row">${badge(job.state)}${moving && html`<progress max=${job.total} value=${job.done} aria-label="Progress"></progress>`}
    <span class="soft small">${job.state === "running" ? `${job.stage} ${job.total ? `${job.done} of ${job.total}` : ""}` : ""} ${job.error?.message ?? job.message ?? ""}</span></span>`;
}
