// A question: the answer as it is written, its citations, both levels of results, and how the server worked.

import { address, go, html, route, signal } from "./core.js";
import { api, events, session } from "./requests.js";
import { answerActions, explainDialog } from "./ask_actions.js";
import { badge, bars, decimal, duration, empty, errorBox, facts, loaded, openDialog, plural, resource, table, words } from "./widgets.js";

const PRESETS = { factoid: 0.8, balanced: 0.6, research: 0.5, conceptual: 0.3 };
const WEIGHTED = ["auto", "dual_level"];
let last = null; // the newest answer of this tab, so that the way back from a passage does not ask again

const readForm = () => {
  const query = Object.fromEntries(route.value.query);
  return { q: query.q ?? "", strategy: query.strategy ?? "auto", low: query.low ?? "", as_of: query.as_of ?? "" };
};

/** Return the body of `POST /answers`. */
function bodyOf({ q, strategy, low, as_of: asOf }, turns) {
  const weights = low !== "" && WEIGHTED.includes(strategy) ? { low: Number(low), high: Number((1 - low).toFixed(2)) } : null;
  return { query: q, strategy, ...(weights && { weights }), ...(asOf && { as_of: asOf }), ...(turns.length > 0 && { history: turns }) };
}

export function view() {
  const kept = last?.owner === session.peek() && last.body.query === readForm().q && last.body.strategy === readForm().strategy ? last : null;
  const [run, turns] = [signal(kept), signal(kept?.body.history ?? [])];
  const ask = (form) => {
    last?.stop();
    run.value = last = startRun(bodyOf(form, turns.peek()));
  };
  const followUp = ({ answer }, { query }) => {
    turns.value = [...turns.peek(), { role: "user", content: query }, { role: "assistant", content: answer }].slice(-20);
    document.getElementById("question").value = "";
    document.getElementById("question").focus();
  };
  const first = readForm();
  if (first.q && !kept) ask(first);
  return html`<div class="head"><h1>Ask</h1><span class="end row">${() => turns.value.length > 0 && html`<span class="soft">${plural(turns.value.length / 2, "earlier question")} sent along</span><button type="button" onclick=${() => (turns.value = [])}>New conversation</button>`}</span></div>
    <div class="stack">${questionForm((form) => {
      go("ask", form, true);
      ask(form);
    })}
    ${() => (run.value ? shownRun(run.value, followUp) : empty("Ask something that the documents state. On the command line:", 'agentic-rag ask "Who pays for lost gear?"'))}</div>`;
}

function questionForm(ask) {
  const form = readForm();
  const [strategy, low] = [signal(form.strategy), signal(form.low)];
  const strategies = resource(async (abort) => (await api("/strategies", { signal: abort })).data);
  let [question, asOf] = [null, null];
  const submit = (event) => {
    event?.preventDefault();
    const q = question.value.trim();
    if (q) ask({ q, strategy: strategy.peek(), low: low.peek(), as_of: asOf.value });
  };
  const keys = (event) => event.key === "Enter" && !event.shiftKey && submit(event);
  const share = () => (low.value === "" ? 0.6 : Number(low.value));
  const option = ({ name, description, available, why_not: why }) => html`<option value=${name} disabled=${!available} title=${why ?? description}>${words(name)}</option>`;
  return html`<form class="card stack" onsubmit=${submit}>
    <label class="field"><span>Question</span><textarea id="question" rows="2" maxlength="8000" placeholder="Who pays for lost gear?" value=${form.q} onkeydown=${keys} ref=${(element) => (question = element)}></textarea></label>
    <div class="row bottom"><label class="field"><span>Strategy</span>${() => html`<select class="fixed" value=${strategy.peek()} onchange=${(event) => (strategy.value = event.target.value)}>${(strategies.data.value ?? [{ name: "auto", available: true }]).map(option)}</select>`}</label>
      <label class="field weight"><span>Weight: ${() => (low.value === "" ? "the server's default" : `${decimal(share())} passages, ${decimal(1 - share())} themes`)}</span>
        <input type="range" min="0" max="1" step="0.05" value=${share} disabled=${() => !WEIGHTED.includes(strategy.value)} oninput=${(event) => (low.value = event.target.value)}></label>
      <label class="field"><span>Preset</span><select disabled=${() => !WEIGHTED.includes(strategy.value)} value=${() => Object.keys(PRESETS).find((name) => String(PRESETS[name]) === low.value) ?? ""} onchange=${(event) => (low.value = String(PRESETS[event.target.value] ?? ""))}>
        <option value="">default</option>${Object.keys(PRESETS).map((name) => html`<option value=${name}>${name}</option>`)}</select></label>
      <label class="field"><span>As of</span><input type="date" value=${form.as_of} ref=${(element) => (asOf = element)}></label>
      <button class="main" type="submit">Ask</button></div></form>`;
}

