// What is written rather than drawn: the summary and the table.

function drawSummary() {
  const { round } = run;
  const algorithm = run.sync ? `${run.algorithm}, ${run.sync}` : run.algorithm;
  document.title = `${data.title} – Flitcast`;
  byId("title").textContent = data.title;
  // Lines break between words, not within --options.
  data.command.split(" ").forEach((word, i) => {
    if (i) byId("command").append(" ");
    put(byId("command"), "span", {}, word);
  });

  const tile = (value, name) => {
    const box = put(byId("tiles"), "div", { class: "tile" });
    put(box, "b", {}, value);
    put(box, "span", {}, name);
  };
  // With files a round lasts until they can be seen.
  const { predicted_us, measured_us: spread } = run.phases?.whole ?? round;
  tile(time(nanos(predicted_us)), "predicted round time");
  if (spread) {
    const many = run.rounds > 1;
    const range = many ? `, ${time(nanos(spread.min))} to ${time(nanos(spread.max))}` : "";
    tile(time(nanos(spread.median)), many ? `measured, median of ${run.rounds}${range}` : "measured round time");
  }
  if (spread?.median) {
    const error = offBy(predicted_us, spread.median);
    tile(percent(error), `the prediction is ${isNothing(error) ? "right" : error < 0 ? "too low" : "too high"}`);
  }
  if (round.goodput_bytes_per_s !== null) tile(rate(round.goodput_bytes_per_s), "goodput");

  const fact = (name, value) => {
    const line = put(byId("facts"), "div");
    put(line, "dt", {}, name);
    put(line, "dd", {}, value);
  };
  fact("Operation", run.operation);
  fact("Algorithm", algorithm);
  const deepest = Math.max(...run.pes.map((pe) => pe.depth));
  const count = counted(run.pes.length, "PE");
  if (data.is_over_tree) fact("Tree", `${run.tree}: ${count}, depth ${deepest}`);
  else fact("Network", `${run.tree}: ${count}`);
  fact("Messages", lengthsInWords());
  const why = run.flit_choice;
  const instead = why ? `: ${time(nanos(why.predicted_us))} instead of ${time(nanos(why.usual_us))} at 64${THIN}KiB` : "";
  fact("Flits", `of ${bytes(run.flit_bytes)}${instead}`);
  const { trees } = run;
  if (trees?.dealt) fact("Trees", `${trees.count} at once, ${trees.dealt}: ${time(nanos(trees.predicted_us))} instead of ${time(nanos(trees.one_us))} on one`);
  else if (trees) fact("Trees", `one: ${trees.why_one}`);
  fact("Rounds", run.rounds.toLocaleString("en"));
  if (run.edges.length) fact("Links", linksInWords());
  if (!isOfPairs) fact("Waited", `${counted(round.collisions, "flit")} for a busy port`);
  if (run.phases) {
    const beside = ({ predicted_us, measured_us }) => `predicted ${time(nanos(predicted_us))}, measured ${time(nanos(measured_us.median))}`;
    fact("Transfer", `${beside(run.phases.transfer)}, until the last byte had come`);
    const disk = run.phases.disk;
    const hasDisk = disk.predicted_us > 0 || disk.measured_us.median > 0;
    if (hasDisk) fact("Disk", `${beside(disk)}: the longest wait of a PE for its files, a part of the transfer`);
    fact("Commit", `${beside(run.phases.commit)}, from the last byte until everything was durable and visible`);
  }
  const kept = counted(round.peak_buffered_flits, "flit");
  if (isOfPairs) fact("Held", `at most ${kept} of others' messages in a PE`);
  else fact("Buffered", `at most ${kept} of a passing message in a PE`);
  fact("Launch", `${counted(run.pes.length, "process", "processes")} up in ${time(nanos(run.launch_us))}, edges measured in ${time(nanos(run.probe_us))}`);
  byId("foot").textContent = `Made by flitcast ${data.flitcast}. This file is all there is: nothing is loaded from elsewhere.`;
}

