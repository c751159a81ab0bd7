// What a person can do with an answer: rate it, keep it as a test case, repeat it in a program, or ask why a document is missing.

import { address, html, signal } from "./core.js";
import { api } from "./requests.js";
import { action, badge, decimal, empty, facts, loaded, number, openDialog, resource, snippet, table } from "./widgets.js";

export function answerActions(answer, body, followUp) {
  const rated = signal(null);
  const rate = (rating, reason) => async () => {
    await api("/feedback", { json: { answer_id: answer.id, rating, question: body.query, ...(reason && { reason }) } });
    rated.value = rating;
  };
  const complain = () => openDialog("What is wrong with the answer?", (close) => {
    let field = null;
    return html`<label class="field"><span>Reason</span><textarea rows="3" maxlength="2000" ref=${(element) => (field = element)}></textarea></label>
      <div class="row">${action("Send", async () => (await rate("bad", field.value.trim())(), close()), "main")}</div>`;
  });
  return html`<div class="row actions"><span>${() => (rated.value ? html`<span class="soft small">Rated ${rated.value}.</span>` : [action("Good answer", rate("good")), " ", html`<button type="button" onclick=${complain}>Bad answer</button>`])}</span>
    <button type="button" onclick=${() => saveDialog(answer, body)}>Save as test case</button>
    <button type="button" onclick=${() => openDialog("The same request", () => requestCode("/answers", body))}>curl · Python</button>
    <button type="button" onclick=${followUp}>Ask a follow-up</button></div>`;
}

// ---- Test cases

/** Keep a question with its answer in a dataset, or in a new one. */
function saveDialog(answer, body) {
  openDialog("Save as test case", (close) => {
    const list = resource(async (abort) => (await api("/evaluation/datasets?limit=100", { signal: abort })).data);
    let [dataset, name, expected, answerable] = [];
    const save = async () => {
      const gold = answer.citations.map(({ chunk_id: chunk, quote }) => ({ chunk_id: chunk, quote }));
      const kept = { question: body.query, answerable: answerable.checked, ...(expected.value.trim() && { expected_answer: expected.value.trim() }) };
      if (dataset.value) await api(`/evaluation/datasets/${dataset.value}/cases`, { json: { answer: { ...kept, citations: gold } } });
      else await api("/evaluation/datasets", { json: { name: name.value.trim() || "console", cases: [{ ...kept, gold }] } });
      close();
      openDialog("Saved", () => html`<p>${badge("ok")} The question is a case of a <a href="#/evaluation">dataset</a>.</p>`);
    };
    return loaded(list, (rows) => html`<label class="field"><span>Dataset</span><select ref=${(element) => (dataset = element)}>${rows.map((row) => html`<option value=${row.id}>${row.name}</option>`)}<option value="">a new dataset</option></select></label>
      <label class="field"><span>Name of a new dataset</span><input placeholder="console" ref=${(element) => (name = element)}></label>
      <label class="field"><span>Expected answer (empty: only the passages count)</span><textarea rows="3" maxlength="2000" ref=${(element) => (expected = element)}></textarea></label>
      <label class="row"><input type="checkbox" checked=${answer.grounded} ref=${(element) => (answerable = element)}> The documents answer the question</label>
      <p class="small soft">${number(answer.citations.length)} citations become the passages that a search should find.</p>
      <div class="row">${action("Save", save, "main")}</div>`);
  });
}

// ---- The request as code

/** The request for programs. The key stays out of it. */
export function requestCode(path, body, method = "POST") {
  const url = new URL(`../api/v1${path}`, document.baseURI).href;
  const json = body === undefined ? null : JSON.stringify(body, null, 2);
  const curl = [`curl ${method === "GET" || method === "POST" ? "" : `-X ${method} `}"${url}"`, '-H "Authorization: Bearer $AGENTIC_RAG_API_KEY"', json && `--json '${json.replaceAll("'", "'\\''")}'`].filter(Boolean).join(" \\\n  ");
  const python = `import json
import os
from urllib.request import Request, urlopen

headers = {"Authorization": f"Bearer {os.environ['AGENTIC_RAG_API_KEY']}", "Content-Type": "application/json"}
${json ? `body = json.loads(r'''${json.replaceAll("'''", "\\u0027\\u0027\\u0027")}''')\n` : ""}request = Request("${url}", method="${method}", headers=headers${json ? ", data=json.dumps(body).encode()" : ""})
with urlopen(request) as response:
    print(json.load(response)["data"])`;
  return [html`<h3>curl</h3>`, snippet(curl), html`<h3>Python</h3>`, snippet(python)];
}

// ---- Missing documents

/** Say why a search returns or omits a document. */
export function explainDialog(body) {
  openDialog("Why is a document missing?", () => {
    const [title, chosen] = [signal(""), signal(null)];
    let timer = null;
    const matches = resource(async (abort) => {
      const filter = title.value && `&filter=${encodeURIComponent(JSON.stringify({ title: { contains: title.value } }))}`;
      return (await api(`/documents?limit=8${filter}`, { signal: abort })).data;
    });
    const later = (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => (title.value = event.target.value.trim()), 250);
    };
    return [html`<label class="field"><span>Title contains</span><input type="search" oninput=${later}></label>`,
      html`<div>${loaded(matches, (rows) => (rows.length === 0 ? empty("No document has such a title.") : html`<ul class="plainlist tight">${rows.map((row) => html`<li><button type="button" class="plain" aria-pressed=${() => String(chosen.value === row.id)} onclick=${() => (chosen.value = row.id)}>${row.title}</button></li>`)}</ul>`))}</div>`,
      html`<div>${() => chosen.value && explanation(body, chosen.value)}</div>`];
  });
}

function explanation({ history, ...body }, id) {
  const own = resource(async (abort) => (await api("/search/explain", { json: { ...body, document_id: id }, signal: abort })).data);
  return loaded(own, (data) => html`<div class="stack"><p>${badge(data.returned ? "returned" : "omitted")} <a href=${address(["d", data.document_id])}>${data.title}</a>${data.rank !== null ? `, rank ${data.rank} of the result` : ""}</p>
    ${data.dropped_by.length > 0 && facts(data.dropped_by.map((reason) => [reason.by, reason.detail]))}
    ${table([
      { title: "Leg", cell: (leg) => leg.leg },
      { title: "Rank", number: true, cell: (leg) => (leg.rank === null ? "beyond 1,000" : number(leg.rank)) },
      { title: "Score", number: true, cell: (leg) => (leg.score === null ? "–" : decimal(leg.score, 3)) },
      { title: "Best passage", cell: (leg) => leg.chunk_id && html`<a href=${address(["d", data.document_id], { chunk: leg.chunk_id })}>open</a>` },
    ], data.legs, { label: "Ranks by leg" })}</div>`);
}
