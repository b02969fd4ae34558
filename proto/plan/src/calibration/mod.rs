//! Results of measuring a cluster: exchanges over an edge, and from them the latency, rate and
//! burst of the edge ([`fit`]) and the offset between two clocks ([`clock`]).
//!
//! This module is pure arithmetic. The node performs the exchanges, and the coordinator uses the
//! results.

pub mod clock;
pub mod cost_estimate;
pub mod fit;

use fit::{Estimate, FitError, LinkFit, MeasuredLink, Point, centre, fit_link, sorted};
use flitcast_proto::exchange::{BURST_FLITS, Exchange};

use crate::cost::{Edge, Host, Hosts, Link};

/// Approximate bytes of the small frame of an exchange. At 1 Mbit/s it takes 0.2 ms, which must not
/// count as latency.
const SMALL_FRAME_BYTES: u64 = 24;

/// Both directions of an edge as measured from outside: wire and software.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredEdge {
    /// From parent to child.
    pub down: MeasuredLink,
    /// From child to parent.
    pub up: MeasuredLink,
}

impl MeasuredEdge {
    /// Returns the best values without uncertainties.
    pub fn values(&self) -> Edge {
        Edge {
            down: self.down.value(),
            up: self.up.value(),
        }
    }
}

/// Fits an edge to the exchanges over it. If both ends read the same clock, each direction is timed
/// separately; otherwise each is assumed to take half of a round trip.
pub fn fit_edge(exchanges: &[Exchange], shared_clock: bool) -> Result<MeasuredEdge, FitError> {
    let [(_, down), (_, up)] = fit_directions(exchanges, shared_clock)?;
    Ok(MeasuredEdge {
        down: down.link,
        up: up.link,
    })
}

/// Fits an edge and returns the points of each direction with the fit, down and up.
pub fn fit_directions(
    exchanges: &[Exchange],
    shared_clock: bool,
) -> Result<[(Vec<Point>, LinkFit); 2], FitError> {
    let cut = exchanges.iter().copied().filter(|it| it.extra_flits > 0);
    let whole = exchanges.iter().copied().filter(|it| it.extra_flits == 0);
    let whole: Vec<Exchange> = whole.collect();
    let [down, up] = directions(&whole, shared_clock);
    let mut fitted = [fit_link(&down, 1)?, fit_link(&up, 2)?];
    // The small exchanges give the duration of the other exchanges' way back.
    let small = whole.iter().filter(|it| it.down_bytes + it.up_bytes == 0);
    let cut: Vec<Exchange> = small.copied().chain(cut).collect();
    let cut_points = directions(&cut, shared_clock);
    let extra = cut.iter().map(|it| it.extra_flits).max().unwrap_or(0);
    let points = [[&down, &cut_points[0]], [&up, &cut_points[1]]];
    for (seed, (fit, [whole, cut])) in (1..).zip(fitted.iter_mut().zip(points)) {
        let setup_ns = setup(whole, cut, extra, fit.link.ns_per_byte.value);
        if setup_ns.value > 0.0 {
            // The set-up times of the flits must not count as rate.
            *fit = fit_link(&without_setup(whole, setup_ns.value, extra), seed)?;
        }
        fit.link.setup_ns = setup_ns;
    }
    let [down_fit, up_fit] = fitted;
    Ok([(down, down_fit), (up, up_fit)])
}

/// Returns the points of bursts without the set-up times of their flits. The longest burst was
/// divided into `extra` flits more than usual, all of which are full except the last.
fn without_setup(whole: &[Point], setup_ns: f64, extra: u32) -> Vec<Point> {
    let longest = whole.iter().map(|point| point.bytes).max().unwrap_or(0);
    let flits_of_longest = BURST_FLITS.saturating_sub(extra).max(1);
    let full = longest.div_ceil(flits_of_longest.into()).max(1);
    let without = whole.iter().map(|point| {
        let flits = match point.bytes {
            // The point is a control frame.
            ..=SMALL_FRAME_BYTES => 0,
            bytes => bytes.div_ceil(full),
        };
        Point {
            ns: (point.ns - setup_ns * flits as f64).max(0.0),
            ..*point
        }
    });
    without.collect()
}

