// The core of the console: values that views follow, elements from templates, and addresses.

// ---- Signals. An effect runs again when a signal that it read has changed.

let current = null;
const queue = new Set();

/** @template T @param {T} value @returns {{value: T, peek: () => T}} */
export function signal(value) {
  const readers = new Set();
  return {
    get value() {
      if (current?.tracks) {
        readers.add(current);
        current.sources.add(readers);
      }
      return value;
    },
    set value(next) {
      if (Object.is(next, value)) return;
      value = next;
      if (!queue.size && readers.size) queueMicrotask(flush);
      readers.forEach((reader) => queue.add(reader));
    },
    peek: () => value,
  };
}

function flush() {
  for (const reader of queue) {
    queue.delete(reader);
    reader.run();
  }
}

/** Run `callback` now and after changes of what it read, or only now if `tracks` is false. Return the function that ends it. */
export function effect(callback, tracks = true) {
  const self = { sources: new Set(), owned: [], tracks, run, end };
  let alive = true;
  function clear() {
    self.sources.forEach((readers) => readers.delete(self));
    self.sources.clear();
    self.owned.splice(0).forEach((release) => release());
  }
  function run() {
    if (!alive) return;
    clear();
    const outer = current;
    current = self;
    try {
      callback();
    } finally {
      current = outer;
    }
  }
  function end() {
    alive = false;
    clear();
  }
  cleanup(end);
  run();
  return end;
}

/** Call `release` when the effect that runs now ends or runs again. */
export function cleanup(release) {
  if (current) current.owned.push(release);
}

// ---- Templates. Values become text nodes, attributes or listeners, and never markup.

const SVG = "http://www.w3.org/2000/svg";
const MARK = "\u0001";
const VOID = new Set(["input", "br", "img", "link", "meta", "hr"]);
const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "open", "indeterminate"]);
const TAGS = /<\/[\w-]+>|<([\w-]+)((?:\s+[\w:-]+(?:=(?:"[^"]*"|[^\s>"/]+))?)*)\s*(\/?)>|[^<]+/g;
const ATTRIBUTES = /([\w:-]+)(?:=(?:"([^"]*)"|([^\s>"/]+)))?/g;
const parsed = new WeakMap();

/** Return the nodes of a template. Functions as values are computed again when signals that they read change. */
export function html(strings, ...values) {
  if (!parsed.has(strings)) parsed.set(strings, parse(strings.join(MARK)));
  const fragment = build(parsed.get(strings), values, false);
  return fragment.childNodes.length === 1 ? fragment.firstChild : fragment;
}

/** Return the tree of a template's constant text. Values are numbered in their order. */
function parse(text) {
  const root = { children: [] };
  const stack = [root];
  let count = 0;
  const split = (part) => part.split(MARK).flatMap((piece, index) => (index ? [count++, piece] : [piece]));
  for (const [token, tag, attributes, closed] of text.matchAll(TAGS)) {
    const parent = stack.at(-1);
    if (token.startsWith("</")) stack.pop();
    else if (tag) {
      const node = { tag, attributes: [], children: [] };
      for (const [, name, quoted, bare] of attributes.matchAll(ATTRIBUTES)) node.attributes.push([name, split(quoted ?? bare ?? "")]);
      parent.children.push(node);
      if (!closed && !VOID.has(tag)) stack.push(node);
    } else parent.children.push(...split(token.replace(/\s*\n\s*/g, "")).filter((piece) => piece !== ""));
  }
  return root;
}

function build(tree, values, inSvg) {
  const fragment = document.createDocumentFragment();
  for (const child of tree.children) {
    if (typeof child === "number") append(fragment, values[child]);
    else if (typeof child === "string") fragment.append(child);
    else {
      const svg = inSvg || child.tag === "svg";
      const element = svg ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
      element.append(build(child, values, svg));
      child.attributes.forEach(([name, parts]) => attach(element, name, parts, values)); // after options: `value` of a select
      fragment.append(element);
    }
  }
  return fragment;
}

/** Show `value` at the end of `parent`. A function becomes a region that follows its signals. */
export function append(parent, value) {
  if (value === null || value === undefined || typeof value === "boolean") return;
  if (value instanceof Node) parent.append(value);
  else if (Array.isArray(value)) value.forEach((item) => append(parent, item));
  else if (typeof value === "function") {
    const [start, end] = [document.createComment(""), document.createComment("")];
    parent.append(start, end);
    effect(() => {
      const content = document.createDocumentFragment();
      append(content, value());
      const focused = document.activeElement?.id;
      while (start.nextSibling !== end) start.nextSibling.remove();
      end.before(content);
      if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    });
  } else parent.append(String(value));
}

function attach(element, name, parts, values) {
  const single = parts.length === 3 && parts[0] === "" && parts[2] === "";
  const value = single ? values[parts[1]] : parts.map((part) => (typeof part === "number" ? values[part] : part)).join("");
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "ref") value(element);
  else if (typeof value === "function") effect(() => setAttribute(element, name, value()));
  else setAttribute(element, name, value === "" && !single && name !== "value" ? true : value);
}

function setAttribute(element, name, value) {
  if (name === "style" || name === "srcdoc") throw new TypeError(`templates do not set ${name}`);
  if ((name === "href" || name === "src") && !/^(#|\.\.?\/|blob:)/.test(value)) throw new TypeError(`${name} leads elsewhere`);
  if (PROPERTIES.has(name)) element[name] = value ?? "";
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : value);
}

// ---- Addresses: what a view shows is named after `#`, which browsers do not send.

const readRoute = () => {
  const [path, query] = location.hash.slice(1).split("?");
  return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query || "") };
};
const decode = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};
/** The view and what it shows: `path` in parts, and `query`. */
export const route = signal(readRoute());
addEventListener("hashchange", () => (route.value = readRoute()));

/** Return an address of the console. Empty values of `query` are left out. */
export function address(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(kept).toString();
  return `#/${[].concat(path).map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Show an address. `replace`: the address before is not kept in the history. */
export function go(path, query, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", address(path, query));
  route.value = readRoute();
}