function lengthsInWords() {
  if (isOfPairs) return `${counted(run.round.messages, "message")}, ${bytes(run.round.bytes)}`;
  const lengths = run.pes.filter((pe) => pe.pe !== rootPe).map((pe) => pe.bytes).filter((n) => n > 0);
  if (!lengths.length) return "none";
  if (isForAll) return `${counted(run.round.messages, "message")}, ${bytes(run.round.bytes)}, for ${counted(lengths.length, "PE")}`;
  const [least, most] = [Math.min(...lengths), Math.max(...lengths)];
  const each = least === most ? (lengths.length > 1 ? `each ${bytes(least)}` : "") : `${bytes(least)} to ${bytes(most)}`;
  const nulls = run.pes.length - 1 - lengths.length;
  return [counted(lengths.length, "message"), bytes(run.round.bytes), each, nulls ? `${nulls} null` : ""].filter(Boolean).join(", ");
}

function linksInWords() {
  const links = run.edges.flatMap((edge) => [edge.down, edge.up]);
  const range = (values, write) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map(write);
    return least === most ? least : `${write(median(values))} (${least} to ${most})`;
  };
  const latency = range(links.map((link) => link.latency_us * 1000), time);
  const speed = range(links.filter((link) => link.ns_per_byte > 0).map((link) => 1e9 / link.ns_per_byte), rate);
  return `latency ${latency}, rate ${speed}`;
}

function drawAbout() {
  const { shown } = data;
  const which = run.rounds > 1 ? `Round ${shown.round} of ${run.rounds}, the one nearest to the median` : "The round";
  const predicted = runs.predicted.some((list) => list.length)
    ? " Filled bars were measured; hatched ones, a little higher, were predicted."
    : " The prediction tells no more than the end.";
  const cut = shown.pes_with_spans_left_out.map(peName).join(", ");
  byId("diagram-about").textContent =
    `${which}: time to the right, from ${peName(rootPe)}'s trigger; a row for each PE${data.is_over_tree ? ", each below its parent (‹)" : ""}` +
    `${areGrouped() ? `, in groups of ${groups[0].last} that are folded, where measured bars alone are shown` : ""}. ` +
    (LANES === 3
      ? "In the upper third of a row its send port, then its receive port, and below what it writes until it is durable and visible."
      : "In the upper half of a row its send port, in the lower half its receive port.") +
    predicted +
    (cut ? ` ${cut} did more than can be kept: what they did last is not shown.` : "");
}

function drawLegend() {
  const list = byId("legend");
  list.replaceChildren();
  const dark = theme.dark ? 1 : 0;
  const [fill, ...inks] = data.palette[0];
  const entry = (text, draw) => {
    const item = put(list, "li");
    draw(put(item, "svg", { width: 30, height: 16, "aria-hidden": "true" }));
    item.append(text);
  };
  const [one] = messages.values();
  const [from, to] = one ? [one.source, one.destination ?? "all"].map((pe) => (pe === "all" ? pe : peName(pe))) : [];
  const which = { scatter: `to ${to}`, gather: `from ${from}`, gossip: `from ${from} to all` }[run.operation] ?? `from ${from} to ${to}`;
  entry(`message, measured${one ? ` (${itemName(one.id)}: ${which})` : ""}`, (svg) =>
    put(svg, "rect", { x: 1, y: 3, width: 28, height: 10, fill, "fill-opacity": 0.82, stroke: inks[dark] }));
  entry("predicted", (svg) => {
    put(svg, "rect", { x: 1, y: 3, width: 28, height: 10, fill: "none", stroke: inks[dark], "stroke-width": 1.25 });
    const lines = [1, 7, 13, 19].map((x) => `M${x},13l10,-10`).join("");
    put(svg, "path", { d: lines, stroke: inks[dark], "stroke-width": 1, "stroke-opacity": 0.55 });
  });
  const all = [...runs.measured, ...runs.predicted].flat();
  if (all.some((span) => span.since < span.begin)) {
    entry("on its way", (svg) => put(svg, "rect", { x: 1, y: 4, width: 28, height: 8, fill, "fill-opacity": 0.35 }));
  }
  entry("crossing", (svg) =>
    put(svg, "path", { d: "M1,2H19L29,14H11Z", fill, "fill-opacity": 0.25 }));
  if (critical.path.length) {
    entry("critical path", (svg) => put(svg, "path", { d: "M1,4H14L18,12H29", class: "median" }));
  }
  if (critical.delays.length) {
    entry("fell behind the prediction", (svg) => put(svg, "path", { d: svgMark("triangle", 15, 8, 5), fill: lateInk() }));
  }
  const present = new Set(all.filter((span) => span.control).map((span) => span.item));
  for (const [name, { mark, inks: two }] of Object.entries(KINDS)) {
    if (!present.has(name)) continue;
    entry(name, (svg) => {
      put(svg, "path", { d: "M15,1V15", stroke: two[dark], "stroke-width": 1.5 });
      put(svg, "path", { d: svgMark(mark, 15, 8, 4.5), fill: two[dark] });
    });
  }
}