// ---- One answer

/** Ask, and collect the events in signals. */
function startRun(body) {
  const controller = new AbortController();
  const run = { body, owner: session.peek(), found: signal(null), tokens: signal([]), citations: signal([]), done: signal(null), failure: signal(null), times: {}, stop: () => controller.abort() };
  const begin = performance.now();
  const read = async () => {
    for await (const { name, data } of events("/answers", { json: { ...body, stream: true }, signal: controller.signal })) {
      run.times[name] ??= performance.now() - begin;
      if (name === "retrieval") run.found.value = data;
      else if (name === "citation") run.citations.value = [...run.citations.peek(), data];
      else if (name === "token") run.tokens.value = [...run.tokens.peek(), data];
      else if (name === "done") run.done.value = data;
    }
  };
  read().catch((problem) => problem.name !== "AbortError" && (run.failure.value = problem));
  return run;
}

function shownRun(run, followUp) {
  return html`<div class="stack"><div class="split"><section class="card answer" aria-live="polite" aria-label="Answer">${() => run.failure.value && errorBox(run.failure.value)}${() => answerText(run)}
      ${() => run.done.value && answerActions(run.done.value, run.body, () => followUp(run.done.value, run.body))}</section>
    <section class="tight" aria-label="Citations">${() => citationList(run)}</section></div>
    ${() => (run.done.value || run.failure.value) && run.found.value && html`<div class="columns">${passages(run)}${themes(run)}</div>`}
    ${() => run.done.value && trace(run.done.value, run.times)}</div>`;
}

function answerText(run) {
  const { done, tokens, citations, failure, found } = run;
  const answer = done.value;
  if (answer && !answer.grounded) return refusal(answer, run.body);
  if (tokens.value.length === 0 && !failure.value) return html`<p class="loading" role="status">${found.value ? "Reading the passages …" : "Searching …"}</p>`;
  return html`<div class="text">${tokens.value.map((token) => html`<span class=${token.supported ? null : "doubt"} title=${token.supported ? null : `not supported: ${token.reason}`}>${linkMarkers(token.text, citations.value)}</span>`)}</div>
    ${answer && html`<p class="soft small">${badge(answer.claims.every((claim) => claim.supported) ? "supported" : "unverified")} · ${plural(answer.claims.length, "checked sentence")} · confidence ${decimal(answer.confidence)}</p>`}
    ${answer?.contradictions.map((item) => html`<div class="error"><b>Contradiction</b> <span>${item.subject}</span>${[item.a, item.b].map((side) => html`<blockquote class="quote">${side.quote} <a href=${address(["d", side.document_id], { chunk: side.chunk_id })}>${side.title}</a></blockquote>`)}</div>`)}`;
}

/** Return a sentence with its markers, such as [1], as links to the passages. */
function linkMarkers(text, citations) {
  return text.split(/(\[\d{1,4}\])/).map((piece, index) => {
    const citation = index % 2 ? citations.find(({ marker }) => piece === `[${marker}]`) : null;
    return citation ? html`<a class="marker" href=${linkOf(citation)} title=${citation.title}>${piece}</a>` : piece;
  });
}

const linkOf = (citation) => address(["d", citation.document_id], { chunk: citation.chunk_id, quote: `${citation.start_char}-${citation.end_char}` });

