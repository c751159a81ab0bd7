// Evaluation: datasets of questions, runs over them, metrics with intervals, and the cases in which configurations differ.

import { address, effect, go, html, route, signal } from "./core.js";
import { api } from "./requests.js";
import { action, ago, badge, confirm, decimal, duration, empty, errorBox, facts, jobLine, loaded, number, openDialog, pager, pages, plural, resource, shortId, table, words } from "./widgets.js";

const part = encodeURIComponent;

export function view() {
  const place = signal("");
  effect(() => (place.value = route.value.path.slice(1).join("/")));
  return html`<div>${() => {
    const [kind, id] = place.value.split("/");
    return kind === "runs" ? runPage(id) : kind === "datasets" ? datasetPage(id) : lists();
  }}</div>`;
}

// ---- Lists

function lists() {
  const datasets = pages((cursor, abort) => api(`/evaluation/datasets?limit=25${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort }));
  const runs = pages((cursor, abort) => api(`/evaluation/runs?limit=25${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort }));
  const name = (id) => datasets.items.value.find((item) => item.id === id)?.name ?? shortId(id);
  return html`<div class="head"><h1>Evaluation</h1><span class="end row"><button type="button" onclick=${() => generateDialog(datasets.reload)}>Generate a dataset</button><button type="button" class="main" onclick=${() => runDialog(datasets.items.peek())}>Start a run</button></span></div>
    <div class="view">${loaded(runs, () => loaded(datasets, () => html`<div class="stack"><section class="card"><h2>Runs</h2>${() => [runs.items.value.length === 0 ? empty("No run yet. A run asks every question of a dataset in each configuration:", "agentic-rag evaluate run DATASET --configuration hybrid") : table([
      { title: "Run", cell: (run) => html`<a href=${address(["evaluation", "runs", run.id])}>${run.configurations.map((item) => item.name).join(" · ")}</a>` },
      { title: "Dataset", cell: (run) => html`<a href=${address(["evaluation", "datasets", run.dataset])}>${name(run.dataset)}</a> <span class="soft small">version ${run.dataset_version}</span>` },
      { title: "State", cell: (run) => [badge(run.state), run.error && html`<div class="small">${run.error.message}</div>`] },
      { title: "Questions", number: true, cell: (run) => `${number(run.done)} of ${number(run.total)}` },
      { title: "Started", cell: (run) => ago(run.created_at) },
    ], runs.items.value, { label: "Runs" }), pager(runs)]}</section>
    <section class="card"><h2>Datasets</h2>${() => [datasets.items.value.length === 0 ? empty("No dataset yet. Generate one from your documents above, save answers under Ask, or upload a file:", "agentic-rag evaluate datasets create NAME --cases cases.jsonl") : table([
      { title: "Dataset", cell: (item) => html`<a href=${address(["evaluation", "datasets", item.id])}>${item.name}</a>` },
      { title: "Version", number: true, cell: (item) => item.version },
      { title: "Cases", number: true, cell: (item) => number(item.case_count) },
      { title: "Kinds", cell: (item) => Object.entries(item.kinds).map(([kind, count]) => html`<span class="tag">${words(kind)} ${count}</span> `) },
      { title: "Changed", cell: (item) => ago(item.updated_at) },
    ], datasets.items.value, { label: "Datasets" }), pager(datasets)]}</section></div>`))}</div>`;
}

function generateDialog(changed) {
  openDialog("Generate a dataset", (close) => {
    const job = signal(null);
    let [name, count] = [null, null];
    const start = async () => {
      const { data } = await api("/evaluation/datasets", { json: { name: name.value.trim() || "generated", generate: { count: Number(count.value) } } });
      job.value = data.job_id;
    };
    const ended = (last) => {
      changed();
      if (last.state === "succeeded") close();
    };
    return html`<p class="soft">Rules write questions from the documents and the graph, with the passages that answer them. Equal documents give equal questions.</p>
      <div class="row"><label class="field grow"><span>Name</span><input value="generated" maxlength="200" ref=${(element) => (name = element)}></label><label class="field"><span>Questions</span><input type="number" min="1" max="500" value="60" ref=${(element) => (count = element)}></label></div>
      <div class="row">${() => (job.value ? jobLine(job.value, ended) : action("Generate", start, "main"))}</div>`;
  });
}

