// What a hand does with the diagram: zoom, move, ask, choose.

function setView(from, to) {
  const whole = diagram.end - diagram.begin;
  const length = Math.min(Math.max(to - from, 20), whole);
  // Zoomed about where it was asked for, but never past the ends.
  let begin = (from + to) / 2 - length / 2;
  begin = Math.min(Math.max(begin, diagram.begin), diagram.end - length);
  diagram.from = begin;
  diagram.to = begin + length;
  redraw();
}

function zoom(factor, x = (diagram.gutter + diagram.width) / 2) {
  const at = Math.min(Math.max(toTime(x), diagram.from), diagram.to);
  const length = Math.max((diagram.to - diagram.from) * factor, 20);
  const share = (at - diagram.from) / (diagram.to - diagram.from);
  setView(at - share * length, at + (1 - share) * length);
}

function move(pixels) {
  const shift = (pixels / (diagram.width - diagram.gutter)) * (diagram.to - diagram.from);
  setView(diagram.from + shift, diagram.to + shift);
}

function showWhole() {
  setView(diagram.begin, diagram.end);
}

function isWhole() {
  return diagram.to - diagram.from >= (diagram.end - diagram.begin) * 0.9999;
}

function onWheel(event) {
  const { offsetX } = pointIn(event);
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    move(event.deltaX || event.deltaY);
    return;
  }
  // There is no more to see: the page scrolls on.
  if (event.deltaY > 0 && isWhole()) return;
  event.preventDefault();
  const unit = event.deltaMode === 1 ? 18 : 1;
  zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY * unit)) * 0.004), offsetX);
}

function pointIn(event) {
  const box = diagram.canvas.getBoundingClientRect();
  return { offsetX: event.clientX - box.left, offsetY: event.clientY - box.top };
}

const fingers = new Map();
let dragged = 0;

function onDown(event) {
  if (event.button !== 0) return;
  fingers.set(event.pointerId, pointIn(event));
  if (fingers.size === 1) dragged = 0;
}

function onMove(event) {
  const now = pointIn(event);
  const before = fingers.get(event.pointerId);
  if (!before) {
    hover(now);
    return;
  }
  const dx = now.offsetX - before.offsetX;
  const dy = now.offsetY - before.offsetY;
  if (fingers.size === 2) {
    const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    const apart = (at) => Math.max(10, Math.abs(at.offsetX - other.offsetX));
    zoom(apart(before) / apart(now), (now.offsetX + other.offsetX) / 2);
    dragged += 10;
  } else {
    dragged += Math.abs(dx) + Math.abs(dy);
    if (dragged > 4) {
      if (!diagram.scroller.hasPointerCapture(event.pointerId)) diagram.scroller.setPointerCapture(event.pointerId);
      diagram.scroller.classList.add("dragging");
      hover(null);
      move(-dx);
      if (event.pointerType === "mouse") diagram.scroller.scrollTop -= dy;
    }
  }
  fingers.set(event.pointerId, now);
}

function onUp(event) {
  const at = fingers.get(event.pointerId);
  fingers.delete(event.pointerId);
  diagram.scroller.classList.remove("dragging");
  if (!at || dragged > 4) return;
  if (at.offsetX < diagram.gutter && areGrouped()) {
    const row = rowBelow(at.offsetY - AXIS + diagram.scrolled);
    if (row < data.rows.length) fold([groupOf(row)], !groupOf(row).open);
    return;
  }
  const span = spanAt(at.offsetX, at.offsetY);
  if (event.pointerType !== "mouse") hover(at);
  if (span && span.control) return;
  choose(span && span.item !== chosen ? span.item : null);
}

/// Says what is at a point; nothing without one.
function hover(point) {
  diagram.pointer = point && { x: point.offsetX, y: point.offsetY };
  diagram.hovered = point && spanAt(point.offsetX, point.offsetY);
  const box = byId("tooltip");
  box.hidden = !diagram.hovered;
  if (diagram.hovered) {
    describe(box, diagram.hovered);
    const room = diagram.scroller.parentElement.clientWidth;
    const right = point.offsetX + 18 + box.offsetWidth < room;
    const left = right ? point.offsetX + 18 : Math.max(0, point.offsetX - 18 - box.offsetWidth);
    const below = point.offsetY + 22 + box.offsetHeight < diagram.height;
    box.style.left = `${left}px`;
    box.style.top = `${below ? point.offsetY + 22 : Math.max(0, point.offsetY - 14 - box.offsetHeight)}px`;
  }
  redraw(drawPointer);
}

/// Unfolds groups, or folds them.
function fold(some, open) {
  for (const group of some) group.open = open;
  byId("fold").textContent = groups.every((group) => group.open) ? "Fold all" : "Unfold all";
  resizeDiagram();
  redraw();
}