/** Why a question was refused: what the search found, and the quotations nearest to the question. */
function refusal({ answer, nearest, trace: { fallback_reason: reason, details } }, body) {
  return html`<div class="stack"><p><b>${answer}</b></p>
    <div class="small soft"><p>${badge("refused")} · Every sentence of an answer must follow from a passage, and no passage was close enough.${reason ? ` The search says: ${reason}.` : ""}</p>
    ${typeof details.coverage === "number" && html`<p>The best passages have ${Math.round(details.coverage * 100)} % of the question's words, by their weight.</p>`}</div>
    ${nearest.length > 0 ? html`<div><h3>Nearest quotations, which do not answer it</h3>${nearest.map((item) => html`<blockquote class="quote small">${item.quote}<br><a href=${linkOf(item)}>${item.title}</a></blockquote>`)}</div>` : nearestPassages(body)}</div>`;
}

/** The passages most similar to a question, although no strategy would return them. */
function nearestPassages({ query }) {
  const list = resource(async (abort) => (await api("/search", { json: { query, strategy: "dense", limit: 3, fields: ["id", "document_id", "title", "content", "score"] }, signal: abort })).data.results);
  return html`<div class="nearest"><h3>Most similar passages, which do not answer it</h3>${loaded(list, (rows) => (rows.length === 0 ? empty("There are no passages yet.", "agentic-rag ingest FOLDER")
    : rows.map((row) => html`<blockquote class="quote small"><span class="lines">${row.content}</span><a href=${address(["d", row.document_id], { chunk: row.id })}>${row.title}</a> <span class="soft">similarity ${decimal(row.score)}</span></blockquote>`)))}</div>`;
}

function citationList({ citations, done }) {
  const list = citations.value;
  if (list.length === 0) return html`<p class="soft">${done.value ? "No citations." : ""}</p>`;
  return html`<h2>Citations</h2>${list.map((citation) => html`<article class="card citation"><div class="small"><a class="marker" href=${linkOf(citation)}>[${citation.marker}]</a> <b>${citation.title}</b> <span class="soft">· ${citation.page !== null ? `page ${citation.page_label ?? citation.page}` : citation.sheet ? `${citation.sheet} ${citation.cells ?? ""}` : `characters ${citation.start_char}–${citation.end_char}`}</span></div>
    <blockquote class="quote">${citation.quote}</blockquote><a class="small" href=${linkOf(citation)}>Open the passage</a></article>`)}`;
}

// ---- Both levels

function passages({ found, body }) {
  const { results, facts: stated } = found.value;
  return html`<section class="card"><div class="row spread"><h2>Low level: passages</h2><button type="button" class="plain" onclick=${() => explainDialog(body)}>Why is a document missing?</button></div>
    ${results.length === 0 ? html`<p class="soft">No passage.</p>` : table([
      { title: "Score", number: true, cell: (item) => decimal(item.score) },
      { title: "Passage", cell: (item) => html`<a href=${address(["d", item.document_id], { chunk: item.id })}>${item.title}</a><div class="small lines">${item.content}</div>${pathOf(item)}` },
    ], results, { label: "Passages" })}
    ${stated.length > 0 && html`<details><summary>${plural(stated.length, "fact")} of the graph</summary><ul>${stated.map((fact) => html`<li><b>${fact.source.name}</b> ${words(fact.relation)} <b>${fact.target.name}</b>: <a href=${address(["d", fact.document_id], { chunk: fact.chunk_id })}>${fact.fact}</a></li>`)}</ul></details>`}</section>`;
}

const pathOf = ({ graph_path: steps, scores }) => html`<div class="small soft">${steps.length > 0 && html`<div>by way of ${steps.map((step) => step.source).join(" → ")}</div>`}${Object.entries(scores).map(([name, value]) => html`<span class="tag">${words(name)} ${decimal(value)}</span> `)}</div>`;

function themes({ found }) {
  const list = found.value.themes;
  return html`<section class="card"><h2>High level: themes</h2>${list.length === 0 ? html`<p class="soft">No theme was used. Themes need dual-level retrieval (<a href="#/">flags</a>) and <a href="#/themes">communities</a>.</p>` : table([
    { title: "Score", number: true, cell: (item) => decimal(item.score) },
    { title: "Theme", cell: (item) => html`${item.type === "community" ? html`<a href=${address(["themes", item.id])}>${item.name}</a>` : item.name} <span class="soft small">level ${item.level}</span><div class="small lines">${item.summary}</div>` },
  ], list, { label: "Themes" })}</section>`;
}

// ---- How the server worked

function trace({ trace: own, usage, generator, model, id }, times) {
  const server = Object.entries(own.processing_time_ms).map(([label, value]) => ({ label: words(label), value, text: duration(value) }));
  let offset = 0;
  const steps = [["retrieval", "until the results"], ["token", "until the first sentence"], ["done", "until the end"]].filter(([name]) => name in times);
  const here = steps.map(([name, label]) => {
    const step = { label, offset, value: times[name] - offset, text: duration(times[name]) };
    offset = times[name];
    return step;
  });
  return html`<section class="card"><div class="row spread"><h2>Trace</h2><button type="button" class="plain" onclick=${() => openDialog("Details of the trace", () => html`<pre tabindex="0">${JSON.stringify(own, null, 2)}</pre>`)}>Details</button></div><div class="columns">
    <div><h3>Time in this browser</h3>${bars(here, "Waterfall of the answer")}<h3>Time at the server, by stage</h3>${bars(server, "Milliseconds by stage")}</div>
    ${facts([
      ["Strategy", html`${words(own.strategy)} <span class="soft">by ${own.methods_used.map(words).join(", ")}${own.fusion ? `; fusion: ${own.fusion}` : ""}</span>`],
      own.fallback_used && ["Fallback", own.fallback_reason],
      own.cache && ["Cache", own.cache],
      ["Answer", html`${generator}${model && `, by ${model}`} <span class="soft mono">${id}</span>`],
      ["Tokens", `${usage.prompt_tokens} in, ${usage.completion_tokens} out, in ${plural(usage.calls, "model call")}`],
      ["Cost", usage.cost === null ? "unknown" : decimal(usage.cost, 4)],
      ...own.warnings.map((text) => ["Warning", text]),
    ])}</div></section>`;
}
