// The tenant's documents: upload with progress, filters, one row a document.

import { address, go, html, route, signal } from "./core.js";
import { api } from "./requests.js";
import { action, ago, badge, bytes, empty, jobLine, loaded, number, pager, pages, shortId, table } from "./widgets.js";

const STATES = ["ready", "partial", "pending", "processing", "failed", "unreadable", "cancelled", "deleting"];

export function view() {
  const filter = () => Object.fromEntries(route.value.query);
  const list = pages((cursor, abort) => {
    const { state, title, key } = filter();
    const query = new URLSearchParams({ limit: 50, ...(state && { state }), ...(key && { key }), ...(cursor && { cursor }) });
    if (title) query.set("filter", JSON.stringify({ title: { contains: title } }));
    return api(`/documents?${query}`, { signal: abort });
  });
  return html`<div class="head"><h1>Documents</h1><span class="end">${action("Refresh", list.reload)}</span></div>
    <div class="stack">${uploader(list.reload)}${filters(filter)}
    <div class="view">${loaded(list, () => [rows(list, filter()), pager(list)])}</div></div>`;
}

// ---- Upload

function uploader(changed) {
  const uploads = signal([]);
  const [over, byName] = [signal(false), signal(true)];
  let picker = null;
  const send = async (files) => {
    const added = [...files].map((file) => ({ file, answer: signal(null), failure: signal(null) }));
    uploads.value = [...added, ...uploads.peek()];
    for (const upload of added) {
      const form = new FormData();
      form.append("file", upload.file);
      if (byName.peek()) form.append("key", upload.file.name);
      try {
        const { data } = await api("/documents", { method: "POST", body: form });
        const answer = data.documents?.[0] ?? data;
        if (answer.error) upload.failure.value = answer.error;
        else upload.answer.value = answer;
      } catch (problem) {
        upload.failure.value = problem;
      }
    }
    changed();
  };
  const drop = (event) => {
    event.preventDefault();
    over.value = false;
    send(event.dataTransfer.files);
  };
  const drag = (inside) => (event) => {
    event.preventDefault();
    over.value = inside;
  };
  return html`<section class=${() => (over.value ? "drop over" : "drop")} aria-label="Upload" ondragover=${drag(true)} ondragleave=${drag(false)} ondrop=${drop}>
    <div class="row spread"><span>Drop files here, or <button type="button" onclick=${() => picker.click()}>Choose files</button></span>
      <label class="row small"><input type="checkbox" checked=${byName.peek()} onchange=${(event) => (byName.value = event.target.checked)}> Use the file name as key: the same name again is a new version</label>
      <input type="file" multiple hidden aria-label="Files" ref=${(element) => (picker = element)} onchange=${(event) => send(event.target.files)}></div>
    ${() => uploads.value.length > 0 && html`<ul class="uploads" aria-label="Uploads">${uploads.value.map((upload) => html`<li>${uploadLine(upload, changed)}</li>`)}</ul>`}</section>`;
}

const uploadLine = ({ file, answer, failure }, changed) => html`<div class="row"><span class="clip" title=${file.name}>${file.name}</span> <span class="soft small">${bytes(file.size)}</span>
  ${() => {
    if (failure.value) return html`<span class="badge bad"><i aria-hidden="true">✕</i>refused</span> <span class="small">${failure.value.message ?? failure.value.detail}</span> <code>${failure.value.code}</code>`;
    if (!answer.value) return html`<span class="soft small">sending …</span>`;
    const { document_id: id, job_id: job, unchanged, warnings } = answer.value;
    return [html`<a href=${address(["d", id])}>Open</a>`, unchanged ? html`<span class="soft small">unchanged</span>` : job && jobLine(job, changed), warnings.map((text) => html`<span class="small">${badge("partial")} ${text}</span>`)];
  }}</div>`;

// ---- List

function filters(filter) {
  let timer = null;
  const set = (name, value) => go("documents", { ...filter(), [name]: value }, true);
  const later = (name) => (event) => {
    clearTimeout(timer);
    timer = setTimeout(set, 300, name, event.target.value);
  };
  return html`<form class="row" role="search" onsubmit=${(event) => event.preventDefault()}>
    <label class="field"><span>State</span><select value=${() => filter().state ?? ""} onchange=${(event) => set("state", event.target.value)}>
      <option value="">all</option>${STATES.map((state) => html`<option value=${state}>${state}</option>`)}</select></label>
    <label class="field grow"><span>Title contains</span><input type="search" value=${filter().title} oninput=${later("title")}></label>
    <label class="field grow"><span>Key</span><input type="search" value=${filter().key} oninput=${later("key")}></label></form>`;
}

function rows(list, filter) {
  const items = list.items.value;
  if (items.length === 0 && Object.keys(filter).length > 0) return html`<div class="empty">No document matches. <button type="button" onclick=${() => go("documents", {}, true)}>Show all</button></div>`;
  if (items.length === 0) return empty("There are no documents yet. Drop files above, or:", "agentic-rag ingest FOLDER");
  return table([
    { title: "Title", cell: (item) => html`<a href=${address(["d", item.id])}>${item.title}</a><div class="soft small">${item.parent_id && html`attached to <a href=${address(["d", item.parent_id])}>a message</a> `}<span class="clip" title=${item.key}>${item.key}</span></div>` },
    { title: "State", cell: (item) => [badge(item.state), reason(item, list.reload)] },
    { title: "Type", cell: (item) => html`<span class="small">${item.media_type.replace(/^(text|application)\//, "").replace(/^vnd\..*\./, "")}</span>` },
    { title: "Size", number: true, cell: (item) => bytes(item.size_bytes) },
    { title: "Chunks", number: true, cell: (item) => number(item.chunk_count) },
    { title: "Version", number: true, cell: (item) => item.version },
    { title: "Changed", cell: (item) => ago(item.updated_at) },
    { title: "Id", cell: (item) => shortId(item.id) },
  ], items, { label: "Documents" });
}

function reason({ failures, job_id: job, state }, changed) {
  const warnings = failures.length > 0 && html`<div class="small">${failures[0].message}${failures.length > 1 && `, and ${failures.length - 1} more`}</div>`;
  const retry = async () => {
    await api(`/jobs/${job}/retry`, { method: "POST" });
    await changed();
  };
  return [warnings, ["failed", "partial", "cancelled"].includes(state) && job && action("Retry", retry, "plain")];
}
