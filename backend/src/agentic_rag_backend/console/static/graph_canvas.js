// Draws a neighbourhood on a canvas. The server has placed its nodes.

import { cleanup, effect, html } from "./core.js";

const SHAPES = [
  "M 6 0 A 6 6 0 1 1 -6 0 A 6 6 0 1 1 6 0 Z", // circle
  "M -5.4 -5.4 H 5.4 V 5.4 H -5.4 Z", // square
  "M 0 -7 L 6.4 5 H -6.4 Z", // triangle
  "M 0 -7.4 L 7.4 0 L 0 7.4 L -7.4 0 Z", // diamond
  "M 0 7 L 6.4 -5 H -6.4 Z", // triangle that points down
  "M 3.4 -6 L 6.8 0 L 3.4 6 H -3.4 L -6.8 0 L -3.4 -6 Z", // hexagon
];
const COLOURS = ["#2f7fa8", "#b3681c", "#3f8f4f", "#a8548c", "#7a6bc4", "#8a7a2a"]; // 3:1 or more on both papers
const KNOWN = ["person", "organisation", "place", "event", "law", "work"];
const OTHER = { path: "M -6 -2 H -2 V -6 H 2 V -2 H 6 V 2 H 2 V 6 H -2 V 2 H -6 Z", colour: "#77838a" };

/** The shape and the colour of a type of entities. */
export function shapeOf(type) {
  const index = KNOWN.indexOf(type);
  return index < 0 ? OTHER : { path: SHAPES[index], colour: COLOURS[index] };
}

const HEIGHT = 560;
const MARGIN = 40;
const NEAR = 14; // pixels around a node that belong to it
const MAX_LABELS = 45;

