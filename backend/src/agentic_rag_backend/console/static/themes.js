// Themes of the knowledge graph: communities by level, their findings, and the quotes behind them.

import { address, effect, go, html, route, signal } from "./core.js";
import { api } from "./requests.js";
import { action, ago, badge, decimal, empty, facts, figures, followJob, jobLine, loaded, number, openDialog, plural, resource, shortId } from "./widgets.js";

const LEVEL_NAMES = ["coarse", "finer", "finest"];

export function view() {
  const list = resource(async (abort) => {
    const items = [];
    let cursor = null;
    do {
      const page = await api(`/communities?limit=100${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`, { signal: abort });
      items.push(...page.data);
      cursor = page.meta.nextCursor;
    } while (cursor && items.length < 2000);
    return items;
  });
  return html`<div class="head"><h1>Themes</h1></div>
    <div class="stack">${state(list.reload)}
    <div class="view">${loaded(list, (items) => (items.length === 0 ? empty("There are no communities yet. They are built half a minute after the last upload, by “Rebuild”, or by:", "agentic-rag communities rebuild") : html`<div class="side"><nav class="sticky" aria-label="Themes">${tree(items)}</nav>${detail(items)}</div>`))}</div></div>`;
}

// ---- State and rebuild

function state(changed) {
  const own = resource(async (abort) => {
    try {
      return (await api("/admin/communities", { signal: abort })).data;
    } catch (problem) {
      if (problem.status !== 403) throw problem;
      return (await api("/status", { signal: abort })).data.communities; // a key without the scope admin
    }
  });
  const job = signal(null);
  const ended = () => {
    own.reload();
    changed();
  };
  const start = (json) => async () => (job.value = (await api("/admin/communities/rebuild", { json })).data.job_id);
  return html`<section class="card reserved">${loaded(own, (data) => html`<div class="row spread"><div class="stack"><div>${badge(data.generation === 0 ? "not built" : data.stale ? "stale" : "ready")} <span class="soft">${data.generation > 0 && html`generation ${data.generation}, built ${ago(data.built_at)}${data.stale && ". Documents have changed since."}`}</span></div>
      ${data.communities && figures([["communities", number(data.communities)], ["entities", number(data.entities)], ["summaries written", number(data.summaries_written)], ["summaries reused", number(data.summaries_reused)], ["tokens", number((data.prompt_tokens ?? 0) + (data.completion_tokens ?? 0))]])}</div>
    <div class="row">${() => (job.value ? jobLine(job.value, ended) : null)}<button type="button" onclick=${() => estimate(start)}>Estimate a rebuild</button>${action("Rebuild", start({}), "main")}</div></div>`)}</section>`;
}

/** Say what a rebuild would write and cost, and offer it. */
function estimate(start) {
  openDialog("Estimate of a rebuild", (close) => {
    const own = resource(async (abort) => {
      const { job_id: id } = (await api("/admin/communities/rebuild", { json: { dry_run: true }, signal: abort })).data;
      const ended = await followJob(id, () => {}, abort);
      if (ended.error) throw Object.assign(new Error(ended.error.message), { name: ended.error.code });
      return ended.result;
    });
    const begin = (mode) => async () => {
      await start({ mode })();
      close();
    };
    return loaded(own, (data) => html`<div class="stack">${facts([
      ["Communities", `${number(data.communities)}, by level: ${Object.values(data.levels).join(", ")}`],
      ["Summaries", `${number(data.summaries_to_write)} to write, ${number(data.summaries_reused)} reused`],
      ["Model calls", number(data.model_calls)],
      ["Tokens", number(data.prompt_tokens + data.completion_tokens)],
      ["Cost", data.cost === null ? "unknown" : decimal(data.cost, 4)],
    ])}<div class="row">${action("Rebuild what changed", begin("incremental"), "main")}${action("Rebuild everything", begin("full"))}</div></div>`);
  });
}

// ---- Levels

const chosenId = () => route.value.path[1] ?? null;

/** Communities under their parents, with a bar for the number of entities. */
function tree(items) {
  const children = new Map();
  items.forEach((item) => children.set(item.parent, [...(children.get(item.parent) ?? []), item]));
  const known = new Set(items.map((item) => item.id));
  const roots = items.filter((item) => !known.has(item.parent));
  const largest = Math.max(...items.map((item) => item.entity_count));
  const all = items.every((item) => item.stale); // the card above says so
  const branch = (item) => html`<li><a class="theme" href=${address(["themes", item.id])} aria-current=${() => ((chosenId() ?? items[0].id) === item.id ? "true" : null)}>
      <span>${item.stale && !all && badge("stale")} ${item.name}</span><svg class="chart" height="6" role="img" aria-label=${plural(item.entity_count, "entity").replace("entitys", "entities")}><rect class="bar" width=${`${(item.entity_count / largest) * 100}%`} height="4" rx="1" /></svg></a>
    ${children.has(item.id) && html`<ul>${children.get(item.id).map(branch)}</ul>`}</li>`;
  return html`<ul class="tree">${roots.map(branch)}</ul>`;
}

function detail(items) {
  const shown = signal(null);
  effect(() => (shown.value = chosenId() ?? items[0].id));
  return html`<div>${() => community(shown.value, items)}</div>`;
}

function community(id, items) {
  const own = resource(async (abort) => (await api(`/communities/${encodeURIComponent(id)}`, { signal: abort })).data);
  const name = (other) => items.find((item) => item.id === other)?.name ?? other;
  return loaded(own, (data) => html`<article class="stack"><div><h2>${data.name}</h2><div class="row soft small"><span>level ${data.level}${LEVEL_NAMES[data.level] ? ` (${LEVEL_NAMES[data.level]})` : ""}</span><span>${number(data.entity_count)} entities</span><span>generation ${data.generation}</span>${data.stale && badge("stale", "Passages behind it have changed.")}${shortId(data.id)}</div></div>
    ${data.parent && html`<p class="small">Part of <a href=${address(["themes", data.parent])}>${name(data.parent)}</a></p>`}
    <p class="text">${data.summary}</p>
    <div class="row">${data.keywords.map((word) => html`<span class="tag">${word}</span>`)}</div>
    <section><h3>Findings</h3>${data.findings.length === 0 ? html`<p class="soft">It has no findings.</p>` : data.findings.map(finding)}</section>
    <div class="row"><button type="button" onclick=${() => go("ask", { q: `What do the documents say about ${data.name}?` })}>Ask about it</button></div></article>`);
}

/** A finding, and the passages behind it when they are opened. */
function finding({ statement, sources }) {
  const open = signal(false);
  return html`<div class="card finding"><div class="text">${statement}</div>
    <details ontoggle=${(event) => (open.value = event.target.open)}><summary class="small">${plural(sources.length, "passage")}</summary>${() => open.value && sources.map(passage)}</details></div>`;
}

function passage({ document_id: document, chunk_id: id }) {
  const own = resource(async (abort) => (await api(`/chunks/${id}`, { signal: abort })).data);
  return html`<div>${loaded(own, (chunk) => html`<blockquote class="quote small">${chunk.content}</blockquote><a class="small" href=${address(["d", document], { chunk: id })}>${chunk.title}</a>`)}</div>`;
}