function foldAll() {
  if (areGrouped()) fold(groups, !groups.every((group) => group.open));
}

function describe(box, span) {
  const measured = span.measured ? span : span.other;
  const predicted = span.measured ? span.other : span;
  const [pe, peer] = [span.pe, span.peer].map(peName);
  const verb = [`${pe} sends to ${peer}`, `${pe} receives from ${peer}`, `${pe} writes it`][span.port];
  const size = messages.has(span.item) ? `, ${bytes(messages.get(span.item).bytes)}` : "";
  box.replaceChildren();
  const name = itemName(span.item);
  put(box, "strong", {}, `${name[0].toUpperCase()}${name.slice(1)}: ${verb}${size}`);
  const table = put(box, "table");
  const line = (name, ...cells) => {
    const row = put(table, "tr");
    put(row, "th", { scope: "row" }, name);
    cells.forEach((cell) => put(row, "td", {}, cell));
  };
  line("", "begin", "end", "takes");
  const both = measured && predicted;
  for (const [name, one] of [["measured", measured], ["predicted", predicted]]) {
    if (one) line(name, time(one.begin), time(one.end), time(one.end - one.begin));
    else if (runs[name].some((list) => list.length)) line(name, "–", "–", "–");
  }
  if (both) {
    const takes = (one) => one.end - one.begin;
    line(
      "difference",
      difference(measured.begin - predicted.begin),
      difference(measured.end - predicted.end),
      difference(takes(measured) - takes(predicted)),
    );
  }
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = (diagram.width - diagram.gutter) * 0.15;
  const actions = {
    ArrowLeft: () => move(-step),
    ArrowRight: () => move(step),
    ArrowUp: () => (diagram.scroller.scrollTop -= 3 * diagram.rowHeight),
    ArrowDown: () => (diagram.scroller.scrollTop += 3 * diagram.rowHeight),
    "+": () => zoom(0.7),
    "=": () => zoom(0.7),
    "-": () => zoom(1 / 0.7),
    0: showWhole,
    Home: () => setView(diagram.begin, diagram.begin + diagram.to - diagram.from),
    End: () => setView(diagram.end - (diagram.to - diagram.from), diagram.end),
    "[": () => chooseNext(-1),
    "]": () => chooseNext(1),
    Escape: () => choose(null),
    g: foldAll,
  };
  const action = actions[event.key];
  if (!action) return;
  event.preventDefault();
  action();
}

/// The message that arrives before or after the chosen one.
function chooseNext(step) {
  const order = [...places.keys()];
  if (!order.length) return;
  const place = chosen === null ? (step > 0 ? -1 : order.length) : places.get(chosen);
  choose(order[(place + step + order.length) % order.length]);
}

function setUpDiagram() {
  const { scroller } = diagram;
  extent();
  diagram.from = diagram.begin;
  diagram.to = diagram.end;
  const unfolded = Math.min(data.rows.length, MOST_ROWS);
  diagram.rowHeight = Math.min(48, Math.max(34, Math.floor(640 / unfolded)));
  // More of them hide everything.
  diagram.shows.crossings = runs.measured.flat().length <= 1500;
  byId("fold").hidden = !areGrouped();
  byId("fold").addEventListener("click", foldAll);

  const select = byId("message");
  for (const message of [...places.keys()].sort((a, b) => a - b)) put(select, "option", { value: message }, itemName(message));
  select.addEventListener("change", () => choose(select.value === "" ? null : Number(select.value)));
  listeners.push(() => (select.value = chosen ?? ""), () => redraw());
  for (const name of Object.keys(diagram.shows)) {
    const box = byId(`show-${name}`);
    box.checked = diagram.shows[name];
    box.addEventListener("change", () => {
      diagram.shows[name] = box.checked;
      redraw();
    });
  }
  const height = byId("row-height");
  height.value = diagram.rowHeight;
  height.addEventListener("input", () => {
    diagram.rowHeight = Number(height.value);
    resizeDiagram();
    redraw();
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  byId("zoom-whole").addEventListener("click", showWhole);
  scroller.addEventListener("wheel", onWheel, { passive: false });
  scroller.addEventListener("scroll", () => redraw());
  scroller.addEventListener("pointerdown", onDown);
  scroller.addEventListener("pointermove", onMove);
  scroller.addEventListener("pointerup", onUp);
  scroller.addEventListener("pointercancel", onUp);
  scroller.addEventListener("pointerleave", () => hover(null));
  scroller.addEventListener("dblclick", showWhole);
  scroller.addEventListener("keydown", onKey);
  resizeDiagram();
}
