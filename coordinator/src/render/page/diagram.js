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
  /// How far the rows are scrolled: asking the scroller for each bar would take long.
  scrolled: 0,
  shows: { measured: true, predicted: true, control: true, crossings: true },
  hovered: null,
  /// Where the pointer is, in canvas pixels; null elsewhere.
  pointer: null,
};

const rowOf = new Map(data.rows.map((pe, row) => [pe, row]));
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
  return AXIS + row * diagram.rowHeight - diagram.scrolled;
}

/// Lanes of a row: what is sent, what is received, and where there are files what is written.
const LANES = [runs.measured, runs.predicted].flat(2).some((span) => span.port === 2) ? 3 : 2;

/// Top and height of a span's bar: the send port's lane is above the receive port's,
/// and where both runs are shown, the measured one's bar is a bit lower.
function barPlace(span) {
  const { rowHeight, shows } = diagram;
  const lane = rowHeight / LANES;
  const pad = Math.min(3, lane * 0.14);
  const both = shows.measured && shows.predicted;
  const shift = both ? Math.min(5, lane * 0.26) : 0;
  const top = rowTop(rowOf.get(span.pe)) + span.port * lane + pad;
  return { top: top + (span.measured ? shift : 0), height: Math.max(1, lane - 2 * pad - shift) };
}

/// The first row that can be seen, and the first behind it that cannot.
function rowsInView() {
  const { scrolled, rowHeight, height } = diagram;
  const first = Math.max(0, Math.floor(scrolled / rowHeight));
  return [first, Math.min(data.rows.length, Math.ceil((scrolled + height - AXIS) / rowHeight))];
}

/// The spans of some rows that can be seen.
function visible(spans, [first, last] = rowsInView()) {
  const { from, to, shows } = diagram;
  const isSeen = (span) => span.begin <= to && span.end >= from && (shows.control || !span.control);
  return data.rows.slice(first, last).flatMap((pe) => (spans[pe] ?? []).filter(isSeen));
}

function resizeDiagram() {
  const { canvas, scroller } = diagram;
  const whole = AXIS + data.rows.length * diagram.rowHeight + 4;
  diagram.height = Math.round(Math.min(whole, Math.max(300, window.innerHeight * 0.82)));
  scroller.style.height = `${diagram.height + 2}px`;
  diagram.width = scroller.clientWidth;
  diagram.gutter = diagram.width < 560 ? 88 : 132;
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

function drawRows({ pen, soft, line }) {
  const { width, height, rowHeight } = diagram;
  data.rows.forEach((_, row) => {
    const top = rowTop(row);
    if (top > height || top + rowHeight < AXIS) return;
    if (row % 2 === 1) {
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
  const { unit, write } = axisTime(grid.step, Math.abs(diagram.to));
  let free = gutter;
  for (const at of grid.list) {
    const label = `${write(at)} ${unit}`;
    const half = pen.measureText(label).width / 2;
    const x = Math.max(gutter + half + 2, Math.min(toX(at), width - half - 2));
    if (x - half < free || toX(at) < gutter) continue;
    pen.fillStyle = muted;
    pen.textAlign = "center";
    pen.fillText(label, x, AXIS - 8);
    free = x + half + 8;
  }
  drawEnds(pen, [
    { at: roundNs, name: "measured", ink: text, dashes: [] },
    { at: predictedNs, name: "predicted", ink: accent, dashes: [5, 4] },
  ]);
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
    for (const label of [`${name} ${time(at)}`, time(at), name]) {
      const room = pen.measureText(label).width + 8;
      const place = sides
        .map((align) => (align === "left" ? { align, from: x, to: x + room } : { align, from: x - room, to: x }))
        .find(({ from, to }) => from > gutter && to < width && taken.every((t) => to <= t.from || from >= t.to));
      if (!place) continue;
      taken.push(place);
      pen.textAlign = place.align;
      pen.fillText(label, x + (place.align === "left" ? 5 : -5), 17);
      break;
    }
  });
  pen.setLineDash([]);
}

function drawGutter({ pen, back, soft, text, muted, line, font }) {
  const { gutter, height, rowHeight } = diagram;
  const narrow = gutter < 100;
  const [first] = rowsInView();
  pen.fillStyle = back;
  pen.fillRect(0, AXIS, gutter, height - AXIS);
  const every = Math.max(1, Math.ceil(11 / rowHeight));
  const size = Math.min(13, Math.max(9, rowHeight * 0.62));
  const deepest = Math.max(1, ...run.pes.map((pe) => pe.depth));
  const indent = Math.min(9, (gutter - (narrow ? 74 : 90)) / deepest);
  const stem = (pe) => 7 + peOf.get(pe).depth * indent;
  const middle = (row) => rowTop(row) + rowHeight / 2;
  pen.textBaseline = "middle";
  for (let row = first; row < data.rows.length && rowTop(row) < height; row += 1) {
    if (row % 2 === 1) {
      pen.fillStyle = soft;
      pen.fillRect(0, rowTop(row), gutter, rowHeight);
    }
  }
  // The tree, turned so that every PE stands at its row.
  pen.strokeStyle = muted;
  pen.lineWidth = 1;
  pen.globalAlpha = rowHeight < 8 ? 0.4 : 0.75;
  pen.beginPath();
  data.rows.forEach((pe, row) => {
    const { parent } = peOf.get(pe);
    if (parent === null || indent < 1) return;
    const above = middle(rowOf.get(parent));
    if (above > height || middle(row) < AXIS) return;
    pen.moveTo(stem(parent), Math.max(above, AXIS));
    pen.lineTo(stem(parent), middle(row));
    pen.lineTo(stem(pe), middle(row));
  });
  pen.stroke();
  pen.globalAlpha = 1;
  for (let row = first; row < data.rows.length && rowTop(row) < height; row += 1) {
    const pe = data.rows[row];
    if (rowHeight >= 8) {
      pen.fillStyle = muted;
      pen.beginPath();
      pen.arc(stem(pe), middle(row), Math.min(2.5, rowHeight * 0.15), 0, 2 * Math.PI);
      pen.fill();
    }
    if (row % every !== 0) continue;
    const { parent } = peOf.get(pe);
    pen.textAlign = "right";
    pen.fillStyle = text;
    pen.font = `600 ${size}px ${font}`;
    pen.fillText(`P${pe}`, gutter - (narrow ? 34 : 46), middle(row));
    if (parent === null) continue;
    pen.fillStyle = muted;
    pen.font = `${Math.min(size, narrow ? 10 : 12)}px ${font}`;
    pen.fillText(`‹${narrow ? "" : " "}P${parent}`, gutter - (narrow ? 4 : 8), middle(row));
  }
  pen.fillStyle = line;
  pen.fillRect(gutter - 1, AXIS, 1, height - AXIS);
}