/** Return a canvas with the graph. A click on a node calls `choose`. Pointers move it, wheels and + − scale it. */
export function drawGraph(nodes, edges, chosen, choose) {
  const canvas = html`<canvas class="graph" tabindex="0" role="img" aria-label="${`Graph of ${nodes.length} entities. The table has the same content. Arrow keys choose, plus and minus scale.`}" height=${HEIGHT}></canvas>`;
  const state = { scale: 1, x: 0, y: 0, width: 0, hover: null, drag: null };
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const place = (node) => [(MARGIN + node.x * (state.width - 2 * MARGIN)) * state.scale + state.x, (MARGIN + node.y * (HEIGHT - 2 * MARGIN)) * state.scale + state.y];
  const size = (node) => 0.8 + Math.min(1.4, Math.sqrt(node.mention_count) / 5);
  const labelled = new Set([...nodes].sort((a, b) => b.mention_count - a.mention_count).slice(0, MAX_LABELS).map((node) => node.id));

  function paint() {
    if (!state.width) return;
    const [ink, soft, accent, paper] = ["--ink", "--edge", "--accent", "--paper"].map((name) => resolveColour(name, canvas));
    const context = canvas.getContext("2d");
    const ratio = devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, state.width, HEIGHT);
    const focus = state.hover ?? chosen.peek();
    const touches = (edge) => edge.source.id === focus || edge.target.id === focus;
    for (const edge of [...edges].sort((a, b) => touches(a) - touches(b))) paintEdge(context, edge, touches(edge) ? accent : soft);
    const near = new Set(edges.filter(touches).flatMap((edge) => [edge.source.id, edge.target.id]));
    nodes.forEach((node) => paintNode(context, node, { ink, accent, paper }));
    const taken = [];
    const order = [...nodes].sort((a, b) => rank(b) - rank(a));
    function rank(node) {
      return (node.id === focus ? 2e9 : 0) + (near.has(node.id) ? 1e9 : 0) + node.mention_count;
    }
    for (const node of order) if (labelled.has(node.id) || node.id === focus || near.has(node.id)) paintLabel(context, node, { ink, paper }, taken, node.id === focus);
  }

  function paintEdge(context, edge, colour) {
    const [from, to] = [byId.get(edge.source.id), byId.get(edge.target.id)];
    const [[x, y], [x2, y2]] = [place(from), place(to)];
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.lineWidth = Math.min(3, 0.8 + edge.weight / 2);
    context.setLineDash(edge.kind === "mention" ? [4, 4] : []);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x2, y2);
    context.stroke();
    if (edge.kind === "mention") return;
    const angle = Math.atan2(y2 - y, x2 - x);
    const back = 8 * size(to) + 2;
    const [tipX, tipY] = [x2 - back * Math.cos(angle), y2 - back * Math.sin(angle)];
    context.beginPath();
    context.moveTo(tipX, tipY);
    for (const turn of [-0.4, 0.4]) context.lineTo(tipX - 7 * Math.cos(angle + turn), tipY - 7 * Math.sin(angle + turn));
    context.fill();
  }

  function paintNode(context, node, { accent, paper }) {
    const { path, colour } = shapeOf(node.type);
    const [x, y] = place(node);
    context.save();
    context.setLineDash([]);
    context.translate(x, y);
    context.scale(size(node), size(node));
    const shape = new Path2D(path);
    context.fillStyle = colour;
    context.fill(shape);
    context.lineWidth = node.id === chosen.peek() ? 3 : 1.2;
    context.strokeStyle = node.id === chosen.peek() ? accent : paper;
    context.stroke(shape);
    context.restore();
  }

  function paintLabel(context, node, { ink, paper }, taken, always) {
    context.font = `${node.id === chosen.peek() ? "600 " : ""}12px system-ui, "DejaVu Sans", sans-serif`;
    const text = node.name.length > 32 ? `${node.name.slice(0, 31)}…` : node.name;
    const [x, y] = place(node);
    const width = context.measureText(text).width;
    const left = Math.min(Math.max(2, x - width / 2), state.width - width - 2);
    const top = y + 8 * size(node) + 2;
    const box = [left - 2, top, left + width + 2, top + 14];
    const free = taken.every(([l, t, r, b]) => box[2] < l || box[0] > r || box[3] < t || box[1] > b);
    if (!free && !always) return;
    taken.push(box);
    context.lineWidth = 3;
    context.strokeStyle = paper;
    context.strokeText(text, left, top + 11);
    context.fillStyle = ink;
    context.fillText(text, left, top + 11);
  }

  function nodeAt(event) {
    const { left, top } = canvas.getBoundingClientRect();
    const distance = (node) => Math.hypot(place(node)[0] - (event.clientX - left), place(node)[1] - (event.clientY - top));
    const nearest = nodes.reduce((best, node) => (best && distance(best) <= distance(node) ? best : node), null);
    return nearest && distance(nearest) <= NEAR * size(nearest) ? nearest : null;
  }

  function zoom(factor, x = state.width / 2, y = HEIGHT / 2) {
    const scale = Math.min(8, Math.max(0.5, state.scale * factor));
    state.x = x - ((x - state.x) * scale) / state.scale;
    state.y = y - ((y - state.y) * scale) / state.scale;
    state.scale = scale;
    paint();
  }

  /** Choose the nearest node in a direction. */
  function step(dx, dy) {
    const own = byId.get(chosen.peek()) ?? nodes[0];
    const [x, y] = place(own);
    const cost = (node) => {
      const [ahead, aside] = [(place(node)[0] - x) * dx + (place(node)[1] - y) * dy, Math.abs((place(node)[0] - x) * dy) + Math.abs((place(node)[1] - y) * dx)];
      return ahead > 4 ? ahead + 2 * aside : Infinity;
    };
    const best = nodes.reduce((one, node) => (cost(node) < cost(one) ? node : one), own);
    if (best !== own) choose(best.id);
  }

  const keys = { ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1), "+": () => zoom(1.25), "-": () => zoom(0.8) };
  canvas.addEventListener("keydown", (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  canvas.addEventListener("pointerdown", (event) => {
    state.drag = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const { drag } = state;
    if (drag) {
      drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 3;
      state.x += event.movementX;
      state.y += event.movementY;
    }
    const hover = nodeAt(event)?.id ?? null;
    canvas.classList.toggle("pointing", hover !== null);
    if (hover === state.hover && !drag) return;
    state.hover = hover;
    paint();
  });
  canvas.addEventListener("pointerup", (event) => {
    const node = nodeAt(event);
    if (!state.drag?.moved && node) choose(node.id);
    state.drag = null;
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls, unless the picture has the focus
    event.preventDefault();
    const { left, top } = canvas.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.15 : 0.87, event.clientX - left, event.clientY - top);
  }, { passive: false });

  const sizes = new ResizeObserver(([{ contentRect }]) => {
    state.width = contentRect.width;
    canvas.width = Math.round(state.width * (devicePixelRatio || 1));
    canvas.height = Math.round(HEIGHT * (devicePixelRatio || 1));
    paint();
  });
  sizes.observe(canvas);
  const themes = new MutationObserver(paint);
  themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  cleanup(() => (sizes.disconnect(), themes.disconnect()));
  effect(() => (chosen.value, paint()));
  return canvas;
}

/** A custom property as a colour that a canvas understands: light-dark() is resolved by an element's own colour. */
function resolveColour(name, canvas) {
  const probe = html`<span class=${`probe ${name.slice(2)}`}></span>`;
  canvas.after(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}