/** Choose a dataset and strategies, see the expected cost, and start. */
function runDialog(datasets) {
  openDialog("Start a run", (close) => {
    const strategies = resource(async (abort) => (await api("/strategies", { signal: abort })).data.filter((item) => item.available));
    const [chosen, expected] = [new Set(["auto", "hybrid"]), signal(null)];
    let dataset = null;
    const body = (more) => ({ dataset: dataset.value, configurations: [...chosen].map((name) => ({ name, strategy: name })), ...more });
    const estimate = async () => (expected.value = (await api("/evaluation/runs", { json: body({ dry_run: true }) })).data.estimate);
    const start = async () => {
      const { data } = await api("/evaluation/runs", { json: body() });
      close();
      go(["evaluation", "runs", data.run_id]);
    };
    if (datasets.length === 0) return empty("A run needs a dataset. Generate one, or save answers under Ask.");
    return html`<label class="field"><span>Dataset</span><select ref=${(element) => (dataset = element)}>${datasets.map((item) => html`<option value=${item.id}>${item.name} (${plural(item.case_count, "case")})</option>`)}</select></label>
      <fieldset><legend class="small soft">Strategies to compare</legend><div class="row">${loaded(strategies, (rows) => rows.map((item) => html`<label class="row small" title=${item.description}><input type="checkbox" checked=${chosen.has(item.name)} onchange=${(event) => chosen[event.target.checked ? "add" : "delete"](item.name)}> ${words(item.name)}</label>`))}</div></fieldset>
      ${() => expected.value && facts(Object.entries(expected.value).map(([name, value]) => [words(name), value === null ? "unknown" : typeof value === "object" ? JSON.stringify(value) : number(value)]))}
      <div class="row">${action("Estimate", estimate)}${action("Start", start, "main")}</div>`;
  });
}

// ---- A run

function runPage(id) {
  const own = resource(async (abort) => (await api(`/evaluation/runs/${part(id)}`, { signal: abort })).data);
  const remove = () => confirm("Delete the run", "Its metrics and outcomes are deleted.", "Delete", async () => {
    await api(`/evaluation/runs/${part(id)}`, { method: "DELETE" });
    go("evaluation", {}, true);
  });
  return html`<div class="stack"><div class="head"><a href="#/evaluation">Evaluation</a><span class="soft" aria-hidden="true">›</span><h1>Run</h1>${shortId(id)}<span class="end"><button type="button" class="danger" onclick=${remove}>Delete</button></span></div>
    ${loaded(own, (run) => (run.result ? [summary(run), intervals(run.result), differences(run.result), outcomes(id, run)] : html`<section class="card">${run.job_id && jobLine(run.job_id, own.reload)}${run.error && errorBox(Object.assign(new Error(run.error.message), { name: run.error.code }))}</section>`))}</div>`;
}

const summary = (run) => html`<p class="soft">${badge(run.state)} · ${plural(run.result.cases, "case")} of <a href=${address(["evaluation", "datasets", run.dataset])}>${run.result.dataset.name}</a>, version ${run.dataset_version} · first ${run.k} passages · ${ago(run.finished_at)}${run.result.warnings.map((text) => ` · ${text}`)}</p>`;

/** Each metric with the interval of every configuration, as dots and lines on one scale. */
function intervals({ configurations }) {
  const names = [...new Set(configurations.flatMap((item) => Object.keys(item.metrics)))].filter((name) => name !== "latency_ms");
  return html`<section class="card"><h2>Metrics</h2><div class="stack">${table([
    { title: "Metric", cell: (name) => words(name) },
    ...configurations.map((item) => ({ title: item.name, number: true, cell: (name) => (item.metrics[name] ? html`<span title=${`${item.metrics[name].count} cases`}>${decimal(item.metrics[name].value)}</span>` : "–") })),
    { title: "0 to 1 in the same order, with intervals of 95 %", cell: (name) => plot(configurations.map((item) => [item.name, item.metrics[name]]).filter(([, metric]) => metric)) },
  ], names, { label: "Metrics" })}
  ${table([
    { title: "Configuration", cell: (item) => item.name },
    { title: "Median time", number: true, cell: (item) => duration(item.latency_ms.total?.p50 ?? 0) },
    { title: "95th percentile", number: true, cell: (item) => duration(item.latency_ms.total?.p95 ?? 0) },
    { title: "Tokens", number: true, cell: (item) => number(item.usage.prompt_tokens + item.usage.completion_tokens) },
    { title: "Errors", number: true, cell: (item) => number(Object.values(item.errors).reduce((sum, count) => sum + count, 0)) },
  ], configurations, { label: "Times and cost" })}</div></section>`;
}

function plot(rows) {
  const x = (value) => `${2 + Math.min(1, Math.max(0, value)) * 96}%`;
  return html`<svg class="chart plot" height=${rows.length * 12 + 2} role="img" aria-label=${rows.map(([name, { value, interval }]) => `${name}: ${decimal(value)}, ${decimal(interval[0])} to ${decimal(interval[1])}`).join("; ")}>${rows.map(([, { value, interval }], index) => html`<svg y=${index * 12} height="12" width="100%"><line class="axis" x1="2%" x2="98%" y1="7" y2="7" /><line class="span" x1=${x(interval[0])} x2=${x(interval[1])} y1="7" y2="7" /><circle class="bar" cx=${x(value)} cy="7" r="4" /></svg>`)}</svg>`;
}

