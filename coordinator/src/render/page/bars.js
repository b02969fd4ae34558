// What the diagram's lanes hold: bars of messages, ticks of control items, and what
// crosses between two PEs.

const hatches = new Map();

/// A pattern of slanted lines in a colour.
function hatch(pen, colour) {
  if (!hatches.has(colour)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.strokeStyle = colour;
    ink.lineWidth = 1;
    for (const off of [-6, 0, 6]) {
      ink.moveTo(off, 6);
      ink.lineTo(off + 6, 0);
    }
    ink.stroke();
    hatches.set(colour, pen.createPattern(tile, "repeat"));
  }
  return hatches.get(colour);
}

function isDim(span) {
  return chosen !== null && span.item !== chosen;
}

function kindInk(span) {
  return KINDS[span.item].inks[theme.dark ? 1 : 0];
}

/// Draws one run's bars and ticks; how many.
function drawBars(paper, spans) {
  let drawn = 0;
  const control = [];
  for (const span of visible(spans)) {
    drawn += 1;
    if (span.control) control.push(span);
    else drawBar(paper, span);
  }
  // A tick is thin: nothing may hide it.
  for (const span of control) drawTick(paper, span);
  paper.pen.globalAlpha = 1;
  return drawn;
}

function drawBar({ pen }, span) {
  const { top, height } = barPlace(span);
  const left = toX(span.begin);
  const width = Math.max(toX(span.end) - left, 2);
  const [fill] = colours(span.item);
  const edge = ink(span.item);
  const dim = isDim(span);
  const room = left - toX(span.since);
  if (room >= 1) {
    pen.globalAlpha = (dim ? 0.06 : 0.35) * (span.measured ? 1 : 0.5);
    pen.fillStyle = fill;
    pen.fillRect(left - room, top + height * 0.15, room, Math.max(1, height * 0.7));
  }
  if (width < 3) {
    // Too thin for more than one colour: the one that stands out more.
    pen.globalAlpha = dim ? 0.12 : span.measured ? 0.82 : 0.6;
    pen.fillStyle = span.measured && !theme.dark ? fill : edge;
    pen.fillRect(left, top, width, height);
    return;
  }
  if (!span.measured) {
    pen.globalAlpha = dim ? 0.1 : 0.55;
    pen.fillStyle = hatch(pen, edge);
    pen.fillRect(left, top, width, height);
    pen.globalAlpha = dim ? 0.2 : 1;
    pen.strokeStyle = edge;
    pen.lineWidth = height < 5 ? 0.75 : 1.25;
    pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
    return;
  }
  pen.globalAlpha = dim ? 0.12 : 0.82;
  pen.fillStyle = fill;
  pen.fillRect(left, top, width, height);
  if (height > 3) {
    pen.globalAlpha = dim ? 0.2 : 1;
    pen.strokeStyle = edge;
    pen.lineWidth = 1;
    pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
  }
}

/// Messages' names where there is room for them: on what was measured, and on what was
/// predicted where that is shown alone.
function nameBars({ pen, font, back }, spans) {
  if (spans === runs.predicted && diagram.shows.measured) return;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  pen.lineWidth = 3;
  for (const span of visible(spans)) {
    const right = toX(span.end);
    const isSolid = span.measured && right - toX(span.begin) >= 24;
    const left = toX(isSolid ? span.begin : span.since);
    const { top, height } = barPlace(span);
    if (span.control || right - left < 24 || height < 9) continue;
    const shown = Math.max(left, diagram.gutter) + 4;
    const label = itemName(span.item);
    pen.font = `600 ${Math.min(12, height * 0.9)}px ${font}`;
    const end = shown + pen.measureText(label).width;
    if (end + 4 > right || !claim({ left: shown, right: end, top, bottom: top + height })) continue;
    pen.globalAlpha = isDim(span) ? 0.3 : 1;
    // Hatches of the prediction may lie below.
    pen.strokeStyle = isSolid ? colours(span.item)[0] : back;
    pen.strokeText(label, shown, top + height / 2 + 0.5);
    pen.fillStyle = isSolid ? (isBright(colours(span.item)[0]) ? "#101318" : "#ffffff") : ink(span.item);
    pen.fillText(label, shown, top + height / 2 + 0.5);
  }
  pen.globalAlpha = 1;
}

/// Whether black is better to read on it than white. Bars let a dark background through, too.
function isBright(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > (theme.dark ? 0.25 : 0.18);
}

function drawTick({ pen, back }, span) {
  const { top, height } = barPlace(span);
  const left = toX(span.begin);
  const width = toX(span.end) - left;
  const colour = kindInk(span);
  const faint = isDim(span) ? 0.25 : 1;
  if (width > 3) {
    pen.globalAlpha = 0.28 * faint;
    pen.fillStyle = span.measured ? colour : hatch(pen, colour);
    pen.fillRect(left, top + height * 0.25, width, height * 0.5);
  }
  pen.globalAlpha = faint;
  pen.fillStyle = colour;
  pen.fillRect(left - 0.75, top, 1.5, height);
  const size = Math.min(4.5, height * 0.32);
  if (size < 2) return;
  pen.beginPath();
  markPath(pen, KINDS[span.item].mark, left, top + height / 2, size);
  pen.fillStyle = span.measured ? colour : back;
  pen.fill();
  pen.strokeStyle = span.measured ? back : colour;
  pen.lineWidth = span.measured ? 0.75 : 1.25;
  pen.stroke();
}

