// The space-time diagram: what is where, and how it is drawn. What a hand does with
// it is in hand.js.

const AXIS = 44;
const diagram = {
  canvas: byId("canvas"),
  /// All but what follows the pointer, so that a move of it draws nothing anew.
  base: document.createElement("canvas"),
  scroller: byId("scroller"),
  /// The times at the left and at the right edge, in nanoseconds.
  from: 0,
  to: 1,
  /// All there is to see.
  begin: 0,
  end: 1,
  rowHeight: 40,
  width: 0,
  height: 0,
  gutter: 90,
  /// Width of the names of parents in it.
  parents: 38,
  /// Height of all rows.
  rows: 0,
  /// How far the rows are scrolled: asking the scroller for each bar would take long.
  scrolled: 0,
  shows: { measured: true, predicted: true, control: true, crossings: true, path: true },
  hovered: null,
  /// Where the pointer is, in canvas pixels; null elsewhere.
  pointer: null,
};

const roundNs = nanos(data.shown.round_us);
const predictedNs = nanos(run.round.predicted_us);

function extent() {
  let begin = 0;
  let end = Math.max(roundNs, predictedNs, 1000);
  for (const spans of [runs.measured, runs.predicted]) {
    for (const list of spans) {
      for (const span of list) {
        begin = Math.min(begin, span.begin);
        end = Math.max(end, span.end);
      }
    }
  }
  const margin = (end - begin) * 0.01;
  diagram.begin = begin - margin;
  diagram.end = end + margin;
}

function toX(ns) {
  const { from, to, gutter, width } = diagram;
  return gutter + ((ns - from) / (to - from)) * (width - gutter);
}

function toTime(x) {
  const { from, to, gutter, width } = diagram;
  return from + ((x - gutter) / (width - gutter)) * (to - from);
}

function rowTop(row) {
  return AXIS + tops[row] - diagram.scrolled;
}

/// Lanes of a row: what is sent, what is received, and where there are files what is written.
const LANES = [runs.measured, runs.predicted].flat(2).some((span) => span.port === 2) ? 3 : 2;

/// Top and height of a span's bar: the send port's lane is above the receive port's,
/// and where both runs are shown, the measured one's bar is a bit lower.
function barPlace(span) {
  const row = rowOf.get(span.pe);
  const lane = heights[row] / LANES;
  const pad = Math.min(3, lane * 0.14);
  const shift = showsBoth(row) ? Math.min(5, lane * 0.26) : 0;
  const top = rowTop(row) + span.port * lane + pad;
  return { top: top + (span.measured ? shift : 0), height: Math.max(1, lane - 2 * pad - shift) };
}

/// Whether a row shows the predicted bars beside the measured ones.
function showsBoth(row) {
  return diagram.shows.measured && diagram.shows.predicted && heights[row] >= LOW;
}

/// The first row that can be seen, and the first behind it that cannot.
function rowsInView() {
  const { scrolled, height } = diagram;
  return [rowBelow(scrolled), Math.min(data.rows.length, rowBelow(scrolled + height - AXIS) + 1)];
}

/// The spans of some rows that can be seen.
function visible(spans, [first, last] = rowsInView()) {
  const { from, to, shows } = diagram;
  const isSeen = (span) => span.since <= to && span.end >= from && (shows.control || !span.control);
  const isHidden = (row) => spans === runs.predicted && shows.measured && !showsBoth(row);
  const list = [];
  for (let row = first; row < last; row += 1) {
    if (!isHidden(row)) list.push(...(spans[data.rows[row]] ?? []).filter(isSeen));
  }
  return list;
}

function resizeDiagram() {
  const { canvas, scroller } = diagram;
  const whole = AXIS + placeRows(diagram.rowHeight) + 4;
  diagram.height = Math.round(Math.min(whole, Math.max(300, window.innerHeight * 0.82)));
  scroller.style.height = `${diagram.height + 2}px`;
  diagram.width = scroller.clientWidth;
  const isNarrow = diagram.width < 560;
  const longest = Math.max(...data.names.map((name) => name.length));
  const parents = isNarrow ? 26 : 38;
  // Names of parents have no room in narrow windows, where the tree alone shows them.
  const named = isNarrow ? 0 : 20 + 7 * Math.min(LONGEST_NAME, longest - 3);
  diagram.parents = !data.is_over_tree ? 0 : hasNames ? named : parents;
  const [usual, most] = isNarrow ? [88, 150] : [132, 320];
  const more = data.is_over_tree ? diagram.parents - parents : 0;
  diagram.gutter = Math.min(most, usual + Math.max(0, 7.6 * longest - 16) + more);
  const ratio = window.devicePixelRatio || 1;
  for (const sheet of [canvas, diagram.base]) {
    sheet.width = Math.round(diagram.width * ratio);
    sheet.height = Math.round(diagram.height * ratio);
  }
  canvas.style.width = `${diagram.width}px`;
  canvas.style.height = `${diagram.height}px`;
  byId("spacer").style.height = `${whole - diagram.height}px`;
}

