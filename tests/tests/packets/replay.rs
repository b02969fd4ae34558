//! Replays a printed plan in packets and checks the rules of the model: one send port and one
//! receive port, store and forward, and relays that hold at most one largest packet.
//!
//! It shares no code with the planner and uses only the printed plan.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::replay::{list, number};

/// Ticks in the time of a flit, a common denominator of all set-up costs in these tests.
pub const FLIT: u64 = 12;

/// A packet that crosses a link.
#[derive(Clone, Copy, Debug)]
struct Hop {
    from: usize,
    to: usize,
    flits: u64,
    start: u64,
    end: u64,
}

/// Returns a time in ticks, of an integer or of a fraction.
pub fn ticks(value: &Value, key: &str) -> u64 {
    let whole = |text: &str| text.parse::<u64>().expect("it is a number");
    match &value[key] {
        Value::String(text) => {
            let (above, below) = text.split_once('/').expect("it is a fraction");
            let below = whole(below);
            assert!(below > 1 && FLIT.is_multiple_of(below), "{text}");
            whole(above) * (FLIT / below)
        }
        _ => number(value, key) * FLIT,
    }
}

fn parents(plan: &Value) -> Vec<Option<usize>> {
    let parents = list(plan, "parents").iter().map(Value::as_u64);
    parents.map(|parent| Some(parent? as usize)).collect()
}

fn lengths(plan: &Value) -> Vec<u64> {
    let lengths = list(plan, "lengths").iter().map(Value::as_u64);
    lengths.map(|length| length.expect("a length")).collect()
}

fn way(parents: &[Option<usize>], pe: usize) -> Vec<usize> {
    let mut way: Vec<usize> = std::iter::successors(Some(pe), |&pe| parents[pe]).collect();
    way.reverse();
    way
}

/// Checks that no two of these intervals overlap.
#[track_caller]
fn assert_apart(mut times: Vec<[u64; 2]>, what: &str) {
    times.sort_unstable();
    for pair in times.windows(2) {
        assert!(pair[0][1] <= pair[1][0], "{what} is taken twice: {pair:?}");
    }
}

/// Checks that each port has one packet at a time, that each packet is forwarded when it is
/// complete, and the data that relays store.
#[track_caller]
fn assert_rules(packets: &[Vec<Hop>], setup: u64) {
    let hops = || packets.iter().flatten();
    let largest = hops().map(|hop| hop.flits).max().unwrap_or(0);
    for hop in hops() {
        assert!(hop.flits > 0);
        assert_eq!(hop.end - hop.start, setup + hop.flits * FLIT);
    }
    for packet in packets {
        for pair in packet.windows(2) {
            let is_in_turn = pair[0].to == pair[1].from && pair[0].end <= pair[1].start;
            assert!(is_in_turn, "{pair:?}");
        }
    }
    let mut ports: BTreeMap<(&str, usize), Vec<[u64; 2]>> = BTreeMap::new();
    for hop in hops() {
        for port in [("the send port", hop.from), ("the receive port", hop.to)] {
            ports.entry(port).or_default().push([hop.start, hop.end]);
        }
    }
    for ((port, pe), times) in ports {
        assert_apart(times, &format!("{port} of P{pe}"));
    }
    // The data in a relay rises and falls evenly between these times.
    let mut passed: BTreeMap<usize, Vec<(Hop, bool)>> = BTreeMap::new();
    for pair in packets.iter().flat_map(|packet| packet.windows(2)) {
        let relay = passed.entry(pair[0].to).or_default();
        relay.extend([(pair[0], true), (pair[1], false)]);
    }
    for (pe, hops) in passed {
        let times = hops
            .iter()
            .flat_map(|(hop, _)| [hop.start + setup, hop.end]);
        for time in times {
            let crossed = |hop: &Hop| time.clamp(hop.start + setup, hop.end) - hop.start - setup;
            let of = |arrives: bool| {
                let hops = hops.iter().filter(|(_, is_arrival)| *is_arrival == arrives);
                hops.map(|(hop, _)| crossed(hop)).sum::<u64>()
            };
            let held = of(true) - of(false);
            assert!(held <= largest * FLIT, "P{pe} holds too much at {time}");
        }
    }
}

/// Simulates a scatter in which P0 sends packets in this order, and relays serve them in the order
/// of arrival.
fn scatter(parents: &[Option<usize>], setup: u64, sequence: &[(usize, u64)]) -> Vec<Vec<Hop>> {
    let mut packets: Vec<Vec<Hop>> = vec![Vec::new(); sequence.len()];
    let mut free = vec![0; parents.len()];
    // When each packet is complete at its position, and its index.
    let mut waiting: Vec<(u64, usize)> = (0..sequence.len()).map(|packet| (0, packet)).collect();
    while let Some(next) = (0..waiting.len()).min_by_key(|&place| waiting[place]) {
        let (whole, packet) = waiting.swap_remove(next);
        let (pe, flits) = sequence[packet];
        let way = way(parents, pe);
        let done = packets[packet].len();
        let (from, to) = (way[done], way[done + 1]);
        let start = whole.max(free[from]);
        let end = start + setup + flits * FLIT;
        free[from] = end;
        packets[packet].push(Hop {
            from,
            to,
            flits,
            start,
            end,
        });
        if to != pe {
            waiting.push((end, packet));
        }
    }
    packets
}

fn end_of(packets: &[Vec<Hop>]) -> u64 {
    let ends = packets.iter().flatten().map(|hop| hop.end);
    ends.max().unwrap_or(0)
}

