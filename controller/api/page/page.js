// The status page of brlb. It reads v1/status, v1/slots and v1/events of the
// address that it came from; it changes nothing.
"use strict";

const pollTime = 2000; // between two looks at the status, in milliseconds
const retryTime = 10000; // before an event stream that was refused is tried again
const markTime = 2000; // how long a slot that has moved is marked
const maxEvents = 200; // rows of the event log

const byId = (id) => document.getElementById(id);
const pools = new Map(); // name -> what is on the page

function element(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

async function fetchJSON(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const doc = await answer.json();
  if (!answer.ok) throw new Error(doc.error);
  return doc;
}

// Status

let looking = false;
let again = false; // something happened while a look was under way

async function look() {
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  do {
    again = false;
    try {
      const status = await fetchJSON("v1/status");
      drawStatus(status);
      for (const pool of status.pools) await drawSlots(pool);
    } catch (e) {
      drawAbsent(e);
    }
  } while (again);
  looking = false;
}

function drawAbsent(e) {
  document.body.classList.add("stale");
  byId("summary").className = "bad";
  byId("summary").textContent = "brlb does not answer (" + e.message + "): what you see is old";
}

function drawStatus(s) {
  document.body.classList.remove("stale");
  document.title = "brlb " + s.bridge;
  byId("bridge").textContent = s.bridge;
  const summary = byId("summary");
  summary.className = s.degraded.length ? "bad" : s.in_sync ? "good" : "warn";
  summary.textContent = s.phase + " since " + ago(s.since) + ", " +
    (!s.switch.connected ? "switch not connected" : s.in_sync ? "switch in sync" : "switch not in sync");
  byId("degraded").replaceChildren(...s.degraded.map((reason) => element("li", reason)));
  byId("footer").textContent = [
    "brlb " + s.version, s.switch.description, s.switch.own_flows + " flows", "revision " + s.revision + ", confirmed " + s.confirmed,
  ].filter(Boolean).join(" · ");
  for (const [name, shown] of pools) {
    if (!s.pools.some((p) => p.name === name)) {
      shown.section.remove();
      pools.delete(name);
    }
  }
  for (const pool of s.pools) drawPool(pool, s.services);
}

function drawPool(pool, all) {
  let shown = pools.get(pool.name);
  if (!shown) {
    shown = newPool();
    pools.set(pool.name, shown);
    byId("pools").append(shown.section);
  }
  const services = all.filter((s) => s.pool === pool.name);
  const idle = all.filter((s) => s.primary === pool.name || (s.backup ?? []).includes(pool.name)).map((s) => s.name);
  const names = services.map((s) => s.name + " " + s.addresses.flatMap((a) => s.ports.map((p) => (a.includes(":") ? "[" + a + "]" : a) + ":" + p)).join(", "));
  shown.section.querySelector("h2").textContent = names.length ? names.join("; ") : idle.length ? "not serving " + idle.join(", ") : pool.around ? "in pool " + pool.around.join(", ") : "no service";
  shown.section.querySelector(".facts").textContent =
    "pool " + pool.name + " (id " + pool.id + ") · " + pool.mode + " · " + pool.active + " of " + pool.members.length + " active · layout " + pool.layout +
    (pool.digest ? " · digest " + pool.digest : "") + (pool.anchor ? " · anchor " + pool.anchor.digest : "") + (pool.problem ? " · " + pool.problem : "") +
    (pool.waiting ? " · waiting for first probes" : pool.active ? "" : " · serves nobody");
  shown.section.querySelector("tbody").replaceChildren(...pool.members.map(memberRow));
}

function newPool() {
  const section = byId("pool-template").content.cloneNode(true).querySelector("section");
  const shown = { section, slots: null, moved: new Map() };
  const canvas = section.querySelector("canvas");
  canvas.addEventListener("mousemove", (e) => point(shown, e));
  canvas.addEventListener("mouseleave", () => { section.querySelector(".pointed").textContent = ""; });
  return shown;
}

function memberRow(m) {
  const row = element("tr");
  const key = element("span", undefined, "key");
  if (m.slots > 0) key.style.background = memberColour(m.address);
  const first = element("td");
  first.append(key);
  const c = m.check;
  const passed = (c.code || "").endsWith("OK");
  const check = [c.code, c.detail, c.needed > 0 && (passed ? "in " + milliseconds(c.duration_seconds) : Math.min(c.consecutive, c.needed) + "/" + c.needed)];
  row.append(
    first, element("td", m.name), element("td", m.address), element("td", m.state, m.state), element("td", ago(m.since)),
    element("td", c.code ? check.filter(Boolean).join(" ") : "-"), element("td", m.weight, "number"), element("td", m.slots, "number"),
    element("td", (100 * m.share).toFixed(1) + "%", "number"), element("td", m.connections ?? "-", "number"),
    element("td", m.state === "down" ? "" : m.reason || ""),
  );
  return row;
}

function milliseconds(seconds) {
  return (1000 * seconds).toPrecision(2) + " ms";
}

function ago(time) {
  if (!time) return "-";
  const s = Math.max(0, Math.round((Date.now() - new Date(time)) / 1000));
  if (s < 60) return s + "s";
  if (s < 3600) return Math.floor(s / 60) + "m" + String(s % 60).padStart(2, "0") + "s";
  if (s < 86400) return Math.floor(s / 3600) + "h" + String(Math.floor(s / 60) % 60).padStart(2, "0") + "m";
  return Math.floor(s / 86400) + "d" + String(Math.floor(s / 3600) % 24).padStart(2, "0") + "h";
}

// Slot map: one cell a slot, one colour a member

// A member keeps its colour whoever comes and goes.
const hues = new Map(); // address -> hue, 0 to 359

function memberColour(address) {
  if (!hues.has(address)) hues.set(address, freeHue());
  return "hsl(" + hues.get(address) + " 62% 52%)";
}

// freeHue is in the middle of the widest gap between the hues that are taken.
function freeHue() {
  const taken = [...hues.values()].sort((a, b) => a - b);
  if (taken.length === 0) return 210;
  let widest = 0;
  let hue = 0;
  taken.forEach((from, i) => {
    const gap = i + 1 < taken.length ? taken[i + 1] - from : taken[0] + 360 - from;
    if (gap > widest) {
      widest = gap;
      hue = (from + gap / 2) % 360;
    }
  });
  return hue;
}

async function drawSlots(pool) {
  const shown = pools.get(pool.name);
  if (shown.slots && shown.slots.digest === pool.digest && shown.slots.slots === pool.slots) return;
  const next = await fetchJSON("v1/slots?pool=" + encodeURIComponent(pool.name));
  const before = shown.slots;
  shown.slots = next;
  shown.moved.clear();
  if (before && before.slots === next.slots) {
    next.owner.forEach((o, slot) => {
      if (next.keys[o] !== before.keys[before.owner[slot]]) shown.moved.set(slot, true);
    });
    setTimeout(() => { shown.moved.clear(); paint(shown); }, markTime);
  }
  paint(shown);
}

function grid(slots) {
  const columns = slots <= 4096 ? 64 : 256;
  return { columns, rows: Math.ceil(slots / columns), size: slots <= 4096 ? 14 : 4 };
}

function paint(shown) {
  const t = shown.slots;
  const g = grid(t.owner.length);
  const canvas = shown.section.querySelector("canvas");
  canvas.width = g.columns * g.size;
  canvas.height = g.rows * g.size;
  canvas.setAttribute("aria-label", "slot map of pool " + t.pool + ": " + t.slots + " slots, digest " + (t.digest || "none"));
  const pen = canvas.getContext("2d");
  const edge = g.size > 6 ? 1 : 0;
  t.owner.forEach((o, slot) => {
    const x = (slot % g.columns) * g.size;
    const y = Math.floor(slot / g.columns) * g.size;
    pen.fillStyle = o < 0 ? "#8884" : memberColour(t.keys[o]);
    pen.fillRect(x, y, g.size - edge, g.size - edge);
    if (shown.moved.has(slot)) {
      pen.fillStyle = "#fffc";
      pen.fillRect(x + g.size / 4, y + g.size / 4, g.size / 2 - edge, g.size / 2 - edge);
    }
  });
}

// point says whose slot is under the mouse.
function point(shown, e) {
  const t = shown.slots;
  if (!t) return;
  const g = grid(t.owner.length);
  const box = e.target.getBoundingClientRect();
  const x = Math.floor(((e.clientX - box.left) / box.width) * g.columns);
  const y = Math.floor(((e.clientY - box.top) / box.height) * g.rows);
  const slot = y * g.columns + x;
  const o = t.owner[slot];
  if (o === undefined) return;
  shown.section.querySelector(".pointed").textContent = "slot " + slot + ": " + (o < 0 ? "nobody" : t.members[o] + " " + t.keys[o]);
}

// Events

function follow() {
  const stream = new EventSource("v1/events?follow=1");
  stream.onmessage = (message) => {
    const e = JSON.parse(message.data);
    const row = element("tr");
    const time = element("td", new Date(e.time).toLocaleTimeString());
    time.title = e.time;
    row.append(time, element("td", [e.pool, e.member].filter(Boolean).join("/")), element("td", e.text));
    const log = byId("events");
    log.prepend(row);
    if (log.rows.length > maxEvents) log.lastElementChild.remove();
    byId("no-events").hidden = true;
    look();
  };
  stream.onerror = () => {
    // The browser tries again by itself, unless it was refused.
    if (stream.readyState === EventSource.CLOSED) setTimeout(follow, retryTime);
  };
}

look();
follow();
setInterval(() => { if (!document.hidden) look(); }, pollTime);
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
