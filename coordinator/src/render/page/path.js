// The critical path: what the end of the round waited for; and where it fell behind its prediction.

/// More spans are not followed.
const LONGEST_PATH = 2000;
/// Delays that are marked.
const MOST_DELAYS = 3;

/// The span of a list that ended last before a time, of those that fit.
function latestBefore(list, time, fits) {
  let best = null;
  for (const span of list) {
    if (!fits(span) || span.begin > time) continue;
    const reach = Math.min(span.end, time);
    if (!best || reach > Math.min(best.end, time)) best = span;
  }
  return best;
}

/// The latencies of the links, by sender and receiver; of a link that was not measured, that of most.
const latencies = new Map(
  run.edges.flatMap(({ parent, child, down, up }) => [
    [`${parent} ${child}`, down.latency_us * 1000],
    [`${child} ${parent}`, up.latency_us * 1000],
  ]),
);
const usualLatency = latencies.size ? median([...latencies.values()]) : 0;
const latency = (from, to) => latencies.get(`${from} ${to}`) ?? usualLatency;

/// For each span of a receive port, the earliest time at which its first byte can have arrived. The span of a
/// message of one flit is short, because the PE reads a flit that has arrived completely.
for (const list of [runs.measured, runs.predicted].flat()) {
  let free = -Infinity;
  const received = list.filter((span) => span.port === 1 && !span.control);
  for (const span of received.sort((a, b) => a.begin - b.begin)) {
    const couldCome = span.far ? span.far.begin + latency(span.peer, span.pe) : span.begin;
    span.since = Math.min(span.begin, Math.max(couldCome, free));
    free = Math.max(free, span.end);
  }
}

/// What a span waited for: its counterpart at the other end, the port, or what came in before.
function causeOf(span, lists) {
  const own = lists[span.pe].filter((one) => one !== span);
  // A receipt takes almost no time on a port, so that only other receipts wait for one.
  const mayDelay = (one) => span.item === "receipt" || one.item !== "receipt";
  const onPort = latestBefore(own, span.begin, (one) => one.port === span.port && one.end <= span.begin && mayDelay(one));
  if (span.port === 2) return latestBefore(own, span.begin, (one) => one.port === 1 && one.item === span.item);
  // The first byte of what was sent is there a latency later: a port that was free by then delayed nothing.
  if (span.port === 1) {
    const couldCome = span.far && span.far.begin + latency(span.peer, span.pe);
    return onPort && span.far && onPort.end > couldCome ? onPort : span.far ?? onPort;
  }
  const permits = (one) => one.port === 1 && (one.item === span.item || (one.control && one.item !== "receipt"));
  const came = latestBefore(own, span.begin, permits);
  if (!came || !onPort) return came ?? onPort;
  return onPort.end > Math.min(came.end, span.begin) ? onPort : came;
}

/// The spans on the critical path of a run, the first one first.
function criticalPath(lists) {
  const arrivals = lists.flat().filter((span) => !span.control && span.port > 0);
  let span = arrivals.reduce((last, one) => (last && last.end >= one.end ? last : one), null);
  const path = [];
  const seen = new Set();
  while (span && !seen.has(span) && path.length < LONGEST_PATH) {
    seen.add(span);
    path.unshift(span);
    span = causeOf(span, lists);
  }
  return path;
}

/// The largest delays against the prediction that arose on a path, before a span began or while it
/// lasted, and were not made good later. All of them together are at most the delay of the round.
function delaysOn(path) {
  const moments = path
    .filter((span) => span.other)
    .flatMap((span) => [
      { span, at: span.begin, late: span.begin - span.other.begin, isBefore: true },
      { span, at: span.end, late: span.end - span.other.end, isBefore: false },
    ]);
  // What is late at a moment and at all later ones, up to the delay of the round.
  let least = roundNs - predictedNs;
  for (const moment of moments.reverse()) moment.lasting = least = Math.min(least, moment.late);
  let before = 0;
  for (const moment of moments.reverse()) {
    moment.by = moment.lasting - before;
    before = Math.max(before, moment.lasting);
  }
  const large = moments.filter(({ by }) => by > roundNs * 0.02);
  return large.sort((a, b) => b.by - a.by).slice(0, MOST_DELAYS);
}

