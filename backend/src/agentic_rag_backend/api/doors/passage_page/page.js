// Texts of documents become text nodes, never markup.
"use strict";

const API = "../api/v1";
const KEY = "key";
const element = (id) => document.getElementById(id);

// The address after "#": /d/DOCUMENT?chunk=CHUNK
function readAddress() {
  const [path, query] = location.hash.slice(1).split("?");
  const parts = path.split("/").map(decodeURIComponent);
  if (parts[1] !== "d" || !parts[2]) return null;
  return { document: parts[2], chunk: new URLSearchParams(query || "").get("chunk") };
}

async function read(path) {
  const response = await fetch(API + path, { headers: { Authorization: "Bearer " + sessionStorage.getItem(KEY) } });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const error = new Error(problem.detail || "the server answered with " + response.status);
  error.refused = response.status === 401;
  throw error;
}

async function readData(path) {
  return (await (await read(path)).json()).data;
}

const part = (id) => encodeURIComponent(id);

async function show() {
  const address = readAddress();
  element("document").hidden = true;
  element("message").textContent = address ? "" : "This address names no passage.";
  element("login").hidden = !address || sessionStorage.getItem(KEY) !== null;
  if (!address || sessionStorage.getItem(KEY) === null) return;
  element("message").textContent = "Loading …";
  try {
    const owner = await readData("/documents/" + part(address.document));
    const chunk = address.chunk ? await readData("/chunks/" + part(address.chunk)) : null;
    const near = (side) => chunk && chunk[side] ? readData("/chunks/" + part(chunk[side])) : null;
    const [before, after] = await Promise.all([near("previous_id"), near("next_id")]);
    element("title").textContent = owner.title;
    document.title = owner.title;
    element("place").textContent = chunk && chunk.location.headings ? chunk.location.headings.join(" › ") : "";
    element("before").textContent = before ? before.content : "";
    element("passage").textContent = chunk ? chunk.content : "";
    element("after").textContent = after ? after.content : "";
    element("message").textContent = "";
    element("document").hidden = false;
  } catch (error) {
    if (error.refused) sessionStorage.removeItem(KEY);
    element("login").hidden = !error.refused;
    element("message").textContent = error.message;
  }
}

async function download() {
  try {
    const content = await (await read("/documents/" + part(readAddress().document) + "/content")).blob();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = element("title").textContent || "document";
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    element("message").textContent = error.message;
  }
}

addEventListener("DOMContentLoaded", () => {
  element("login").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(KEY, element("key").value);
    element("key").value = "";
    show();
  });
  element("original").addEventListener("click", download);
  addEventListener("hashchange", show);
  show();
});