let asked = null;
/// Draws with the next frame: all, or what follows the pointer.
function redraw(draw = drawDiagram) {
  if (asked === null) {
    requestAnimationFrame(() => {
      const draw = asked;
      asked = null;
      draw();
    });
  }
  if (asked !== drawDiagram) asked = draw;
}

/// A sheet's pen and the page's colours.
function paperOf(sheet) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const pen = sheet.getContext("2d");
  const ratio = sheet.width / diagram.width;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return {
    pen,
    back: colour("back"),
    soft: colour("soft"),
    text: colour("ink"),
    muted: colour("muted"),
    line: colour("line"),
    accent: colour("accent"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

/// The places of texts among the bars.
const claimed = [];

/// Takes a place for a text; whether it was free.
function claim(room) {
  const isFree = claimed.every(
    (one) => room.right < one.left || room.left > one.right || room.bottom < one.top || room.top > one.bottom,
  );
  if (isFree) claimed.push(room);
  return isFree;
}

function drawDiagram() {
  const { base, width, height, shows, gutter } = diagram;
  diagram.scrolled = diagram.scroller.scrollTop;
  const paper = paperOf(base);
  const { pen } = paper;
  pen.fillStyle = paper.back;
  pen.fillRect(0, 0, width, height);
  drawRows(paper);
  const grid = drawGrid(paper);
  pen.save();
  pen.beginPath();
  pen.rect(gutter, AXIS, width - gutter, height - AXIS);
  pen.clip();
  if (shows.crossings) drawCrossings(paper);
  const drawn = { measured: 0, predicted: 0 };
  for (const name of ["measured", "predicted"]) {
    if (shows[name]) drawn[name] = drawBars(paper, runs[name]);
  }
  claimed.length = 0;
  if (shows.path && shows.measured) {
    drawPath(paper);
    drawDelays(paper);
  }
  for (const name of ["predicted", "measured"]) {
    if (shows[name]) nameBars(paper, runs[name]);
  }
  pen.restore();
  drawGutter(paper);
  drawAxis(paper, grid);
  document.body.dataset.measuredBars = drawn.measured;
  document.body.dataset.predictedBars = drawn.predicted;
  drawPointer();
}

/// What follows the pointer, over the rest.
function drawPointer() {
  const { canvas, base, width, height, gutter } = diagram;
  const paper = paperOf(canvas);
  const { pen } = paper;
  pen.drawImage(base, 0, 0, width, height);
  if (diagram.hovered) {
    pen.save();
    pen.beginPath();
    pen.rect(gutter, AXIS, width - gutter, height - AXIS);
    pen.clip();
    outline(paper, diagram.hovered);
    pen.restore();
  }
  if (diagram.pointer && diagram.pointer.x > gutter) drawCursor(paper, Math.round(diagram.pointer.x));
}

/// Whether a row is shaded: every other one, or all of every other folded group.
function isShaded(row) {
  const group = groupOf(row);
  return (group.open ? row : groups.indexOf(group)) % 2 === 1;
}

function drawRows({ pen, soft, line }) {
  const { width, height } = diagram;
  data.rows.forEach((_, row) => {
    const [top, rowHeight] = [rowTop(row), heights[row]];
    if (top > height || top + rowHeight < AXIS) return;
    if (isShaded(row)) {
      pen.fillStyle = soft;
      pen.fillRect(0, top, width, rowHeight);
    }
    if (rowHeight >= 14) {
      pen.fillStyle = line;
      pen.globalAlpha = 0.55;
      for (let lane = 1; lane < LANES; lane++) {
        pen.fillRect(diagram.gutter, top + (lane * rowHeight) / LANES, width - diagram.gutter, 0.5);
      }
      pen.globalAlpha = 1;
    }
  });
}

function drawGrid({ pen, line }) {
  const { from, to, width, height, gutter } = diagram;
  const grid = ticks(from, to, (width - gutter) / 95);
  pen.fillStyle = line;
  for (const at of grid.list) pen.fillRect(Math.round(toX(at)), AXIS, 1, height - AXIS);
  return grid;
}

function drawAxis({ pen, text, muted, back, line, accent, font }, grid) {
  const { width, gutter } = diagram;
  pen.fillStyle = back;
  pen.fillRect(0, 0, width, AXIS);
  pen.fillStyle = line;
  pen.fillRect(0, AXIS - 1, width, 1);
  pen.font = `12px ${font}`;
  pen.textBaseline = "alphabetic";
  drawEnds(pen, [
    { at: roundNs, name: "measured", ink: text, dashes: [] },
    { at: predictedNs, name: "predicted", ink: accent, dashes: [5, 4] },
  ]);
  const { unit, write } = axisTime(grid.step, Math.abs(diagram.to));
  let free = gutter;
  for (const at of grid.list) {
    const label = `${write(at)} ${unit}`;
    const half = pen.measureText(label).width / 2;
    const x = Math.max(gutter + half + 2, Math.min(toX(at), width - half - 2));
    if (x - half < free || toX(at) < gutter) continue;
    // The lines of measured and predicted ends do not run through this text.
    pen.fillStyle = back;
    pen.fillRect(x - half - 2, AXIS - 21, 2 * half + 4, 18);
    pen.fillStyle = muted;
    pen.textAlign = "center";
    pen.fillText(label, x, AXIS - 8);
    free = x + half + 8;
  }
}

/// The pointer's place in time.
function drawCursor({ pen, text, muted, back, font }, x) {
  const { gutter, width, height } = diagram;
  pen.fillStyle = muted;
  pen.globalAlpha = 0.7;
  pen.fillRect(x, AXIS, 1, height - AXIS);
  pen.globalAlpha = 1;
  pen.font = `12px ${font}`;
  const label = time(toTime(x));
  const half = pen.measureText(label).width / 2 + 5;
  const middle = Math.min(Math.max(x, gutter + half), width - half);
  pen.fillStyle = text;
  pen.fillRect(middle - half, AXIS - 22, 2 * half, 19);
  pen.fillStyle = back;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.fillText(label, middle, AXIS - 8);
}

/// When the round was over, measured and predicted: a line each, named where there is
/// room, the earlier one rather at its left.
function drawEnds(pen, all) {
  const { gutter, width, height, shows } = diagram;
  const inView = ({ at, name }) => at > 0 && shows[name] && toX(at) > gutter && toX(at) < width;
  const ends = all.filter(inView).sort((a, b) => a.at - b.at);
  const taken = [];
  ends.forEach(({ at, name, ink, dashes }, i) => {
    const x = toX(at);
    pen.strokeStyle = pen.fillStyle = ink;
    pen.lineWidth = 1.5;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(x, 6);
    pen.lineTo(x, height);
    pen.stroke();
    const sides = ends.length > 1 && i === 0 ? ["right", "left"] : ["left", "right"];
    const placed = (label, align, edge) => {
      const room = pen.measureText(label).width + 8;
      const from = align === "left" ? edge : edge - room;
      return { label, align, from, to: from + room };
    };
    const labels = [`${name} ${time(at)}`, time(at), name];
    const places = labels.flatMap((label) => sides.map((align) => placed(label, align, x)));
    // Where there is no room at the line, it stands at the left of the other name, in the colour of its line.
    if (taken.length) places.push(...labels.map((label) => placed(label, "right", taken[0].from)));
    const isFree = ({ from, to }) => from > gutter && to < width && taken.every((t) => to <= t.from || from >= t.to);
    const place = places.find(isFree);
    if (!place) return;
    taken.push(place);
    pen.textAlign = place.align;
    pen.fillText(place.label, place.align === "left" ? place.from + 5 : place.to - 5, 17);
  });
  pen.setLineDash([]);
}

/// The tree at the left, turned so that every PE stands at its row.
function drawTree({ pen, muted }, stem) {
  const middle = (row) => rowTop(row) + heights[row] / 2;
  pen.strokeStyle = muted;
  pen.lineWidth = 1;
  pen.globalAlpha = heights[0] < 8 ? 0.4 : 0.75;
  pen.beginPath();
  data.rows.forEach((pe, row) => {
    const { parent } = peOf.get(pe);
    if (parent === null) return;
    const above = middle(rowOf.get(parent));
    if (above > diagram.height || middle(row) < AXIS) return;
    pen.moveTo(stem(parent), Math.max(above, AXIS));
    pen.lineTo(stem(parent), middle(row));
    pen.lineTo(stem(pe), middle(row));
  });
  pen.stroke();
  pen.globalAlpha = 1;
  pen.fillStyle = muted;
  data.rows.forEach((pe, row) => {
    if (heights[row] < 8 || middle(row) < AXIS || middle(row) > diagram.height) return;
    pen.beginPath();
    pen.arc(stem(pe), middle(row), Math.min(2.5, heights[row] * 0.15), 0, 2 * Math.PI);
    pen.fill();
  });
}

function drawGutter(paper) {
  const { pen, back, soft, text, muted, line, font } = paper;
  const { gutter, height } = diagram;
  pen.fillStyle = back;
  pen.fillRect(0, AXIS, gutter, height - AXIS);
  const [first, last] = rowsInView();
  for (let row = first; row < last; row += 1) {
    if (!isShaded(row)) continue;
    pen.fillStyle = soft;
    pen.fillRect(0, rowTop(row), gutter, heights[row]);
  }
  let left = 6;
  if (data.is_over_tree) {
    const deepest = Math.max(1, ...run.pes.map((pe) => pe.depth));
    pen.font = `600 12px ${font}`;
    const names = groups.filter((group) => !group.open).flatMap(groupName).map((line) => pen.measureText(line).width);
    const indent = Math.min(9, (gutter - Math.max(74, ...names.map((width) => width + 19))) / deepest);
    left = 16 + deepest * indent;
    if (indent >= 1) drawTree(paper, (pe) => 7 + peOf.get(pe).depth * indent);
  }
  pen.textBaseline = "middle";
  for (const group of groups) {
    if (group.open) {
      for (let row = Math.max(first, group.first); row < Math.min(last, group.last); row += 1) nameRow(paper, row, left);
      if (!areGrouped()) continue;
    }
    const row = group.open ? group.first : group.last - 1;
    const tall = rowTop(row) + heights[row] - rowTop(group.first);
    const lines = group.open ? ["▾"] : groupName(group).slice(0, tall < 28 ? 1 : 2);
    lines.forEach((line, i) => {
      const y = rowTop(group.first) + tall / 2 + (i - (lines.length - 1) / 2) * 14;
      pen.textAlign = group.open ? "left" : "right";
      pen.font = `${i ? "" : "600 "}12px ${font}`;
      pen.fillStyle = group.open || i ? muted : text;
      if (y > AXIS + 6) pen.fillText(line, group.open ? 2 : gutter - 8, y);
    });
  }
  pen.fillStyle = line;
  pen.fillRect(gutter - 1, AXIS, 1, height - AXIS);
}

/// A PE's name, and its parent where there is room; every few rows where rows are low.
function nameRow({ pen, text, muted, font }, row, left) {
  const height = heights[row];
  if (row % Math.max(1, Math.ceil(11 / height)) !== 0) return;
  const pe = data.rows[row];
  const y = rowTop(row) + height / 2;
  const size = Math.min(13, Math.max(9, height * 0.62));
  let right = diagram.gutter - 8;
  const { parent } = peOf.get(pe);
  const isNarrow = diagram.parents < 30;
  pen.textAlign = "right";
  if (diagram.parents && parent !== null) {
    pen.fillStyle = muted;
    pen.font = `${Math.min(size, isNarrow ? 10 : 12)}px ${font}`;
    const name = shortened(shortName(parent), LONGEST_NAME);
    pen.fillText(`‹${isNarrow ? "" : " "}${name}`, isNarrow ? right + 4 : right, y);
  }
  right -= diagram.parents;
  pen.fillStyle = text;
  pen.font = `600 ${size}px ${font}`;
  const short = shortName(pe);
  const names = [data.names[pe], ...[short.length, 8, 6, 4].map((most) => shortened(short, most))];
  const fits = (name) => left + pen.measureText(name).width <= right;
  pen.fillText(names.find(fits) ?? `P${pe}`, right, y);
}
