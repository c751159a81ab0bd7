// The operator's tenants and their keys.

import { html, go, signal } from "./core.js";
import { actFor, api, session } from "./requests.js";
import { action, ago, badge, confirm, empty, facts, loaded, number, openDialog, pager, pages, shortId, snippet, table, words } from "./widgets.js";

export function view() {
  const list = pages((cursor, abort) => api(`/tenants?limit=50${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`, { signal: abort }));
  return html`<div class="head"><h1>Tenants</h1><span class="end"><button type="button" class="main" onclick=${() => createDialog(list.reload)}>Create a tenant</button></span></div>
    ${loaded(list, () => [list.items.value.length === 0 ? empty("There are no tenants yet. Create one above, or by:", "agentic-rag tenants create NAME") : table([
      { title: "Tenant", cell: (tenant) => html`<b>${tenant.name}</b><div>${shortId(tenant.id)}</div>` },
      { title: "State", cell: (tenant) => badge(tenant.state) },
      { title: "Created", cell: (tenant) => ago(tenant.created_at) },
      { title: "", cell: (tenant) => html`<div class="row">${() => (session.value.tenant?.id === tenant.id ? html`<span class="soft">shown in the other views</span>` : html`<button type="button" onclick=${() => open(tenant)}>Look inside</button>`)}
        <button type="button" onclick=${() => keysDialog(tenant)}>Keys</button>${tenant.state === "active" || tenant.state === "suspended" ? action(tenant.state === "active" ? "Suspend" : "Resume", suspend(tenant, list.reload)) : ""}<button type="button" class="danger" onclick=${() => remove(tenant, list.reload)}>Delete</button></div>` },
    ], list.items.value, { label: "Tenants" }), pager(list)])}`;
}

function open(tenant) {
  actFor(tenant);
  go([], {});
}

/** The keys of a suspended tenant are refused, and its jobs wait. Its data stays. */
const suspend = (tenant, changed) => async () => {
  await api(`/tenants/${tenant.id}`, { method: "PATCH", json: { suspended: tenant.state === "active" } });
  await changed();
};

function createDialog(changed) {
  openDialog("Create a tenant", () => {
    const made = signal(null);
    let name = null;
    const create = async () => {
      const tenant = (await api("/tenants", { json: { name: name.value.trim() } })).data;
      made.value = (await api(`/tenants/${tenant.id}/keys`, { json: { name: "first", scopes: ["admin"] } })).data;
      await changed();
    };
    return html`<label class="field"><span>Name</span><input maxlength="200" required ref=${(element) => (name = element)}></label>
      <div>${() => (made.value ? secret(made.value) : action("Create, with a first key", create, "main"))}</div>`;
  });
}

/** A new key. Only this response has it. */
const secret = (key) => html`<p>The key “${key.name}”, with the scopes ${key.scopes.join(", ")}. It is shown only now:</p>${snippet(key.key)}`;

const readable = (key) => (key.filter ? html`<code>${JSON.stringify(key.filter)}</code>` : "all documents");

const stateOf = (key) => (key.revoked_at ? "revoked" : key.expires_at && new Date(key.expires_at) <= new Date() ? "expired" : "active");

function keysDialog(tenant) {
  openDialog(`Keys of ${tenant.name}`, () => {
    const list = pages((_cursor, abort) => api(`/tenants/${tenant.id}/keys`, { signal: abort }));
    const made = signal(null);
    let [name, scope, filter, end] = [null, null, null, null];
    const issue = async () => {
      const written = filter.value.trim();
      const more = { ...(written && { filter: JSON.parse(written) }), ...(end.value && { expires_at: end.value }) };
      made.value = (await api(`/tenants/${tenant.id}/keys`, { json: { name: name.value.trim() || "console", scopes: [scope.value], ...more } })).data;
      await list.reload();
    };
    const rotate = (key) => async () => {
      made.value = (await api(`/tenants/${tenant.id}/keys/${key.id}/rotate`, { json: {} })).data;
      await list.reload();
    };
    const revoke = (key) => async () => {
      await api(`/tenants/${tenant.id}/keys/${key.id}`, { method: "DELETE" });
      await list.reload();
    };
    return html`${loaded(list, () => [table([
      { title: "Key", cell: (key) => html`${key.name} ${shortId(key.id)}<div class="soft">${key.prefix ?? ""}</div>` },
      { title: "Scopes", cell: (key) => key.scopes.join(", ") },
      { title: "Reads", cell: readable },
      { title: "Issued", cell: (key) => ago(key.created_at) },
      { title: "Last used", cell: (key) => ago(key.last_used_at) },
      { title: "Ends", cell: (key) => ago(key.expires_at) },
      { title: "State", cell: (key) => badge(stateOf(key)) },
      { title: "", cell: (key) => stateOf(key) === "active" && html`<div class="row">${key.replaced_by ? "" : action("Rotate", rotate(key))}${action("Revoke", revoke(key), "danger")}</div>` },
    ], list.items.value, { label: "Keys" })])}
    <div class="row bottom"><label class="field"><span>Name</span><input maxlength="200" ref=${(element) => (name = element)}></label><label class="field"><span>Scope</span><select ref=${(element) => (scope = element)}>${["read", "write", "admin"].map((value) => html`<option value=${value}>${value}</option>`)}</select></label><label class="field"><span>Ends after (day)</span><input type="date" ref=${(element) => (end = element)}></label><label class="field"><span>Reads only (filter as JSON)</span><input placeholder=${'{"team": ["sales"]}'} ref=${(element) => (filter = element)}></label>${action("Issue a key", issue, "main")}</div>
    <div>${() => made.value && secret(made.value)}</div>`;
  });
}

function remove(tenant, changed) {
  confirm(`Delete ${tenant.name}`, "Its requests are refused at once. All its documents, its graph, its keys and its usage are removed. This cannot be undone.", "Delete the tenant", async () => {
    const receipt = (await api(`/tenants/${tenant.id}`, { method: "DELETE" })).data;
    if (session.peek().tenant?.id === tenant.id) actFor(null);
    openDialog("Receipt", () => [html`<p>${badge(receipt.state)} · ${tenant.name}</p>`, facts(Object.entries(receipt.removed).map(([name, count]) => [words(name), number(count)]))]);
    await changed();
  });
}
