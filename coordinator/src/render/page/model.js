"use strict";
// What the page was given, in a form to draw; and how quantities are written.

/// Whatever goes wrong from here on is said on the page, and in `data-state`.
function fail(error) {
  document.body.dataset.state = "failed";
  const box = byId("trouble");
  box.hidden = false;
  box.textContent = `This page could not be drawn: ${error?.message ?? error}`;
}

addEventListener("error", (event) => fail(event.error ?? event.message));

const data = JSON.parse(document.getElementById("data").textContent);
const run = data.run;
const pes = run.pes.map((pe) => ({
  ...pe,
  name: data.names[pe.pe],
  predicted: nanos(pe.predicted_us),
  measured: pe.measured_us && nanos(pe.measured_us.median),
  least: pe.measured_us && nanos(pe.measured_us.min),
  most: pe.measured_us && nanos(pe.measured_us.max),
}));

/// The one PE without a parent: not P0 when the source or the sink is another.
const rootPe = run.pes.find((pe) => pe.parent === null)?.pe ?? 0;
/// Of a broadcast: each PE has a copy of the one message.
const isForAll = run.operation === "broadcast";
const isExchange = run.operation === "exchange";
/// Of a gossip or an exchange: each PE has several messages, and arrives with the last of them.
const isOfPairs = run.operation === "gossip" || isExchange;
/// A PE as the user calls it.
const peName = (pe) => data.names[pe] ?? `P${pe}`;
/// Its name alone, or its number where it has none.
function shortName(pe) {
  const number = `P${pe}`;
  return peName(pe) === number ? number : peName(pe).slice(number.length + 1);
}
const hasNames = run.pes.some(({ pe }) => peName(pe) !== `P${pe}`);
const shortened = (name, most) => (name.length > most ? `${name.slice(0, most - 1)}…` : name);
const arrivalName = (pe) => (isForAll || isOfPairs ? peName(pe) : `M${pe}`);
/// Why a chart is empty, as a sentence.
const nothing = `${data.nothing[0].toUpperCase()}${data.nothing.slice(1)}.`;

/// The messages that are not null, by id.
const messages = new Map(
  data.messages.map(([id, source, destination, bytes]) => [id, { id, source, destination, bytes }]),
);

/// The message that a PE's row is about; null for an exchange, where it is about many.
function messageOf(pe) {
  if (isExchange) return null;
  return isForAll ? 0 : pe;
}

/// By index: of a tree that was repaired, some are not there.
const peOf = new Map(run.pes.map((pe) => [pe.pe, pe]));

function nanos(us) {
  return us === null || us === undefined ? null : Math.round(us * 1000);
}

// ---- Spans

/// Each kind's mark and its ink in light and in dark.
const KINDS = {
  "wakeup call": { mark: "square", inks: ["#b3201c", "#ff8f86"] },
  token: { mark: "circle", inks: ["#333333", "#dddddd"] },
  certificate: { mark: "diamond", inks: ["#5b35b5", "#c0adff"] },
  order: { mark: "triangle", inks: ["#b3201c", "#ff8f86"] },
  receipt: { mark: "cross", inks: ["#0b6b50", "#63d6b1"] },
};

/// By message: its place among the arrivals, or among the ids where a PE has many.
const places = new Map();
if (isExchange) {
  [...messages.keys()].forEach((id, place) => places.set(id, place));
} else {
  const arrived = (pe) => pe.measured ?? pe.predicted;
  const byArrival = pes
    .filter((pe) => pe.bytes > 0)
    .sort((a, b) => arrived(a) - arrived(b) || a.pe - b.pe)
    .map((pe) => messageOf(pe.pe));
  new Set(byArrival).forEach((id) => messages.has(id) && places.set(id, places.size));
}

/// Of what is no message.
const NEUTRAL = ["#8a94a3", "#566070", "#b4bdc9"];

/// A message's colours: in the order of arrival. Those of an exchange differ by source in each receive
/// lane, and by destination in each send lane.
function colours(id) {
  const message = messages.get(id);
  if (!message) return NEUTRAL;
  const place = isExchange ? message.source + message.destination : places.get(id) ?? 0;
  return data.palette[place % data.palette.length];
}

/// One run's spans by PE, each with what the other run made of it: same ports, same
/// item, and of several such the same in order.
function readSpans(lists, measured) {
  return lists.map((list, pe) =>
    list.map(([port, peer, item, begin, end]) => ({
      pe, port, peer, item, begin, end, measured,
      since: begin,
      control: typeof item === "string",
      other: null,
      far: null,
    })),
  );
}

