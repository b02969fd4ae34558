//! Ports with a virtual clock: a sender that wakes up late, and receivers.

use proptest::prelude::*;

use super::*;

/// Uptimes of one nanosecond and of 116 days, at which a 53-bit number no longer resolves
/// nanoseconds.
const ORIGINS: [u64; 2] = [1, 10_000_000_000_000_000];

fn link(bits_per_s: u64, latency_ns: f64) -> Link {
    Link {
        latency_ns,
        ns_per_byte: 8e9 / bits_per_s as f64,
        ..Link::default()
    }
}

fn links() -> impl Strategy<Value = Link> {
    let rate = prop_oneof![
        Just(1_000u64),
        1_000_000..100_000_000_000u64,
        Just(100_000_000_000)
    ];
    (rate, 0..1_000_000_000u32).prop_map(|(rate, latency)| link(rate, latency.into()))
}

/// Returns the time of a frame on the wire, in nanoseconds, rounded up.
fn wire_ns(bytes: usize, link: &Link) -> u64 {
    (bytes as f64 * link.ns_per_byte).ceil() as u64
}

/// A frame that a sender has added, and its departure.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    bytes: usize,
    link: Link,
    departs: Time,
}

/// Adds frames like the driver: each when it may be added, plus `late`.
fn send(origin: u64, frames: &[(u32, usize, Link)]) -> Vec<Sent> {
    let mut port = SendPort::default();
    let mut now = Time(origin);
    let hand_over = |&(late, bytes, link): &(u32, usize, Link)| {
        let awake = Time(port.may_hand_over_at().0 + u64::from(late));
        now = now.max(awake);
        let departs = port.depart(now, 1, bytes, &link);
        Sent {
            at: now,
            bytes,
            link,
            departs,
        }
    };
    frames.iter().map(hand_over).collect()
}

fn frames() -> impl Strategy<Value = Vec<(u32, usize, Link)>> {
    let links = prop::collection::vec(links(), 1..4);
    links.prop_flat_map(|links| {
        let late = prop_oneof![Just(0u32), 0..50_000u32, 0..3_000_000u32];
        let bytes = prop_oneof![8..60usize, 1..70_000usize, Just(1 << 20)];
        let frame = (late, bytes, prop::sample::select(links));
        prop::collection::vec(frame, 1..60)
    })
}

proptest! {
    #[test]
    fn a_port_sends_one_frame_at_a_time(origin in prop::sample::select(&ORIGINS), frames in frames()) {
        let sent = send(origin, &frames);
        for frame in &sent {
            let wire = wire_ns(frame.bytes, &frame.link);
            prop_assert!(frame.departs.0 + 1 >= frame.at.0 + wire);
        }
        for pair in sent.windows(2) {
            let wire = wire_ns(pair[1].bytes, &pair[1].link);
            prop_assert!(pair[1].departs.0 + 1 >= pair[0].departs.0 + wire);
            // The wire is not idle while there is a frame.
            let free = pair[1].at.max(pair[0].departs);
            prop_assert!(pair[1].departs.0 <= free.0 + wire + 1);
        }
    }

    #[test]
    fn a_sender_runs_ahead_by_one_frame_or_half_a_millisecond(
        origin in prop::sample::select(&ORIGINS),
        frames in frames(),
    ) {
        for pair in send(origin, &frames).windows(2) {
            let still_to_depart = pair[0].departs.0.saturating_sub(pair[1].at.0);
            let last = wire_ns(pair[0].bytes, &pair[0].link);
            prop_assert!(still_to_depart <= last.max(RUN_AHEAD_NS) + 1);
        }
    }

    #[test]
    fn a_late_sender_loses_nothing_while_it_is_ahead(
        late in prop::collection::vec(0..450_000u32, 64),
        bytes in 1..70_000usize,
        link in links(),
    ) {
        let frames: Vec<_> = late.iter().map(|&late| (late, bytes, link)).collect();
        // The first frame takes longer on the wire than any delay, so all frames are added before
        // the port is free.
        let longest = (0, (500_000.0 / link.ns_per_byte) as usize + 1, link);
        let sent = send(ORIGINS[1], &[&[longest], &frames[..]].concat());
        let took = (sent[64].departs.0 - sent[0].departs.0) as f64;
        let expected = 64.0 * bytes as f64 * link.ns_per_byte;
        prop_assert!((took - expected).abs() <= 1.0, "{took} {expected}");
    }

    #[test]
    fn a_port_receives_one_frame_at_a_time_and_none_early(
        origin in prop::sample::select(&ORIGINS),
        senders in prop::collection::vec(frames(), 1..4),
    ) {
        let mut sent: Vec<Sent> = senders.iter().flat_map(|frames| send(origin, frames)).collect();
        sent.sort_by_key(|frame| lands(frame.departs, &frame.link));
        let mut port = ReceivePort::default();
        let mut free = Time(0);
        for frame in sent {
            let lands = lands(frame.departs, &frame.link);
            let wire = wire_ns(frame.bytes, &frame.link);
            let arrives = port.arrive(frame.departs, 1, frame.bytes, &frame.link);
            prop_assert!(arrives >= lands);
            prop_assert!(arrives.0 + 1 >= free.0 + wire);
            // The port is not idle without reason.
            prop_assert!(arrives.0 <= lands.0.max(free.0 + wire));
            free = arrives;
        }
    }

    #[test]
    fn one_stream_arrives_a_latency_after_it_departs(
        origin in prop::sample::select(&ORIGINS),
        late in prop::collection::vec((0..3_000_000u32, 1..70_000usize), 1..200),
        link in links(),
    ) {
        let frames: Vec<_> = late.into_iter().map(|(late, bytes)| (late, bytes, link)).collect();
        let mut port = ReceivePort::default();
        for frame in send(origin, &frames) {
            let arrives = port.arrive(frame.departs, 1, frame.bytes, &link);
            let expected = frame.departs.0 + link.latency_ns as u64;
            prop_assert!(arrives.0.abs_diff(expected) <= 1);
        }
    }
}

