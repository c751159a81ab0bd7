// The knowledge graph: search first, expand on click, facts with their sentences, at any time; as a picture and as a table.

import { address, effect, go, html, route, signal } from "./core.js";
import { api } from "./requests.js";
import { drawGraph, shapeOf } from "./graph_canvas.js";
import { decimal, empty, facts, loaded, number, pager, pages, plural, resource, shortId, table, words } from "./widgets.js";

const part = encodeURIComponent;
const AROUND = 30;
const MAX_EXPANDED = 19;

/** What the address names: the entity in the middle, those that were expanded, the chosen one, and the time. */
const readPlace = () => {
  const { entity = "", also = "", chosen = "", as_of: asOf = "", hidden = "", as = "" } = Object.fromEntries(route.value.query);
  return { entity, also: also ? also.split(",") : [], chosen: chosen || entity, as_of: asOf, hidden: hidden ? hidden.split(",") : [], as };
};
const show = (changes, replace = true) => {
  const place = { ...readPlace(), ...changes };
  go("graph", { ...place, also: place.also.join(","), hidden: place.hidden.join(","), chosen: place.chosen === place.entity ? "" : place.chosen }, replace);
};
const centre = (id) => show({ entity: id, also: [], chosen: id, hidden: [] }, false);

export function view() {
  const entity = signal("");
  effect(() => (entity.value = readPlace().entity));
  return html`<div class="head"><h1>Graph</h1>${search()}<span class="end">${() => entity.value && html`<a href="#/graph">Start again</a>`}</span></div>
    <div class="view">${() => (entity.value ? scene() : start())}</div>`;
}

// ---- Search and suggestions

function search() {
  const [name, open] = [signal(""), signal(false)];
  let timer = null;
  const list = resource(async (abort) => (name.value ? (await api(`/graph/entities?limit=8&name=${part(name.value)}`, { signal: abort })).data : null));
  const later = (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => ((name.value = event.target.value.trim()), (open.value = true)), 200);
  };
  const choose = (id) => () => ((open.value = false), centre(id));
  return html`<div class="search grow" role="search"><input type="search" aria-label="Search entities" placeholder="Search an entity by its name" oninput=${later} onkeydown=${(event) => event.key === "Escape" && (open.value = false)}>
    ${() => open.value && list.data.value && html`<ul class="plainlist matches">${list.data.value.length === 0 ? html`<li class="soft">No entity has such a name.</li>` : list.data.value.map((item) => html`<li><button type="button" class="plain" onclick=${choose(item.id)}>${item.name}</button> <span class="soft small">${item.type}, ${plural(item.mention_count, "passage")}</span></li>`)}</ul>`}</div>`;
}