const runs = { measured: readSpans(data.measured, true), predicted: readSpans(data.predicted, false) };

function inOrder(spans, key) {
  const places = new Map();
  for (const span of [...spans].sort((a, b) => a.begin - b.begin)) {
    const name = key(span);
    if (!places.has(name)) places.set(name, []);
    places.get(name).push(span);
  }
  return places;
}

function pairUp(left, right, key, link) {
  const those = inOrder(right, key);
  for (const [name, spans] of inOrder(left, key)) {
    spans.forEach((span, i) => {
      const other = those.get(name)?.[i];
      if (other) link(span, other);
    });
  }
}

pes.forEach((_, pe) => {
  const key = (span) => `${span.port} ${span.peer} ${span.item}`;
  pairUp(runs.measured[pe] ?? [], runs.predicted[pe] ?? [], key, (a, b) => {
    a.other = b;
    b.other = a;
  });
});
for (const spans of [runs.measured, runs.predicted]) {
  const all = spans.flat();
  const crossing = (span) =>
    span.port === 0 ? `${span.pe} ${span.peer} ${span.item}` : `${span.peer} ${span.pe} ${span.item}`;
  const sent = all.filter((span) => span.port === 0);
  const received = all.filter((span) => span.port === 1);
  pairUp(sent, received, crossing, (a, b) => {
    a.far = b;
    b.far = a;
  });
}

function itemName(item) {
  if (typeof item === "string") return item;
  if (isForAll) return "M";
  const message = messages.get(item);
  return isExchange && message ? `${message.source}→${message.destination}` : `M${item}`;
}

function withArticle(name) {
  return `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;
}

// ---- Quantities

const THIN = "\u202f";

/// Three digits of at least, in the unit that suits.
function scaled(value, base, units) {
  let unit = 0;
  while (unit + 1 < units.length && Math.abs(value) >= base * 0.9995) {
    value /= base;
    unit += 1;
  }
  return [value, units[unit]];
}

function digits(value, most = 3) {
  const whole = Math.abs(value) < 1 ? 1 : Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, most - whole));
}

/// A time in nanoseconds.
function time(ns) {
  if (ns === null || ns === undefined) return "–";
  const [value, unit] = scaled(ns, 1000, ["ns", "µs", "ms", "s"]);
  return `${unit === "ns" ? Math.round(value) : digits(value)}${THIN}${unit}`.replace("-", "−");
}

function difference(ns) {
  return ns > 0 ? `+${time(ns)}` : time(ns);
}

function bytes(n) {
  const [value, unit] = scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
  return `${Number(digits(value, 4))}${THIN}${unit}`;
}

function rate(bytesPerSecond) {
  const [value, unit] = scaled(bytesPerSecond, 1000, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
  return `${digits(value)}${THIN}${unit}`;
}

/// Whether it is 0 as it is written.
function isNothing(percentage) {
  return Math.abs(percentage) < 0.05;
}

function percent(value) {
  if (isNothing(value)) return `0.0${THIN}%`;
  const text = Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0);
  return `${value > 0 ? "+" : ""}${text}${THIN}%`.replace("-", "−");
}

function counted(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/// Round numbers from `low` to `high`, at most `most` of them.
function ticks(low, high, most) {
  const rough = Math.max((high - low) / Math.max(1, most), Number.MIN_VALUE);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999) ?? rough;
  const list = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) list.push(i * step);
  return { step, list };
}

/// The unit in which all ticks of an axis of times are written.
function axisTime(step, most) {
  const [, unit] = scaled(Math.max(most, step), 1000, ["ns", "µs", "ms", "s"]);
  const factor = { ns: 1, "µs": 1e3, ms: 1e6, s: 1e9 }[unit];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / factor) + 1e-9));
  return { unit, write: (ns) => (ns / factor).toFixed(Math.min(decimals, 9)).replace("-", "−") };
}

// ---- Elements

function put(parent, name, attributes = {}, ...children) {
  const isSvg = parent.namespaceURI.endsWith("svg") || name === "svg";
  const element = isSvg
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  parent.append(element);
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

// ---- What all parts of the page share

const theme = { dark: false };
/// The message that is followed; null for all.
let chosen = null;
const listeners = [];

function choose(message) {
  chosen = message;
  listeners.forEach((listener) => listener());
}

function ink(message) {
  return colours(message)[theme.dark ? 2 : 1];
}
