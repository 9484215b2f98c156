"use strict";
// Names of objects and messages are whatever people and programs of the cluster wrote: they become text, never markup.

const byId = (id) => document.getElementById(id);

/** An element with a class and children; strings become text. */
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : String(child)));
  return node;
}

/** Sets text and class where they differ, so that a selection by the reader stays. */
function show(node, text, className) {
  if (node.textContent !== text) node.textContent = text;
  if (className !== undefined && node.className !== className) node.className = className;
}

/**
 * Makes the children of a list those of the items, in their order. A child is made once for its key, and again when its
 * item looks different.
 */
function list(parent, items, keyOf, make) {
  const kept = parent.kept ?? (parent.kept = new Map());
  const keys = new Set();
  let next = parent.firstChild;
  for (const item of items) {
    const key = keyOf(item);
    keys.add(key);
    const looks = JSON.stringify(item);
    const had = kept.get(key);
    let node = had?.node;
    if (had?.looks !== looks) {
      node = make(item);
      if (had) {
        if (next === had.node) next = node;
        had.node.replaceWith(node);
      }
      kept.set(key, { node, looks });
    }
    if (node === next) next = next.nextSibling;
    else parent.insertBefore(node, next);
  }
  for (const [key, { node }] of kept) {
    if (!keys.has(key)) {
      node.remove();
      kept.delete(key);
    }
  }
}

const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many ?? one + "s"}`;

function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  const all = Math.round(value);
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const from = parts.findIndex(([, size]) => all >= size);
  const [unit, size] = parts[from];
  const rest = parts[from + 1];
  const below = rest ? Math.floor((all % size) / rest[1]) : 0;
  return `${Math.floor(all / size)} ${unit}` + (below ? ` ${below} ${rest[0]}` : "");
}

function bytes(value) {
  if (value === null || value === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

const SVG = "http://www.w3.org/2000/svg";

/** A chart of the counts of a queue; the newest sample is at the right edge. */
function chart(samples, most) {
  const svg = document.createElementNS(SVG, "svg");
  const [width, height] = [most - 1, 40];
  svg.setAttribute("viewBox", `0 -2 ${width} ${height + 4}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "chart");
  svg.setAttribute("role", "img");
  const names = ["active", "ready", "failing"];
  const top = Math.max(4, ...names.flatMap((name) => samples[name]));
  const last = (name) => samples[name][samples[name].length - 1] ?? 0;
  const highest = Math.max(0, ...samples.ready);
  svg.setAttribute("aria-label",
    `${last("active")} active, ${last("ready")} ready, ${last("failing")} failing; at most ${highest} ready`);
  const add = (className, d) => {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("class", className);
    path.setAttribute("d", d);
    svg.append(path);
  };
  add("base", `M0 ${height}H${width}`);
  for (const name of names) {
    const values = samples[name];
    const from = width - (values.length - 1);
    const points = values.map((value, at) => `${from + at} ${(height - (value / top) * height).toFixed(2)}`);
    if (points.length < 2 || values.every((value) => value === 0)) continue;
    if (name === "active") add("area", `M${from} ${height}L${points.join("L")}L${width} ${height}Z`);
    add(name, `M${points.join("L")}`);
  }
  return svg;
}