/// The mark as an SVG path.
function svgMark(mark, x, y, r) {
  let path = "";
  markPath({
    moveTo: (px, py) => (path += `M${px},${py}`),
    lineTo: (px, py) => (path += `L${px},${py}`),
    closePath: () => (path += "Z"),
    arc: (cx, cy, radius) => (path += `A${radius},${radius} 0 1 1 ${cx - radius},${cy}A${radius},${radius} 0 1 1 ${cx + radius},${cy}Z`),
  }, mark, x, y, r);
  return path;
}

// ---- The table

const OF_TREES = ["parent", "depth"];
const COLUMNS = [
  ["PE", (pe) => pe.name, (pe) => rowOf.get(pe.pe)],
  ["parent", (pe) => (pe.parent === null ? "–" : peName(pe.parent)), (pe) => pe.parent ?? -1],
  ["depth", (pe) => pe.depth, (pe) => pe.depth],
  ["bytes", (pe) => (pe.pe === rootPe && !isOfPairs ? "–" : bytes(pe.bytes)), (pe) => pe.bytes],
  ["predicted", (pe) => time(pe.predicted), (pe) => pe.predicted ?? -1],
  ["measured", (pe) => time(pe.measured), (pe) => pe.measured ?? -1],
  ["fastest", (pe) => time(pe.least), (pe) => pe.least ?? -1],
  ["slowest", (pe) => time(pe.most), (pe) => pe.most ?? -1],
  ["error", (pe) => (errorOf(pe) === null ? "–" : percent(errorOf(pe))), (pe) => errorOf(pe) ?? -Infinity],
  ["peak memory", (pe) => bytes(pe.peak_resident_bytes), (pe) => pe.peak_resident_bytes],
];
const sorting = { column: 0, up: true };

/// How far the prediction is from what was measured, in percent of the latter.
const offBy = (predicted, measured) => ((predicted - measured) / measured) * 100;

function errorOf(pe) {
  return !pe.measured || pe.predicted === null ? null : offBy(pe.predicted, pe.measured);
}

function drawTable() {
  const table = byId("table");
  const left = [...(run.rounds > 1 ? [] : ["fastest", "slowest"]), ...(data.is_over_tree ? [] : OF_TREES)];
  const columns = COLUMNS.filter(([name]) => !left.includes(name));
  table.replaceChildren();
  const head = put(put(table, "thead"), "tr");
  columns.forEach(([name], i) => {
    const sorted = sorting.column === i ? (sorting.up ? "ascending" : "descending") : "none";
    const cell = put(head, "th", { scope: "col", "aria-sort": sorted });
    const arrow = { ascending: " ▲", descending: " ▼", none: "" }[sorted];
    const button = put(cell, "button", { type: "button", title: "Sort" }, name + arrow);
    button.addEventListener("click", () => {
      sorting.up = sorting.column === i ? !sorting.up : true;
      sorting.column = i;
      drawTable();
    });
  });
  const body = put(table, "tbody");
  const [, , key] = columns[sorting.column];
  const sign = sorting.up ? 1 : -1;
  for (const pe of [...pes].sort((a, b) => sign * (key(a) - key(b)) || a.pe - b.pe)) {
    const message = messageOf(pe.pe);
    const row = put(body, "tr", message !== null && message === chosen ? { class: "chosen" } : {});
    columns.forEach(([name, write], i) => {
      const far = name === "error" && Math.abs(errorOf(pe) ?? 0) > 10;
      const cell = put(row, "td", far ? { class: "far" } : {});
      if (i === 0 && messages.has(message)) {
        put(cell, "i").style.background = colours(message)[0];
      }
      cell.append(write(pe));
    });
    if (messages.has(message)) row.addEventListener("click", () => choose(chosen === message ? null : message));
  }
}