/// Computes the set-up time of a flit from the longest bursts and from such bursts in `extra` flits
/// more. Returns zero unless the difference exceeds the uncertainty.
fn setup(whole: &[Point], cut: &[Point], extra: u32, ns_per_byte: f64) -> Estimate {
    let longest = |points: &[Point]| {
        let bytes = points.iter().map(|point| point.bytes).max()?;
        let longest = points.iter().filter(|point| point.bytes == bytes);
        let times = sorted(longest.map(|point| point.ns));
        Some((bytes as f64, centre(&times)?))
    };
    let (Some((bytes, whole)), Some((cut_bytes, cut))) = (longest(whole), longest(cut)) else {
        return Estimate::default();
    };
    if extra == 0 || cut_bytes < bytes {
        return Estimate::default();
    }
    let of_bytes = ns_per_byte * (cut_bytes - bytes);
    let a_flit = |longer: f64| ((longer - of_bytes) / f64::from(extra)).max(0.0);
    let low = a_flit(cut.low - whole.high);
    match low > 0.0 {
        true => Estimate {
            value: a_flit(cut.value - whole.value),
            low,
            high: a_flit(cut.high - whole.low),
        },
        false => Estimate::default(),
    }
}

/// Fits an edge that had only small exchanges: the latencies are measured, everything else is
/// copied from `alike`. Without a plausible exchange, the latencies are copied as well.
pub fn fit_latencies(
    exchanges: &[Exchange],
    shared_clock: bool,
    alike: &MeasuredEdge,
) -> MeasuredEdge {
    let link = |points: &[Point], alike: MeasuredLink| {
        let times = sorted(points.iter().map(|point| point.ns));
        // Even a small frame has bytes, which the rate accounts for.
        let beyond = (SMALL_FRAME_BYTES as f64 - alike.burst_bytes.value).max(0.0);
        let of_bytes = alike.ns_per_byte.value * beyond;
        let latency = centre(&times).map(|centre| Estimate {
            value: (centre.value - of_bytes).max(0.0),
            low: (centre.low - of_bytes).max(0.0),
            high: (centre.high - of_bytes).max(0.0),
        });
        MeasuredLink {
            latency_ns: latency.unwrap_or(alike.latency_ns),
            ..alike
        }
    };
    let [down, up] = directions(exchanges, shared_clock);
    MeasuredEdge {
        down: link(&down, alike.down),
        up: link(&up, alike.up),
    }
}

/// Returns the points of both directions, down and up: a burst's bytes, and the time from the
/// departure of its first byte to the arrival of its last.
pub fn directions(exchanges: &[Exchange], shared_clock: bool) -> [Vec<Point>; 2] {
    let sound = || exchanges.iter().filter(|exchange| exchange.is_sound());
    let is_small = |e: &&Exchange| e.down_bytes == 0 && e.up_bytes == 0;
    let small = sound().filter(is_small);
    let small = sorted(small.map(|e| e.round_trip_ns() as f64));
    let way_back = centre(&small).map_or(0.0, |centre| centre.value / 2.0);
    // From a burst, the time of the way back is subtracted; a small exchange takes the same time
    // both ways.
    let one_way = |e: &Exchange| match is_small(&e) {
        true => e.round_trip_ns() as f64 / 2.0,
        false => (e.round_trip_ns() as f64 - way_back).max(0.0),
    };
    // The bytes this way and the other way, the begin and the end.
    type Way = fn(&Exchange) -> [[u64; 2]; 2];
    let ways: [Way; 2] = [
        |e| [[e.down_bytes, e.up_bytes], [e.sent_ns, e.received_ns]],
        |e| [[e.up_bytes, e.down_bytes], [e.answered_ns, e.returned_ns]],
    ];
    ways.map(|way| {
        let points = sound().filter_map(|e| {
            let [[bytes, other_way], [begin, end]] = way(e);
            let ns = match shared_clock {
                true => (end as i128 - begin as i128) as f64,
                false => one_way(e),
            };
            let bytes = bytes + SMALL_FRAME_BYTES;
            (other_way == 0).then_some(Point { bytes, ns })
        });
        points.collect()
    })
}