/// A mark's outline around a point; `pen` is a canvas's or a path's.
function markPath(pen, mark, x, y, r) {
  const points = {
    square: [[-0.85, -0.85], [0.85, -0.85], [0.85, 0.85], [-0.85, 0.85]],
    diamond: [[0, -1.15], [1.15, 0], [0, 1.15], [-1.15, 0]],
    triangle: [[-0.75, -1.05], [1.1, 0], [-0.75, 1.05]],
    cross: [
      [-0.4, -1.1], [0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4],
      [0.4, 1.1], [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4],
    ],
  }[mark];
  if (!points) {
    pen.moveTo(x + r, y);
    pen.arc(x, y, r, 0, 2 * Math.PI);
    return;
  }
  points.forEach(([dx, dy], i) => pen[i ? "lineTo" : "moveTo"](x + dx * r, y + dy * r));
  pen.closePath();
}

/// Bands from a sender's bar to the receiver's, and lines between control items' ticks:
/// of the measured run, or of the predicted one where that is shown alone.
function drawCrossings({ pen }) {
  const { shows, height } = diagram;
  const spans = shows.measured ? runs.measured : runs.predicted;
  if (!shows.measured && !shows.predicted) return;
  for (const list of spans) {
    for (const span of list) {
      const { far } = span;
      if (span.port !== 0 || !far || (span.control && !shows.control)) continue;
      if (Math.max(span.end, far.end) < diagram.from || Math.min(span.begin, far.begin) > diagram.to) continue;
      const [a, b] = [span, far].map((end) => ({ ...barPlace(end), from: toX(end.begin), to: toX(end.end) }));
      if (Math.max(a.top, b.top) < AXIS || Math.min(a.top, b.top) > height) continue;
      const down = b.top > a.top;
      const [y, farY] = down ? [a.top + a.height, b.top] : [a.top, b.top + b.height];
      const dim = isDim(span);
      pen.beginPath();
      pen.moveTo(a.from, y);
      pen.lineTo(b.from, farY);
      if (span.control) {
        pen.globalAlpha = dim ? 0.08 : 0.4;
        pen.strokeStyle = kindInk(span);
        pen.lineWidth = 0.75;
        pen.stroke();
        continue;
      }
      if (Math.max(a.to - a.from, b.to - b.from) < 2) {
        // As a band it would be too faint.
        pen.globalAlpha = dim ? 0.05 : chosen === null ? 0.35 : 0.8;
        pen.strokeStyle = ink(span.item);
        pen.lineWidth = 0.75;
        pen.stroke();
        continue;
      }
      pen.lineTo(Math.max(b.to, b.from + 1), farY);
      pen.lineTo(Math.max(a.to, a.from + 1), y);
      pen.closePath();
      pen.globalAlpha = dim ? 0.03 : chosen === null ? 0.13 : 0.34;
      pen.fillStyle = colours(span.item)[0];
      pen.fill();
    }
  }
  pen.globalAlpha = 1;
}

/// Around the bar under the pointer and its counterpart.
function outline({ pen, text }, span) {
  for (const one of [span, span.other]) {
    if (!one || !diagram.shows[one.measured ? "measured" : "predicted"]) continue;
    const { top, height } = barPlace(one);
    const left = toX(one.begin);
    pen.strokeStyle = text;
    pen.lineWidth = one === span ? 2 : 1.25;
    pen.setLineDash(one === span ? [] : [3, 3]);
    pen.strokeRect(left - 2, top - 2, Math.max(toX(one.end) - left, 1) + 4, height + 4);
  }
  pen.setLineDash([]);
}

/// What is at a point of the canvas: a tick before a bar, what begins nearest before
/// what is farther.
function spanAt(x, y) {
  if (x < diagram.gutter || y < AXIS) return null;
  const row = rowBelow(y - AXIS + diagram.scrolled);
  if (row >= data.rows.length) return null;
  let best = null;
  let nearest = Infinity;
  for (const name of ["predicted", "measured"]) {
    if (!diagram.shows[name]) continue;
    for (const span of visible(runs[name], [row, row + 1])) {
      const { top, height } = barPlace(span);
      if (y < top - 1 || y > top + height + 1) continue;
      const [left, right] = [toX(span.since), toX(span.end)];
      const reach = span.control ? 5 : 2;
      if (x < left - reach || x > right + reach) continue;
      const off = Math.max(left - x, x - right, 0) + (span.control ? 0 : 6) + (span.measured ? 0 : 0.5);
      if (off < nearest) [best, nearest] = [span, off];
    }
  }
  return best;
}
