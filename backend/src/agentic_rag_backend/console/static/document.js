// One document: its state, its chunks beside the picture of their page, its knowledge, changes and deletion.

import { address, cleanup, effect, go, html, route, signal } from "./core.js";
import { api, request } from "./requests.js";
import { action, ago, badge, bytes, confirm, copyButton, empty, facts, followJob, jobLine, loaded, number, openDialog, plural, resource, shortId, table, words } from "./widgets.js";

const part = encodeURIComponent;

export function view() {
  const id = () => route.value.path[1] ?? "";
  const shown = signal(id());
  effect(() => (shown.value = id()));
  return html`<div>${() => page(shown.value)}</div>`;
}

function page(id) {
  const own = resource(async (abort) => {
    const response = await request(`/documents/${part(id)}`, { signal: abort });
    return { ...(await response.json()).data, tag: response.headers.get("ETag") };
  });
  return html`<div class="stack">${loaded(own, (data) => [heading(data, own.reload), details(data, own.reload)])}
    ${() => own.data.value && chunks(own.data.value)}</div>`;
}

function heading(data, changed) {
  const remove = () => confirm("Delete the document", `“${data.title}” is hidden at once, and a job removes its chunks, its knowledge and its original.`, "Delete", async () => {
    const { job_id: job } = (await api(`/documents/${part(data.id)}`, { method: "DELETE" })).data;
    const ended = await followJob(job, () => {});
    go("documents", {}, true);
    openDialog("Receipt", () => [html`<p>${badge(ended.state)} · “${data.title}” is deleted.</p>`, receipt(ended), html`<p class="small soft">Job ${shortId(job)}</p>`]);
  });
  return html`<div class="head"><a href="#/documents">Documents</a><span class="soft" aria-hidden="true">›</span><h1 id="title">${data.title}</h1>${badge(data.state)}
    <span class="end row">${action("Download", () => download(data))}<button type="button" onclick=${() => edit(data, changed)}>Edit</button><button type="button" class="danger" onclick=${remove}>Delete</button></span></div>`;
}

/** Numbers of what a deletion removed, and of what is left. */
function receipt({ result, error }) {
  if (error) return html`<p>${error.message}</p>`;
  const flat = (counts) => Object.entries(counts ?? {}).flatMap(([name, value]) => (typeof value === "object" ? flat(value) : value ? [[words(name), number(value)]] : []));
  const left = flat(result?.leftovers);
  return [html`<h3>Removed</h3>`, facts(flat(result?.removed)), html`<h3>Left</h3>`, left.length > 0 ? facts(left) : html`<p>Nothing.</p>`];
}

async function download({ id, title }) {
  const content = await (await request(`/documents/${part(id)}/content`)).blob();
  const link = html`<a href=${URL.createObjectURL(content)} download=${title}></a>`;
  link.click();
  URL.revokeObjectURL(link.href);
}

function details(data, changed) {
  const { warnings = [], ...metadata } = data.metadata;
  const busy = ["pending", "processing"].includes(data.state) && data.job_id;
  return html`<section class="card stack">${busy && jobLine(data.job_id, changed)}
    ${facts([
      ["Id", shortId(data.id)],
      data.key && ["Key", html`<span class="mono">${data.key}</span>`],
      ["Content", `${data.media_type}, ${bytes(data.size_bytes)}, ${plural(data.chunk_count, "chunk")}`],
      ["Version", html`${data.version}${data.latest_version > data.version && ` (version ${data.latest_version} is not visible yet)`}, changed ${ago(data.updated_at)}, added ${ago(data.created_at)}`],
      data.parent_id && ["Attached to", html`<a href=${address(["d", data.parent_id])}>the message</a>, ${data.place}`],
      data.attachments.length > 0 && ["Attachments", html`<ul>${data.attachments.map((item) => html`<li><a href=${address(["d", item.id])}>${item.title}</a> ${badge(item.state)}</li>`)}</ul>`],
      ...Object.entries(metadata).map(([name, value]) => [name, Array.isArray(value) ? value.map((item) => [html`<span class="tag">${item}</span>`, " "]) : String(value)]),
    ])}
    ${[].concat(warnings).map((text) => html`<p>${badge("partial", "warning")} ${text}</p>`)}
    ${data.failures.length > 0 && table([{ title: "Stage", cell: (item) => item.stage }, { title: "Failure", cell: (item) => html`${item.message} <code>${item.code}</code>` }], data.failures, { label: "Failures" })}</section>`;
}