/// Replays the packets of a scatter, or of a gather that mirrors one; returns the time.
#[track_caller]
pub fn replay(plan: &Value) -> u64 {
    let (parents, setup) = (parents(plan), ticks(plan, "setup"));
    let printed = list(plan, "packets");
    let is_gather = plan["operation"] == "gather";
    let packet = |packet: &Value| (number(packet, "pe") as usize, number(packet, "flits"));
    let mut sequence: Vec<(usize, u64)> = printed.iter().map(packet).collect();
    if is_gather {
        sequence.reverse();
    }
    let mut sums = vec![0; parents.len()];
    for (pe, flits) in &sequence {
        sums[*pe] += flits;
    }
    assert_eq!(sums, lengths(plan));
    let mut packets = scatter(&parents, setup, &sequence);
    let time = end_of(&packets);
    if is_gather {
        let mirrored = |hop: &Hop| Hop {
            from: hop.to,
            to: hop.from,
            flits: hop.flits,
            start: time - hop.end,
            end: time - hop.start,
        };
        let mirror = |hops: &Vec<Hop>| hops.iter().rev().map(mirrored).collect();
        packets = packets.iter().rev().map(mirror).collect();
    }
    assert_rules(&packets, setup);
    for (printed, hops) in printed.iter().zip(&packets) {
        assert_eq!(ticks(printed, "start"), hops[0].start);
        assert_eq!(ticks(printed, "end"), hops[hops.len() - 1].end);
    }
    assert_eq!(ticks(plan, "time"), time);
    assert!(ticks(plan, "bound") <= time, "no plan beats the bound");
    assert_eq!(plan["proof"] == "optimal", ticks(plan, "bound") == time);
    assert_eq!(number(plan, "packet_count"), sequence.len() as u64);
    time
}

/// The packets of each PE's stream: the PE and the size of each.
type Streams = BTreeMap<usize, Vec<(usize, u64)>>;

/// Replays a gather by certification; returns the time.
#[track_caller]
pub fn replay_certified(plan: &Value) -> u64 {
    let (parents, lengths) = (parents(plan), lengths(plan));
    let (setup, cap) = (ticks(plan, "setup"), number(plan, "cap"));
    let control = ticks(plan, "control_time");
    let of_pe = |key: &str| -> BTreeMap<usize, &Value> {
        let all = list(plan, key).iter();
        all.map(|one| (number(one, "pe") as usize, one)).collect()
    };
    let (certificates, orders, streams) =
        (of_pe("certificates"), of_pe("orders"), of_pe("streams"));
    let start = |pe: usize| ticks(streams[&pe], "start");
    let ordered = |pe: usize| match parents[pe] {
        None => ticks(plan, "certified"),
        Some(_) => start(pe) - ticks(orders[&pe], "after"),
    };
    // Children come after their parents in any order of numbers, the deepest first.
    let mut pes: Vec<usize> = (1..parents.len()).collect();
    pes.sort_by_key(|&pe| std::cmp::Reverse(way(&parents, pe).len()));
    let mut sent: Streams = Streams::new();
    let mut hops: BTreeMap<(usize, usize), Vec<Hop>> = BTreeMap::new();
    for &pe in &pes {
        let count = lengths[pe].div_ceil(cap);
        let size = |packet| lengths[pe] / count + u64::from(packet < lengths[pe] % count);
        let mut stream: Vec<(usize, u64)> = (0..count).map(|packet| (pe, size(packet))).collect();
        let mut children: Vec<usize> = sent.keys().copied().collect();
        children.retain(|&child| parents[child] == Some(pe));
        children.sort_by_key(|&child| start(child));
        stream.extend(children.iter().flat_map(|child| sent[child].clone()));
        let certificate = certificates[&pe];
        assert_eq!(number(certificate, "packets"), stream.len() as u64);
        let flits = stream.iter().map(|(_, flits)| flits);
        assert_eq!(number(certificate, "flits"), flits.clone().sum::<u64>());
        let largest = flits.copied().max().unwrap_or(0);
        assert_eq!(number(certificate, "largest"), largest);
        if stream.is_empty() {
            assert!(!orders.contains_key(&pe) && !streams.contains_key(&pe));
            continue;
        }
        assert!(ticks(orders[&pe], "after") >= ticks(certificate, "lag"));
        // Its orders are sent one by one before its stream begins.
        let times = children
            .iter()
            .map(|&child| [ordered(child) - control, ordered(child)]);
        let mut times: Vec<[u64; 2]> = times.collect();
        assert!(times.iter().all(|[out, _]| *out >= ordered(pe)));
        times.push([start(pe), ticks(streams[&pe], "end")]);
        assert_apart(times, "the send port");
        let mut at = start(pe);
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        for &(source, flits) in &stream {
            let packet = numbers.entry(source).or_default();
            let end = at + setup + flits * FLIT;
            hops.entry((source, *packet)).or_default().push(Hop {
                from: pe,
                to: parents[pe].expect("P0 sends nothing"),
                flits,
                start: at,
                end,
            });
            *packet += 1;
            at = end;
        }
        assert_eq!(at, ticks(streams[&pe], "end"));
        sent.insert(pe, stream);
    }
    let packets: Vec<Vec<Hop>> = hops.into_values().collect();
    assert!(packets.iter().all(|hops| hops[hops.len() - 1].to == 0));
    assert_rules(&packets, setup);
    let time = end_of(&packets);
    assert_eq!(ticks(plan, "time"), time);
    assert!(ticks(plan, "bound") <= time);
    time
}
