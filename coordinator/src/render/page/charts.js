// The charts beside the diagram, in SVG: arrivals, round times, fits.

/// A chart's frame with its axes; `x` and `y` say what they measure, from where to
/// where, and how a tick is written.
/// `below` is room between the field of `y` and the axis of `x`.
function frame(parent, { width, height, left = 58, bottom = 40, below = 0, top = 10, right = 14, x, y, label }) {
  const root = put(parent, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const inner = { left, right: width - right, top, bottom: height - bottom - below };
  const foot = inner.bottom + below;
  const atX = (v) => inner.left + ((v - x.from) / (x.to - x.from || 1)) * (inner.right - inner.left);
  const atY = (v) => inner.bottom - ((v - y.from) / (y.to - y.from || 1)) * (inner.bottom - inner.top);
  const across = ticks(x.from, x.to, (inner.right - inner.left) / 75);
  const writeX = x.write ?? axisTime(across.step, x.to).write;
  for (const at of across.list) {
    put(root, "path", { class: "rule", d: `M${atX(at)},${inner.top}V${foot + 4}` });
    put(root, "text", { class: "muted", x: atX(at), y: foot + 17, "text-anchor": "middle" }, writeX(at));
  }
  const up = ticks(y.from, y.to, (inner.bottom - inner.top) / 45);
  const writeY = y.write ?? axisTime(up.step, y.to).write;
  for (const at of up.list) {
    if (writeY(at) === "") continue;
    put(root, "path", { class: "rule", d: `M${inner.left - 4},${atY(at)}H${inner.right}` });
    put(root, "text", { class: "muted", x: inner.left - 7, y: atY(at) + 4, "text-anchor": "end" }, writeY(at));
  }
  put(root, "text", {
    class: "muted", "text-anchor": "middle",
    transform: `translate(12,${(inner.top + inner.bottom) / 2}) rotate(-90)`,
  }, y.name);
  put(root, "path", { class: "axis", d: `M${inner.left},${inner.top}V${foot}H${inner.right}` });
  put(root, "text", { class: "muted", x: (inner.left + inner.right) / 2, y: height - 4, "text-anchor": "middle" }, x.name);
  return { root, inner, atX, atY };
}

function widthOf(element, most) {
  return Math.max(240, Math.min(most, element.clientWidth || most));
}

function timeUnit(most) {
  return axisTime(most / 5, most).unit;
}

// ---- Predicted against measured arrivals

function drawArrivals() {
  const parent = byId("arrivals");
  parent.replaceChildren();
  const shown = pes.filter((pe) => pe.measured !== null && pe.measured !== undefined && pe.predicted !== null);
  if (!shown.length) {
    byId("arrivals-about").textContent = nothing;
    return;
  }
  const near = shown.filter((pe) => Math.abs(pe.predicted - pe.measured) <= pe.measured * 0.1).length;
  const errors = shown.map((pe) => (Math.abs(pe.predicted - pe.measured) / pe.measured) * 100);
  byId("arrivals-about").textContent =
    `When the last byte of each message was there. ${near} of ${counted(shown.length, "prediction")} ` +
    `${near === 1 ? "lies" : "lie"} within 10${THIN}% (the band); the median error is ${digits(median(errors), 2)}${THIN}%` +
    (run.rounds > 1 ? ", against the median of the rounds; lines show the fastest and the slowest round." : ".");
  const width = widthOf(parent, 620);
  const farthest = Math.max(...shown.flatMap((pe) => [pe.predicted, pe.measured]));
  const slowest = Math.max(...shown.map((pe) => pe.most));
  // A round that was far slower than the others must not press these together.
  const most = Math.max(farthest, Math.min(slowest, farthest * 1.25)) * 1.06;
  const unit = timeUnit(most);
  const earliest = Math.min(...shown.flatMap((pe) => [pe.predicted, pe.measured]));
  // Arrivals that are close to each other would be one dot on an axis from 0.
  const low = earliest > most * 0.5 ? earliest * 0.88 : 0;
  const axis = (name) => ({ from: low, to: most, name: `${name}, ${unit}` });
  const { root, atX, atY, inner } = frame(parent, {
    width, height: Math.min(width, 460), x: axis("predicted"), y: axis("measured"),
    label: "Predicted against measured arrival of each message",
  });
  const cut = most / 1.1;
  put(root, "path", {
    class: "band",
    d: `M${atX(low)},${atY(low)}V${atY(low * 1.1)}L${atX(cut)},${atY(most)}H${atX(most)}V${atY(most * 0.9)}L${atX(low / 0.9)},${atY(low)}Z`,
  });
  put(root, "path", { class: "ideal", d: `M${atX(low)},${atY(low)}L${atX(most)},${atY(most)}` });
  const centre = (pe) => [atX(pe.predicted), atY(pe.measured)];
  const taken = shown.map(centre).map(([x, y]) => ({ left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 }));
  for (const pe of shown) {
    const [x, y] = centre(pe);
    const own = messageOf(pe.pe);
    const dim = chosen !== null && own !== null && chosen !== own;
    const group = put(root, "g", { class: dim ? "point dim" : "point" });
    put(group, "title", {}, `${arrivalName(pe.pe)}: predicted ${time(pe.predicted)}, measured ${time(pe.measured)}`);
    if (pe.most > pe.least) {
      const ends = [Math.max(pe.least, low), Math.min(pe.most, most)].map(atY);
      put(group, "path", { d: `M${x},${ends[0]}V${ends[1]}`, stroke: ink(own), "stroke-width": 1.25 });
    }
    const r = chosen !== null && chosen === own ? 7 : shown.length > 60 ? 4 : 5;
    put(group, "circle", { cx: x, cy: y, r, fill: colours(own)[0], stroke: ink(own), "stroke-width": 1.25 });
    if (own !== null) group.addEventListener("click", () => choose(chosen === own ? null : own));
    const name = arrivalName(pe.pe);
    const room = { left: x + 9, right: x + 13 + 8 * name.length, top: y - 8, bottom: y + 8 };
    const free = taken.every((t) => room.right < t.left || room.left > t.right || room.bottom < t.top || room.top > t.bottom);
    if (free && room.right < inner.right && !dim) {
      taken.push(room);
      put(group, "text", { class: "halo", x: x + 9, y: y + 4 }, name);
    }
  }
}

// ---- The rounds

/// More dots are a black bar.
const MOST_DOTS = 2000;

function drawRounds() {
  const parent = byId("rounds");
  parent.replaceChildren();
  const all = data.rounds_us.map(nanos);
  if (!all.length) {
    byId("rounds-about").textContent = nothing;
    return;
  }
  const middle = median(all);
  const untilWhen = run.phases ? " until the last byte had come" : "";
  byId("rounds-about").textContent = all.length === 1
    ? `One round, ${time(all[0])}${untilWhen}; more of them (--rounds 30) show how they differ.`
    : `${counted(all.length, "round")}: median ${time(middle)}, from ${time(Math.min(...all))} to ${time(Math.max(...all))}${untilWhen}. ` +
      "Below the histogram a dot for each round, the first on top; the ring is the round in the diagram." +
      (all.length > MOST_DOTS ? ` Of the dots, every ${Math.ceil(all.length / MOST_DOTS)}th is drawn.` : "");
  // One time is no distribution.
  if (all.length === 1) return;
  const width = widthOf(parent, 620);
  const low = Math.min(...all, predictedNs);
  const high = Math.max(...all, predictedNs);
  const margin = (high - low) * 0.06;
  // Differences of a few percent look as small as they are.
  const x = { from: Math.max(0, Math.min(low - margin, middle * 0.9)), to: Math.max(high + margin, middle * 1.1) };
  x.name = `${run.phases ? "transfer" : "round time"}, ${timeUnit(x.to)}`;
  const bins = histogram(all, x, Math.min(40, Math.max(8, Math.round(2 * Math.sqrt(all.length)))));
  const tallest = Math.max(...bins);
  const strip = Math.min(180, Math.max(44, all.length * 6));
  const whole = (n) => (Number.isInteger(n) ? String(n) : "");
  const { root, inner, atX, atY } = frame(parent, {
    width, height: 24 + 200 + strip + 40, x, top: 24, bottom: 40, below: strip,
    y: { from: 0, to: tallest * 1.08, name: "rounds", write: whole },
    label: "Distribution of the round times",
  });
  const bin = (inner.right - inner.left) / bins.length;
  bins.forEach((n, i) => {
    if (!n) return;
    const bar = put(root, "rect", {
      class: "bin", x: inner.left + i * bin + 0.5, y: atY(n), width: Math.max(1, bin - 1), height: inner.bottom - atY(n),
    });
    put(bar, "title", {}, counted(n, "round"));
  });
  const top = inner.bottom + 12;
  const every = Math.ceil(all.length / MOST_DOTS);
  const atRound = (i) => top + (i / (all.length - 1)) * (strip - 24);
  all.forEach((ns, i) => {
    const isShown = i + 1 === data.shown.round;
    if (i % every && !isShown) return;
    put(put(root, "circle", { class: "dot", cx: atX(ns), cy: atRound(i), r: all.length > 200 ? 2 : 3 }), "title", {}, `round ${i + 1}: ${time(ns)}`);
    if (isShown) put(root, "circle", { class: "shown", cx: atX(ns), cy: atRound(i), r: 6 });
  });
  const marks = [[middle, "median", "median"], [predictedNs, "predicted", "predicted"]].sort((a, b) => a[0] - b[0]);
  // The two labels stand apart: the left one ends at its line, the right one begins there.
  const labels = marks.map(([ns], i) => {
    const left = i === 0 ? atX(ns) - 60 > inner.left : atX(ns) + 66 > inner.right;
    return { left, x: atX(ns) + (left ? -5 : 5) };
  });
  // At the edge of the chart both are at the same side of their lines.
  const [first, second] = labels;
  if (first.left && second.left) first.x = Math.min(first.x, second.x - 66);
  if (!first.left && !second.left) second.x = Math.max(second.x, first.x + 66);
  marks.forEach(([ns, kind, name], i) => {
    const { left, x } = labels[i];
    put(root, "path", { class: kind, d: `M${atX(ns)},${inner.top - 4}V${inner.bottom + strip}` });
    put(root, "text", { class: "halo", x, y: 14, "text-anchor": left ? "end" : "start" }, name);
  });
}

function histogram(values, { from, to }, n) {
  const bins = new Array(n).fill(0);
  for (const value of values) bins[Math.min(n - 1, Math.floor(((value - from) / (to - from || 1)) * n))] += 1;
  return bins;
}

// ---- The fit

/// More small charts are only drawn when asked for.
const FIRST_FITS = 12;

function drawFits(all = false) {
  const fits = data.fit ?? [];
  const parent = byId("fit");
  byId("fit-section").hidden = !fits.length;
  parent.replaceChildren();
  if (!fits.length) return;
  const unused = fits.flatMap((fit) => fit.points).filter((point) => !point.used).length;
  byId("fit-about").textContent =
    `What sending so many bytes took, and the line that was fitted through it: latency, then time for each byte` +
    ` beyond what an idle link lets through at once. ${unused ? `${counted(unused, "outlier")} (crosses) left out.` : "No point was left out."}`;
  const shown = all ? fits : fits.slice(0, FIRST_FITS);
  shown.forEach((fit) => drawFit(parent, fit));
  const more = byId("fit-all");
  more.hidden = shown.length === fits.length;
  more.textContent = `Show all ${fits.length}`;
  more.onclick = () => drawFits(true);
  document.body.dataset.fits = shown.length;
}

function drawFit(parent, fit) {
  const figure = put(parent, "figure");
  const upper = peOf.get(fit.edge)?.parent ?? "?";
  const ends = (fit.direction === "down" ? [upper, fit.edge] : [fit.edge, upper]).map(peName);
  const caption = put(figure, "figcaption");
  put(caption, "strong", {}, `${ends[0]} → ${ends[1]}`);
  const burst = fit.burst_bytes > 0 ? `, after the first ${bytes(fit.burst_bytes)}` : "";
  caption.append(` ${time(fit.latency_ns)} + ${digits(fit.ns_per_byte)}${THIN}ns/B${burst}`);
  const line = (b) => fit.latency_ns + fit.ns_per_byte * Math.max(0, b - fit.burst_bytes);
  const mostBytes = Math.max(1, ...fit.points.map((point) => point.bytes)) * 1.05;
  const mostNs = Math.max(1, line(mostBytes), ...fit.points.map((point) => point.ns)) * 1.05;
  const [, unit] = scaled(mostBytes, 1024, ["B", "KiB", "MiB", "GiB"]);
  const factor = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }[unit];
  const { root, atX, atY } = frame(figure, {
    width: widthOf(figure, 340), height: 190, left: 52, bottom: 36,
    x: { from: 0, to: mostBytes / factor, name: unit, write: (v) => String(Number(v.toFixed(3))) },
    y: { from: 0, to: mostNs, name: timeUnit(mostNs) },
    label: `Fit of the link from ${ends[0]} to ${ends[1]}`,
  });
  const knots = [0, Math.min(fit.burst_bytes, mostBytes), mostBytes];
  put(root, "path", { class: "ideal", d: `M${knots.map((b) => `${atX(b / factor)},${atY(line(b))}`).join("L")}` });
  for (const point of fit.points) {
    const [x, y] = [atX(point.bytes / factor), atY(point.ns)];
    const mark = point.used
      ? put(root, "circle", { class: "dot", cx: x, cy: y, r: 3 })
      : put(root, "path", { class: "unused", d: `M${x - 3},${y - 3}l6,6m0,-6l-6,6` });
    put(mark, "title", {}, `${bytes(point.bytes)}: ${time(point.ns)}${point.used ? "" : ", left out"}`);
  }
}
