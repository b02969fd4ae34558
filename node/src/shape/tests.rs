//! Tests of shaped links over real sockets. No frame arrives before its time: this can be asserted on
//! any machine, in contrast to an upper limit.

use flitcast_proto::cost::Link as Wire;
use flitcast_proto::items::{Control, Message};
use flitcast_proto::wire::seal::SEAL_BYTES;
use flitcast_proto::wire::{LENGTH_BYTES, flit};
use flitcast_proto::{PeId, RoundId, Time};

use super::*;
use crate::link::tests::connected;
use crate::link::{Link, LinkError, Outgoing};

const FLIT_BYTES: u32 = 65_536;

/// 100 Mbit/s.
const NS_PER_BYTE: u64 = 80;

fn wire(latency_ns: f64) -> Wire {
    Wire {
        latency_ns,
        setup_ns: 0.0,
        ns_per_byte: NS_PER_BYTE as f64,
        burst_bytes: 0.0,
    }
}

/// Returns a shape with separate ports.
fn shape_of(wire: Wire) -> Shape {
    Shape::new(wire, wire, Ports::new().unwrap())
}

/// Returns the two ends of a shaped connection, each with its own ports.
async fn shaped(wire: Wire) -> (Link, Link) {
    let (mut above, mut below) = connected(FLIT_BYTES).await;
    above.shape(shape_of(wire));
    below.shape(shape_of(wire));
    (above, below)
}

fn token(round: u64) -> EdgeFrame {
    EdgeFrame::Control {
        round: RoundId(round),
        item: Control::Token,
    }
}

fn payload(seed: usize) -> Vec<u8> {
    let bytes = 0..FLIT_BYTES as usize;
    bytes.map(|i| (i * 31 + seed) as u8).collect()
}

fn flit_prefix() -> Vec<u8> {
    let message = Message::between(PeId(0), PeId(1), FLIT_BYTES.into());
    let mut prefix = Vec::new();
    let head = Some((RoundId(1), message));
    flit::put_prefix(head, None, FLIT_BYTES as usize, &mut prefix);
    prefix
}

/// Takes the next frame, which must not arrive before `at`; returns its bytes.
async fn take_not_before(link: &mut Link, at: u64) -> Vec<u8> {
    link.next_frame().await.unwrap();
    let now = clock::now().0;
    assert!(now >= at, "{} ns early", at - now);
    let frame = link.body().to_vec();
    link.consume();
    frame
}

#[tokio::test]
async fn frames_arrive_whole_in_order_and_not_before_their_time() {
    const LATENCY_NS: u64 = 3_000_000;
    let (mut above, mut below) = shaped(wire(LATENCY_NS as f64)).await;
    let start = clock::now().0;
    let send = async {
        for round in 0..10 {
            above.send_control(&token(round)).await.unwrap();
            let (prefix, payload) = (flit_prefix(), payload(round as usize));
            let flit = Outgoing::flit(&prefix, &payload);
            above.send_frame(flit).await.unwrap();
        }
    };
    let receive = async {
        let mut on_the_wire = 0;
        for round in 0..10 {
            let mut small = Vec::new();
            token(round).put(&mut small);
            let large = [flit_prefix(), payload(round as usize)].concat();
            for expected in [small, large] {
                on_the_wire += (expected.len() + SEAL_BYTES) as u64;
                let at = start + LATENCY_NS + on_the_wire * NS_PER_BYTE;
                let body = take_not_before(&mut below, at).await;
                assert!(body == expected[LENGTH_BYTES..]);
            }
        }
    };
    tokio::join!(send, receive);
}

#[tokio::test]
async fn both_ports_take_one_frame_at_a_time() {
    // P0 between two children: it sends to both, and both send to it.
    let ports = Ports::new().unwrap();
    let mut above = Vec::new();
    let mut below = Vec::new();
    for _ in 0..2 {
        let (mut upper, mut lower) = connected(FLIT_BYTES).await;
        upper.shape(Shape::new(wire(0.0), wire(0.0), ports.clone()));
        lower.shape(shape_of(wire(0.0)));
        above.push(upper);
        below.push(lower);
    }
    let frame = [flit_prefix(), payload(0)].concat();
    let both = 8 * (frame.len() + SEAL_BYTES) as u64 * NS_PER_BYTE;

    let start = clock::now().0;
    for _ in 0..4 {
        for link in &mut above {
            link.send_frame(Outgoing::flit(&frame, &[])).await.unwrap();
        }
    }
    for link in &mut below {
        for _ in 0..4 {
            take_not_before(link, start).await;
        }
    }
    assert!(clock::now().0 >= start + both);

    let start = clock::now().0;
    let [first, second] = &mut below[..] else {
        panic!("there are two")
    };
    let send = async |link: &mut Link| {
        for _ in 0..4 {
            link.send_frame(Outgoing::flit(&frame, &[])).await.unwrap();
        }
    };
    let receive = async {
        for _ in 0..4 {
            for link in &mut above {
                take_not_before(link, start).await;
            }
        }
    };
    tokio::join!(send(first), send(second), receive);
    assert!(clock::now().0 >= start + both);
}

#[tokio::test]
async fn frames_that_were_held_are_stamped_one_by_one() {
    let (mut above, mut below) = shaped(wire(0.0)).await;
    for round in 0..5 {
        let mut frame = Vec::new();
        token(round).put(&mut frame);
        let frame = Outgoing::forwarded(&frame[LENGTH_BYTES..]);
        above.send_frame(frame).await.unwrap();
    }
    for round in 0..5 {
        assert_eq!(below.next_control().await.unwrap(), token(round));
    }
}

#[tokio::test]
async fn bytes_on_the_wire_do_not_count_as_waiting() {
    const LATENCY_NS: u64 = 50_000_000;
    let (mut above, mut below) = shaped(wire(LATENCY_NS as f64)).await;
    assert_eq!(below.waiting_bytes(), 0);
    let mut frame = Vec::new();
    token(1).put(&mut frame);
    let before = clock::now().0;
    above.send_frame(Outgoing::flit(&frame, &[])).await.unwrap();
    let waiting = below.waiting_bytes();
    assert!(waiting == 0 || clock::now().0 >= before + LATENCY_NS);
    // The frame is there, even without a poll.
    below.next_frame().await.unwrap();
    assert_eq!(below.waiting_bytes(), (frame.len() + SEAL_BYTES) as u64);
    below.consume();
    assert_eq!(below.waiting_bytes(), 0);
}

#[tokio::test]
async fn a_neighbour_without_a_shape_or_with_another_clock_is_refused() {
    let (at, joins) = (Time(u64::MAX), false);
    for (frame, why) in [
        (token(1), "without its time of departure"),
        (EdgeFrame::Departed { at, joins }, "another host's"),
    ] {
        let (mut above, mut below) = connected(FLIT_BYTES).await;
        below.shape(shape_of(wire(0.0)));
        above.send_control(&frame).await.unwrap();
        let refused = below.next_frame().await.unwrap_err();
        assert!(matches!(refused, LinkError::Wire(..)), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