function delayInWords({ span, by, isBefore }) {
  const [pe, peer] = [span.pe, span.peer].map(peName);
  const name = itemName(span.item);
  const what = span.control ? withArticle(name) : name;
  const doing = isBefore
    ? [`began to send ${what} to ${peer}`, `began to receive ${what} from ${peer}`, `began to write ${what}`]
    : [`sent ${what} to ${peer}`, `received ${what} from ${peer}`, `wrote ${what}`];
  return `${time(by)} ${isBefore ? "before" : "while"} ${pe} ${doing[span.port]}`;
}

const critical = { path: criticalPath(runs.measured), delays: [] };
if (roundNs > predictedNs) critical.delays = delaysOn(critical.path);

function describePath() {
  const { path, delays } = critical;
  const pesOnIt = path.map((span) => span.pe).filter((pe, i, all) => pe !== all[i - 1]);
  const some = pesOnIt.length > 8 ? [...pesOnIt.slice(0, 3), null, ...pesOnIt.slice(-4)] : pesOnIt;
  const way = some.map((pe) => (pe === null ? "…" : peName(pe))).join(" → ");
  const crossed = path.filter((span) => span.port === 1 && span.far);
  const underWay = crossed.reduce((sum, span) => sum + latency(span.peer, span.pe), 0);
  const links = `${counted(crossed.length, "crossing")} with ${time(underWay)} of latency`;
  const line = path.length > 1 ? `The line is the critical path, what the last arrival waited for: ${way}; ${links}. ` : "";
  const late = delays.length
    ? `The round took ${time(roundNs - predictedNs)} longer than predicted; of that arose on the path ${delays.map(delayInWords).join("; ")}.`
    : "";
  byId("path-about").textContent = line + late;
  document.body.dataset.path = path.length;
  document.body.dataset.delays = delays.length;
}

/// The critical path through the middle of its bars.
function drawPath({ pen, back, text }) {
  const { path } = critical;
  if (!path.length) return;
  const points = path.flatMap((span, i) => {
    const { top, height } = barPlace(span);
    const next = path[i + 1];
    const leaves = next ? Math.min(span.end, Math.max(span.begin, next.begin)) : span.end;
    return [span.begin, leaves].map((at) => [toX(at), top + height / 2]);
  });
  // From the begin of the round on.
  points.unshift([Math.min(toX(0), points[0][0]), points[0][1]]);
  for (const [ink, width] of [[back, 4.5], [text, 2]]) {
    pen.strokeStyle = ink;
    pen.lineWidth = width;
    pen.lineJoin = "round";
    pen.beginPath();
    points.forEach(([x, y], i) => pen[i ? "lineTo" : "moveTo"](x, y));
    pen.stroke();
  }
}

const lateInk = () => (theme.dark ? "#ff9a91" : "#a3261f");

/// A flag where a delay arose, and its size where there is room.
function drawDelays({ pen, font, back }) {
  const ink = lateInk();
  pen.font = `600 12px ${font}`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const delay of critical.delays) {
    const { top, height } = barPlace(delay.span);
    const [x, y] = [toX(delay.at), top + height / 2];
    pen.fillStyle = ink;
    pen.beginPath();
    markPath(pen, "triangle", x - 5, y, 5);
    pen.fill();
    const label = difference(delay.by);
    const width = pen.measureText(label).width;
    const left = x + width + 12 < diagram.width ? x + 5 : x - width - 14;
    if (!claim({ left, right: left + width, top: y - 8, bottom: y + 8 })) continue;
    pen.fillStyle = back;
    pen.fillRect(left - 2, y - 8, width + 4, 16);
    pen.fillStyle = ink;
    pen.fillText(label, left, y);
  }
}