/// The rate is exact to the nanosecond, for any division into frames.
#[test]
fn messages_of_any_length_take_the_time_of_their_rate() {
    let rates = [
        50_000_000u64,
        200_000_000,
        333_333_333,
        1_000_000_000,
        10_000_000_000,
    ];
    let lengths = [16 << 10, 256 << 10, 1 << 20, 16 << 20, 64usize << 20];
    for origin in ORIGINS {
        for rate in rates {
            for flit in [1_000, 65_536, 1 << 20] {
                for length in lengths {
                    let link = link(rate, 1e6);
                    let whole = std::iter::repeat_n((0, flit, link), length / flit);
                    let frames: Vec<_> = whole.chain([(0, length % flit, link)]).collect();
                    let mut port = ReceivePort::default();
                    let arrivals = send(origin, &frames)
                        .into_iter()
                        .map(|frame| port.arrive(frame.departs, 1, frame.bytes, &link));
                    let took = arrivals.last().expect("some were sent").0 - origin;
                    let wire = length as u128 * 8_000_000_000 / u128::from(rate);
                    let expected = wire as u64 + 1_000_000;
                    assert!(took.abs_diff(expected) <= 1, "{rate} {flit} {length}");
                }
            }
        }
    }
}

#[test]
fn two_streams_share_a_port() {
    // A frame of 1000 bytes takes 8 us.
    let link = link(1_000_000_000, 0.0);
    let mut port = SendPort::default();
    let both = [(); 4].map(|()| port.depart(Time(100), 1, 1000, &link));
    assert_eq!(both, [8_100, 16_100, 24_100, 32_100].map(Time));
    let mut port = ReceivePort::default();
    let both = [(); 4].map(|()| port.arrive(Time(100), 1, 1000, &link));
    assert_eq!(both, [8_000, 16_000, 24_000, 32_000].map(Time));
}

#[test]
fn an_unlimited_link_only_delays() {
    let link = Link {
        latency_ns: 2_500.0,
        ..Link::default()
    };
    let (mut send, mut receive) = (SendPort::default(), ReceivePort::default());
    for now in [10, 10, 20] {
        let departed = send.depart(Time(now), 1, 1 << 20, &link);
        assert_eq!(departed, Time(now));
        assert!(send.may_hand_over_at() <= Time(now));
        assert_eq!(
            receive.arrive(departed, 1, 1 << 20, &link),
            Time(now + 2_500)
        );
    }
}

/// Values from a peer may be arbitrary.
#[test]
fn the_end_of_time_is_no_overflow() {
    let slow = link(1_000, 1e9);
    let end = Time(u64::MAX);
    assert_eq!(lands(end, &slow), end);
    assert_eq!(ReceivePort::default().arrive(end, 1, 1 << 20, &slow), end);
    assert_eq!(SendPort::default().depart(end, 1, 1 << 20, &slow), end);
}

#[test]
fn links_that_cannot_be_had() {
    assert_eq!(check(&Link::default()), Ok(()));
    assert_eq!(check(&link(1_000, 1e9)), Ok(()));
    assert_eq!(check(&link(10_000_000_000, 1e6)), Ok(()));
    for (fault, bits_per_s, latency_ns) in [
        ("slower than 1 kbit/s", 999, 0.0),
        ("2000 ms is more than 1000 ms", 1_000, 2e9),
        ("119.2 MiB would be under way", 1_000_000_000, 1e9),
    ] {
        let refused = check(&link(bits_per_s, latency_ns)).expect_err(fault);
        assert!(refused.contains(fault), "{refused}");
    }
    let burst = Link {
        burst_bytes: 1.0,
        ..Link::default()
    };
    let refused = check(&burst).expect_err("it has a burst");
    assert!(refused.contains("a burst is not supported"), "{refused}");
}

#[test]
fn a_control_frame_slips_in_ahead_of_a_flit_and_costs_it_as_much() {
    // 40 ns per byte.
    let link = link(200_000_000, 0.0);
    let mut port = SendPort::default();
    assert_eq!(port.depart(Time(0), 1, 1000, &link), Time(40_000));
    assert_eq!(port.slip_in(Time(100), 10, &link), Time(500));
    assert_eq!(port.slip_in(Time(100), 10, &link), Time(900));
    assert_eq!(port.depart(Time(200), 1, 1000, &link), Time(80_800));
}

/// Two flits of 1000 bytes and a control frame, at 40 ns per byte and 5 us per flit.
#[test]
fn a_flit_has_the_ports_for_its_set_up_time_too() {
    let link = Link {
        setup_ns: 5_000.0,
        ..link(200_000_000, 0.0)
    };
    let mut send = SendPort::default();
    let departed = [0, 0].map(|now| send.depart(Time(now), 1, 1000, &link));
    assert_eq!(departed, [Time(45_000), Time(90_000)]);
    assert_eq!(send.slip_in(Time(0), 100, &link), Time(4_000));
    let mut receive = ReceivePort::default();
    assert_eq!(receive.arrive(Time(45_000), 1, 1000, &link), Time(45_000));
    // A frame from another neighbour at the same time.
    assert_eq!(receive.arrive(Time(45_000), 1, 1000, &link), Time(90_000));
    assert_eq!(receive.arrive(Time(45_000), 0, 100, &link), Time(94_000));
}