/// Returns the links without the costs of the processes at their ends, by PE index like `measured`.
pub fn edges_from_measurements(measured: &[MeasuredEdge], hosts: &Hosts) -> Vec<Edge> {
    let edges = measured.iter().enumerate().map(|(index, edge)| {
        let [upper, lower] = hosts.ends(index);
        Edge {
            down: wire(edge.down.value(), [upper, lower]),
            up: wire(edge.up.value(), [lower, upper]),
        }
    });
    edges.collect()
}

/// Returns the link without the costs of software at its ends. A slow wire hides the software's time
/// per flit and per byte, and one of equal speed cannot be distinguished from it; between the two,
/// the wire's share changes linearly.
fn wire(seen: Link, [sender, receiver]: [&Host; 2]) -> Link {
    let software = sender.send_ns_per_byte + receiver.receive_ns_per_byte;
    let share = |seen: f64, software: f64| (2.0 * (seen - software)).clamp(0.0, seen);
    let small = sender.control_ns + receiver.wake_ns + receiver.control_ns;
    Link {
        latency_ns: (seen.latency_ns - small).max(0.0),
        setup_ns: share(seen.setup_ns, sender.flit_ns + receiver.flit_ns),
        ns_per_byte: share(seen.ns_per_byte, software),
        burst_bytes: seen.burst_bytes,
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::exchange::Exchange;

    use super::*;
    use crate::cost::Host;

    const HOST: Host = Host {
        wake_ns: 30_000.0,
        control_ns: 5_000.0,
        flit_ns: 5_000.0,
        send_ns_per_byte: 0.2,
        receive_ns_per_byte: 0.3,
        end_ns_per_byte: 0.1,
        message_ns: 10_000.0,
        ..Host::NONE
    };

    fn measured(latency_ns: f64, ns_per_byte: f64) -> MeasuredEdge {
        let link = MeasuredLink {
            latency_ns: Estimate::exact(latency_ns),
            setup_ns: Estimate::exact(0.0),
            ns_per_byte: Estimate::exact(ns_per_byte),
            burst_bytes: Estimate::exact(7.0),
        };
        let (down, up) = (link, link);
        MeasuredEdge { down, up }
    }

    #[test]
    fn a_slow_wire_keeps_its_rate_and_a_fast_one_is_the_software() {
        let seen = [measured(1e6, 40.0), measured(38_000.0, 0.45)];
        let wires = edges_from_measurements(&seen, &Hosts::one(HOST));
        let [slow, fast] = [wires[0].up, wires[1].down];
        assert_eq!((slow.latency_ns, slow.ns_per_byte), (960_000.0, 40.0));
        assert_eq!(slow.burst_bytes, 7.0);
        assert_eq!((fast.latency_ns, fast.ns_per_byte), (0.0, 0.0));
    }

    /// Returns exchanges over an edge with 1 ms and 10 ns per byte down, 2 ms and 30 ns per byte
    /// up; the lower end's clock is ahead by `ahead_ns`.
    fn exchanges(ahead_ns: u64) -> Vec<Exchange> {
        let sizes = [0, 1 << 12, 1 << 14, 1 << 16];
        let down = sizes.map(|bytes| (bytes, 0));
        let up = sizes.map(|bytes| (0, bytes));
        let all = down.into_iter().chain(up).cycle().take(40);
        let mut now = 1_000;
        all.map(|(down_bytes, up_bytes)| {
            let small = SMALL_FRAME_BYTES;
            let sent_ns = now;
            let received = sent_ns + 1_000_000 + 10 * (down_bytes + small);
            let answered = received + 700;
            let returned_ns = answered + 2_000_000 + 30 * (up_bytes + small);
            now = returned_ns + 50;
            Exchange {
                down_bytes,
                up_bytes,
                extra_flits: 0,
                sent_ns,
                received_ns: received + ahead_ns,
                answered_ns: answered + ahead_ns,
                returned_ns,
            }
        })
        .collect()
    }

    /// Asserts a parameter of the links down and up.
    #[track_caller]
    fn assert_near(of: fn(Link) -> f64, edge: Edge, truths: [f64; 2], within: f64) {
        for (link, truth) in [edge.down, edge.up].into_iter().zip(truths) {
            assert!((of(link) - truth).abs() <= within * truth, "{edge:?}");
        }
    }

    #[test]
    fn one_clock_separates_the_two_ways_and_two_give_half_of_the_round_trip() {
        for (ahead_ns, latencies, within) in
            [(0, [1e6, 2e6], 1e-6), (5_000_000_000, [1.5e6, 1.5e6], 1e-3)]
        {
            let edge = fit_edge(&exchanges(ahead_ns), ahead_ns == 0)
                .unwrap()
                .values();
            assert_near(|link| link.latency_ns, edge, latencies, within);
            assert_near(|link| link.ns_per_byte, edge, [10.0, 30.0], within);
        }
    }

    #[test]
    fn small_exchanges_give_the_latency_and_another_edge_the_rest() {
        let mut small = exchanges(0);
        small.retain(|e| e.down_bytes + e.up_bytes == 0);
        let alike = measured(1.0, 20.0);
        let edge = fit_latencies(&small, true, &alike).values();
        assert_near(|link| link.latency_ns, edge, [1e6, 2e6], 1e-3);
        assert_eq!((edge.down.ns_per_byte, edge.up.burst_bytes), (20.0, 7.0));
        assert_eq!(fit_latencies(&[], true, &alike), alike);
    }

    fn delay(exchange: &mut Exchange, down_ns: u64, up_ns: u64) {
        exchange.received_ns += down_ns;
        exchange.answered_ns += down_ns;
        exchange.returned_ns += down_ns + up_ns;
    }

    /// A flit takes 40 us down and 3 us up; its prefix has 30 bytes.
    #[test]
    fn many_short_flits_give_the_cost_of_one_beside_its_bytes() {
        for ahead_ns in [0, 5_000_000_000] {
            let shared_clock = ahead_ns == 0;
            let mut all = exchanges(ahead_ns);
            let setup_ns = fit_edge(&all, shared_clock).unwrap().down.setup_ns;
            assert_eq!(setup_ns, Estimate::default());
            // Each burst is one flit.
            for one in &mut all {
                let [down, up] = [one.down_bytes, one.up_bytes].map(|bytes| bytes.min(1));
                delay(one, down * 40_000, up * 3_000);
            }
            let mut cut = all.clone();
            cut.retain(|e| e.down_bytes.max(e.up_bytes) == 1 << 16);
            for cut in &mut cut {
                cut.extra_flits = 63;
                let [down, up] = [cut.down_bytes, cut.up_bytes].map(|bytes| 63 * bytes.min(1));
                cut.down_bytes += down * 30;
                cut.up_bytes += up * 30;
                delay(cut, down * (40_000 + 10 * 30), up * (3_000 + 30 * 30));
            }
            all.extend(cut);
            let edge = fit_edge(&all, shared_clock).unwrap().values();
            assert_near(|link| link.setup_ns, edge, [40_000.0, 3_000.0], 1e-3);
            assert_near(|link| link.ns_per_byte, edge, [10.0, 30.0], 1e-3);
        }
    }

    /// A slower wire hides the time that a process spends on a flit; it is counted once.
    #[test]
    fn a_flit_is_the_wires_or_the_softwares() {
        let set_up = |setup_ns| {
            let link = MeasuredLink {
                setup_ns: Estimate::exact(setup_ns),
                ..measured(1e6, 40.0).down
            };
            let (down, up) = (link, link);
            let edges = [MeasuredEdge { down, up }];
            let edges = edges_from_measurements(&edges, &Hosts::one(HOST));
            edges[0].down.setup_ns
        };
        assert_eq!(set_up(9_000.0), 0.0);
        assert_eq!(set_up(12_000.0), 4_000.0);
        assert_eq!(set_up(50_000.0), 50_000.0);
    }

    #[test]
    fn times_that_run_backwards_are_not_looked_at() {
        let mut all = exchanges(0);
        let good = fit_edge(&all, true).unwrap();
        let [mut returned, mut received, mut answered] = [Exchange::default(); 3];
        (returned.sent_ns, returned.returned_ns) = (9, 3);
        received.received_ns = u64::MAX;
        answered.answered_ns = u64::MAX;
        all.extend([returned, received, answered]);
        assert_eq!(fit_edge(&all, true), Ok(good));
    }
}