/** The scene before a search: the entities with most mentions, and contradictions. */
function start() {
  const entities = pages((cursor, abort) => api(`/graph/entities?limit=25${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort }));
  const conflicts = resource(async (abort) => (await api("/graph/contradictions?limit=5", { signal: abort })).data);
  const link = (item) => html`<a href=${address("graph", { entity: item.id })}>${item.name}</a>`;
  return html`<div class="columns"><section class="card"><h2>Entities by mentions</h2>${loaded(entities, () => (entities.items.value.length === 0 ? empty("The graph is empty. Documents fill it:", "agentic-rag ingest FOLDER")
    : [table([{ title: "Entity", cell: link }, { title: "Type", cell: (item) => typeLabel(item.type) }, { title: "Passages", number: true, cell: (item) => number(item.mention_count) }], entities.items.value, { label: "Entities" }), pager(entities)]))}</section>
    <section class="card"><h2>Contradictions</h2>${loaded(conflicts, (rows) => (rows.length === 0 ? html`<p class="soft">No two statements contradict each other with a confidence of 0.5 or more.</p>` : rows.map(contradiction)))}</section></div>`;
}

const contradiction = (item) => html`<div class="finding"><b>${item.subject}</b> <span class="soft small">${item.kind}, confidence ${decimal(item.confidence)}</span>
  ${[item.a, item.b].map((side) => html`<blockquote class="quote small">${side.quote}<br><a href=${address(["d", side.document_id], { chunk: side.chunk_id })}>${side.title}</a></blockquote>`)}</div>`;

function typeLabel(type) {
  const { path, colour } = shapeOf(type);
  return html`<span class="badge"><svg class="shape" viewBox="-8 -8 16 16" aria-hidden="true"><path d=${path} fill=${colour} /></svg> ${type}</span>`;
}

// ---- Scene

function scene() {
  const [request, range] = [signal(""), signal(null)];
  effect(() => {
    const { entity, also, as_of: asOf } = readPlace();
    const query = new URLSearchParams([["hops", 2], ["limit", AROUND], ["positions", "true"], ...also.map((id) => ["also", id]), ...(asOf ? [["as_of", asOf]] : [])]);
    request.value = `/graph/entities/${part(entity)}/neighbourhood?${query}`; // the same after a choice, so nothing is loaded again
  });
  const graph = resource(async (abort) => {
    const { data } = await api(request.value, { signal: abort });
    range.value ??= yearsOf(data.edges);
    return data;
  });
  const chosen = signal("");
  effect(() => (chosen.value = readPlace().chosen));
  return html`<div class="split graph"><div class="tight">${timeline(range)}${loaded(graph, (data) => picture(data, chosen))}</div><aside class="sticky">${() => chosen.value && details(chosen.value)}</aside></div>`;
}

/** Years in which facts begin or end, up to the current one. */
function yearsOf(edges) {
  const times = edges.flatMap(({ relationship }) => (relationship ? [relationship.valid_at, relationship.invalid_at] : [])).filter(Boolean);
  const current = new Date().getFullYear();
  return { from: Math.min(current - 10, ...times.map((time) => new Date(time).getUTCFullYear())), to: current };
}

function timeline(range) {
  const year = () => Number(readPlace().as_of.slice(0, 4)) || range.value?.to;
  let timer = null;
  const slide = (event) => {
    const value = Number(event.target.value);
    clearTimeout(timer);
    timer = setTimeout(() => show({ as_of: value === range.peek().to ? "" : `${value}-12-31T23:59:59Z` }), 150);
  };
  return () => range.value && html`<div class="row small"><label class="row grow"><span>Facts of <b>${() => (readPlace().as_of ? `the end of ${year()}` : "today")}</b></span>
    <input id="as-of" class="grow" type="range" min=${range.value.from} max=${range.value.to} step="1" value=${() => year()} aria-label="Year of the facts" oninput=${slide}></label>
    <span class="soft">${range.value.from}–${range.value.to}</span></div>`;
}

function picture(data, chosen) {
  const { hidden, as } = readPlace();
  const nodes = data.nodes.filter((node) => !hidden.includes(node.type) || node.id === chosen.peek());
  const ids = new Set(nodes.map((node) => node.id));
  const edges = data.edges.filter((edge) => ids.has(edge.source.id) && ids.has(edge.target.id));
  return html`<div class="row spread small">${legend(data.nodes, hidden)}<span class="row">${["picture", "table"].map((name) => html`<button type="button" aria-pressed=${String((as || "picture") === name)} onclick=${() => show({ as: name === "picture" ? "" : name })}>${name}</button>`)}</span></div>
    <p class="soft small">${number(nodes.length)} entities, ${number(edges.length)} connections${data.bounded && ", others were left out"}. ${edges.some((edge) => edge.kind === "mention") ? "No relationship is known: lines are shared passages." : ""}</p>
    ${as === "table" ? asTable(nodes, edges, chosen) : drawGraph(nodes, edges, chosen, (id) => show({ chosen: id }))}`;
}

/** Types with their number of entities. A type can be hidden. */
function legend(nodes, hidden) {
  const counts = new Map();
  nodes.forEach(({ type }) => counts.set(type, (counts.get(type) ?? 0) + 1));
  const toggle = (type) => () => show({ hidden: hidden.includes(type) ? hidden.filter((name) => name !== type) : [...hidden, type] });
  return html`<div class="row">${[...counts].map(([type, count]) => html`<button type="button" class="legend" aria-pressed=${String(!hidden.includes(type))} title="Show or hide the type" onclick=${toggle(type)}>${typeLabel(type)} ${count}</button>`)}</div>`;
}

function asTable(nodes, edges, chosen) {
  const name = (item) => html`<button type="button" class="plain" aria-pressed=${() => String(chosen.value === item.id)} onclick=${() => show({ chosen: item.id })}>${item.name}</button>`;
  return table([
    { title: "From", cell: (edge) => name(edge.source) },
    { title: "Relationship", cell: (edge) => (edge.relation ? words(edge.relation) : "shared passage") },
    { title: "To", cell: (edge) => name(edge.target) },
    { title: "Sentence", cell: (edge) => html`<a class="small" href=${address(["d", edge.document_id], { chunk: edge.chunk_id })}>${edge.fact ?? "open the passage"}</a>` },
    { title: "Weight", number: true, cell: (edge) => decimal(edge.weight) },
  ], edges, { label: "Connections", caption: `${plural(nodes.length, "node")} and their connections, the heaviest first` });
}

// ---- One entity

function details(id) {
  const own = resource(async (abort) => {
    const { as_of: asOf } = readPlace();
    return (await api(`/graph/entities/${part(id)}?limit=20${asOf && `&as_of=${part(asOf)}`}`, { signal: abort })).data;
  });
  const expanded = () => readPlace().also.includes(id) || readPlace().entity === id;
  const expand = () => show({ also: [...readPlace().also, id].slice(-MAX_EXPANDED) });
  return html`<section class="card">${loaded(own, (data) => html`<div class="stack"><div><h2>${data.name}</h2>${typeLabel(data.type)} <span class="soft small">${plural(data.mention_count, "passage")}${data.description && ` · ${data.description}`}</span> ${shortId(data.id)}</div>
    <div class="row">${() => !expanded() && html`<button type="button" class="main" onclick=${expand}>Expand</button>`}${() => readPlace().entity !== id && html`<button type="button" onclick=${() => centre(id)}>Only this</button>`}<a href=${address("ask", { q: `What do the documents say about ${data.name}?` })}>Ask about it</a></div>
    ${facts([data.names.length > 1 && ["Also called", data.names.slice(1).join(", ")], data.same_name.length > 0 && ["Same name", data.same_name.map((item) => html`<a href=${address("graph", { entity: item.id })}>${item.name} (${item.type})</a> `)],
      ["Documents", html`<ul class="plainlist tight">${data.documents.slice(0, 6).map((item) => html`<li><a href=${address(["d", item.id], { chunk: data.chunks.find((chunk) => chunk.document_id === item.id)?.id })}>${item.title}</a></li>`)}</ul>`]])}
    <div><h3>Facts</h3>${data.relationships.length === 0 ? html`<p class="soft">The documents state no relationship of it at this time.</p>` : data.relationships.map((fact) => factOf(fact, id))}</div></div>`)}</section>`;
}

/** A relationship with the sentences that state it, and the time in which it holds. */
function factOf(fact, id) {
  const end = (item) => (item.id === id ? html`<b>${item.name}</b>` : html`<a href=${address("graph", { ...Object.fromEntries(route.peek().query), chosen: item.id })}>${item.name}</a>`);
  const holds = (fact.valid_at || fact.invalid_at) && `${fact.valid_at ? `from ${fact.valid_at.slice(0, 10)}` : ""} ${fact.invalid_at ? `until ${fact.invalid_at.slice(0, 10)}` : ""}`;
  return html`<div class="finding small"><div>${end(fact.source)} ${words(fact.relation)} ${end(fact.target)} ${holds && html`<span class="soft">${holds}</span>`}</div>
    ${fact.passages.slice(0, 3).map((passage) => html`<blockquote class="quote">${passage.fact} <a href=${address(["d", passage.document_id], { chunk: passage.chunk_id })}>passage</a></blockquote>`)}</div>`;
}