function differences({ differences: rows }) {
  if (!rows?.length) return null;
  const certain = (row) => (row.interval[0] > 0 || row.interval[1] < 0) && row.p < 0.05;
  return html`<section class="card"><h2>Differences</h2>${table([
    { title: "Configuration", cell: (row) => `${row.configuration} − ${row.baseline}` },
    { title: "Metric", cell: (row) => words(row.metric) },
    { title: "Difference", number: true, cell: (row) => decimal(row.value, 3) },
    { title: "Interval of 95 %", number: true, cell: (row) => `${decimal(row.interval[0])} to ${decimal(row.interval[1])}` },
    { title: "p", number: true, cell: (row) => decimal(row.p, 3) },
    { title: "", cell: (row) => (certain(row) ? html`<b>differs</b>` : html`<span class="soft">may be chance</span>`) },
  ], rows, { label: "Differences" })}</section>`;
}

/** Cases side by side, those in which the configurations differ first. */
function outcomes(id, run) {
  const own = resource(async (abort) => {
    const [rows, cases] = await Promise.all([readAll(`/evaluation/runs/${part(id)}/outcomes`, abort), readAll(`/evaluation/datasets/${part(run.dataset)}/cases`, abort, `&version=${run.dataset_version}`)]);
    return { rows, cases: new Map(cases.map((item) => [item.id, item])) };
  });
  const names = run.configurations.map((item) => item.name);
  return html`<section class="card"><h2>Cases</h2>${loaded(own, ({ rows, cases }) => {
    const byCase = Object.groupBy(rows, (row) => row.case_id);
    const score = (row) => row?.measures.correct ?? row?.measures.refused_unanswerable ?? row?.measures[`recall@${run.k}`] ?? 0;
    const spread = (list) => Math.max(...list.map(score)) - Math.min(...list.map(score));
    const sorted = Object.entries(byCase).sort(([, a], [, b]) => spread(b) - spread(a));
    return table([
      { title: "Question", cell: ([key, list]) => html`${cases.get(key)?.question ?? shortId(key)} <span class="tag">${words(list[0].kind)}</span>${cases.get(key)?.expected_answer && html`<div class="small soft">expected: ${cases.get(key).expected_answer}</div>`}` },
      ...names.map((name) => ({ title: name, cell: ([, list]) => outcome(list.find((row) => row.configuration === name), score) })),
      { title: "", cell: ([key]) => cases.get(key) && html`<a class="small" href=${address("ask", { q: cases.get(key).question })}>Ask</a>` },
    ], sorted, { label: "Cases" });
  })}</section>`;
}

function outcome(row, score) {
  if (!row) return "–";
  if (row.error) return [badge("failed"), html`<div class="small">${row.error.message ?? row.error}</div>`];
  return html`${badge(score(row) >= 1 ? "right" : "wrong")}<div class="small soft">${duration(row.times_ms.total ?? 0)}, confidence ${decimal(row.confidence)}</div>`;
}

async function readAll(path, abort, query = "") {
  const items = [];
  let cursor = null;
  do {
    const page = await api(`${path}?limit=100${query}${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort });
    items.push(...page.data);
    cursor = page.meta.nextCursor;
  } while (cursor && items.length < 2000);
  return items;
}

// ---- A dataset

function datasetPage(id) {
  const own = resource(async (abort) => (await api(`/evaluation/datasets/${part(id)}`, { signal: abort })).data);
  const cases = pages((cursor, abort) => api(`/evaluation/datasets/${part(id)}/cases?limit=50${cursor ? `&cursor=${part(cursor)}` : ""}`, { signal: abort }));
  const remove = (item) => action("Remove", async () => {
    await api(`/evaluation/datasets/${part(id)}/cases/${part(item.id)}`, { method: "DELETE" });
    await cases.reload();
  }, "plain");
  return html`<div class="stack"><div class="head"><a href="#/evaluation">Evaluation</a><span class="soft" aria-hidden="true">›</span><h1>${() => own.data.value?.name}</h1>${shortId(id)}</div>
    ${loaded(cases, () => [table([
      { title: "Question", cell: (item) => html`<a href=${address("ask", { q: item.question })}>${item.question}</a>${item.expected_answer && html`<div class="small soft">${item.expected_answer}</div>`}` },
      { title: "Kind", cell: (item) => words(item.kind) },
      { title: "Answerable", cell: (item) => (item.answerable ? "yes" : "no") },
      { title: "Evidence", cell: (item) => item.gold.map((gold) => html`<blockquote class="quote small lines">${gold.quote}</blockquote>`) },
      { title: "", cell: remove },
    ], cases.items.value, { label: "Cases" }), pager(cases)])}</div>`;
}