/** Change the title and the metadata, if nobody else has changed the document meanwhile. */
function edit(data, changed) {
  openDialog("Edit the document", (close) => {
    let [title, metadata] = [null, null];
    const save = async () => {
      const fields = JSON.parse(metadata.value);
      const removed = Object.keys(data.metadata).filter((name) => !(name in fields));
      const json = { title: title.value, metadata: { ...fields, ...Object.fromEntries(removed.map((name) => [name, null])) } };
      await api(`/documents/${part(data.id)}`, { method: "PATCH", json, headers: { "If-Match": data.tag } });
      await changed();
      close();
    };
    return html`<label class="field"><span>Title</span><input maxlength="512" value=${data.title} ref=${(element) => (title = element)}></label>
      <label class="field"><span>Metadata (JSON)</span><textarea class="mono" rows="10" spellcheck="false" value=${JSON.stringify(data.metadata, null, 2)} ref=${(element) => (metadata = element)}></textarea></label>
      <div class="row">${action("Save", save, "main")}</div>`;
  });
}

// ---- Chunks

const wanted = () => ({ chunk: route.value.query.get("chunk"), quote: route.value.query.get("quote") });

/** Load chunks in reading order, at least to the one that the address names. */
async function loadChunks(id, cursor, until, abort) {
  const items = [];
  do {
    const { data, meta } = await api(`/documents/${part(id)}/chunks?limit=100${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort });
    items.push(...data);
    cursor = meta.nextCursor;
  } while (cursor && until && !items.some((chunk) => chunk.id === until));
  return { items, cursor };
}

function chunks(data) {
  const list = signal({ items: [], cursor: null });
  const start = route.peek().query.get("chunk");
  const first = resource(async (abort) => ((list.value = await loadChunks(data.id, null, start, abort)), true));
  const more = async () => {
    const next = await loadChunks(data.id, list.peek().cursor, null);
    list.value = { items: [...list.peek().items, ...next.items], cursor: next.cursor };
  };
  const selected = () => list.value.items.find((chunk) => chunk.id === wanted().chunk) ?? null;
  const scrolled = () => {
    const element = document.getElementById(`chunk-${start}`);
    if (element) element.scrollIntoView({ block: "center" });
  };
  return html`<div class="split"><section aria-label="Chunks" class="tight">${loaded(first, () => {
    const { items, cursor } = list.value;
    queueMicrotask(scrolled);
    if (items.length === 0) return empty("The document has no chunks that can be read.", `agentic-rag documents show ${data.id}`);
    return [items.map((chunk) => chunkCard(chunk)), cursor && action("Show more", more)];
  })}</section><aside class="sticky stack">${pictureOf(data, list, selected)}${knowledge(selected)}</aside></div>`;
}

function chunkCard(chunk) {
  const chosen = () => wanted().chunk === chunk.id;
  const choose = () => go(["d", chunk.document_id], { chunk: chunk.id, quote: chosen() ? wanted().quote : null }, true);
  const { location } = chunk;
  const place = [location.page !== null && `page ${location.page_label ?? location.page}`, location.sheet && `${location.sheet} ${location.cells ?? ""}`, location.path.join(" › ")].filter(Boolean).join(" · ");
  return html`<article id=${`chunk-${chunk.id}`} class=${() => (chosen() ? "card chunk chosen" : "card chunk")}>
    <div class="row spread small soft"><span>${chunk.ordinal + 1} · ${place}</span><span class="row"><span>${number(chunk.size_tokens)} tokens</span>${copyButton(linkOf(chunk), "Copy the address of the passage")}
      <button type="button" class="plain" aria-pressed=${() => String(chosen())} onclick=${choose}>Show</button></span></div>
    <div class="text" id=${() => (chosen() ? "passage" : null)}>${() => marked(chunk, chosen() ? wanted().quote : null)}</div></article>`;
}

const linkOf = (chunk) => new URL(address(["d", chunk.document_id], { chunk: chunk.id }), document.baseURI).href;

/** Return the text of a chunk with a quote marked. Offsets count code points of the document. */
function marked({ content, location }, quote) {
  const [start, end] = (quote ?? "").split("-").map((offset) => Number(offset) - location.start_char);
  const characters = [...content];
  if (!quote || !(start >= 0 && start < end && end <= characters.length)) return content;
  return [characters.slice(0, start).join(""), html`<mark>${characters.slice(start, end).join("")}</mark>`, characters.slice(end).join("")];
}

// ---- The page that a chunk is from

function pictureOf(data, list, selected) {
  if (data.media_type !== "application/pdf") return null;
  const number_ = signal(1);
  effect(() => (number_.value = selected()?.location.page ?? list.value.items[0]?.location.page ?? 1));
  const picture = resource(async (abort) => {
    const path = `/documents/${part(data.id)}/pages/${number_.value}`;
    const [own, image] = await Promise.all([api(path, { signal: abort }), request(`${path}/image?scale=1.5`, { signal: abort })]);
    return { ...own.data, url: URL.createObjectURL(await image.blob()) };
  });
  cleanup(() => picture.data.peek() && URL.revokeObjectURL(picture.data.peek().url));
  const turn = (step) => () => (number_.value = Math.max(1, number_.peek() + step));
  return html`<section class="card picture"><div class="row spread"><h2>Page ${() => number_.value}</h2><span><button type="button" aria-label="Previous page" onclick=${turn(-1)}>‹</button> <button type="button" aria-label="Next page" onclick=${turn(1)}>›</button></span></div>
    ${loaded(picture, (own) => drawPage(own, list, selected))}</section>`;
}

/** The picture with a box for each region of a chunk. Boxes count points from the lower left corner. */
function drawPage({ visible_box: box, rotation, url, page: shown, page_label: label }, list, selected) {
  const [left, bottom, right, top] = box ?? [0, 0, 595, 842];
  const [width, height] = rotation % 180 ? [top - bottom, right - left] : [right - left, top - bottom];
  const regions = rotation ? [] : list.value.items.flatMap((chunk) => chunk.location.regions.filter((region) => region.page === shown && region.bbox).map((region) => ({ chunk, box: region.bbox })));
  const choose = (chunk) => () => {
    go(["d", chunk.document_id], { chunk: chunk.id }, true);
    document.getElementById(`chunk-${chunk.id}`)?.scrollIntoView({ block: "center" });
  };
  return html`<svg class="page" viewBox=${`0 0 ${width} ${height}`} role="img" aria-label=${`Page ${label ?? shown}`}><image href=${url} width=${width} height=${height} />
    ${regions.map(({ chunk, box: [x, y, x2, y2] }) => html`<svg overflow="visible"><rect class=${() => (selected()?.id === chunk.id ? "box chosen" : "box")} x=${x - left - 2} y=${top - y2 - 1} width=${x2 - x + 4} height=${y2 - y + 2} onclick=${choose(chunk)} /></svg>`)}</svg>`;
}

// ---- What the graph has from a chunk

function knowledge(selected) {
  const chosen = signal(null);
  effect(() => (chosen.value = selected()?.id ?? null));
  const chunk = resource(async (abort) => chosen.value && (await api(`/chunks/${part(chosen.value)}`, { signal: abort })).data);
  return html`<section class="card"><h2>Knowledge of the passage</h2>${loaded(chunk, (data) => {
    if (!data) return html`<p class="soft">Choose “Show” beside a passage.</p>`;
    return html`<div class="stack"><div class="row">${data.entities.length === 0 ? html`<span class="soft">It names no entity.</span>` : data.entities.map((entity) => html`<a class="tag" href=${address("graph", { entity: entity.id })} title=${entity.type}>${entity.name}</a>`)}</div>
      ${data.relationships.map((relation) => html`<div><b>${relation.source.name}</b> ${words(relation.relation)} <b>${relation.target.name}</b><blockquote class="quote small">${relation.fact}</blockquote></div>`)}
      ${data.questions.length > 0 && html`<div><h3>Synthetic questions</h3><ul>${data.questions.map((question) => html`<li>${question.text}</li>`)}</ul></div>`}</div>`;
  })}</section>`;
}
