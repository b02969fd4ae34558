//! Links over real sockets.

use flitcast_proto::wire::LENGTH_BYTES;
use flitcast_proto::wire::flit::put_prefix;
use flitcast_proto::{Compression, Time};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// A real connection: control frames and flits, each once, twice or three times.
#[tokio::test]
async fn repeated_frames_are_dropped_and_counted() {
    let (mut sender, accepted) = sockets().await;
    let mut link = Link::new(PeId(1), Transport::plain(accepted), 1000).unwrap();
    let mut sealer = FrameSealer::default();
    let mut wire = Vec::new();
    let mut sent = Vec::new();
    for place in 0..30u8 {
        let mut frame = Vec::new();
        match place % 2 {
            0 => {
                let (at, joins) = (Time(place.into()), false);
                EdgeFrame::Departed { at, joins }.put(&mut frame);
            }
            _ => {
                let payload = vec![place; 30 * usize::from(place)];
                put_prefix(None, None, payload.len(), &mut frame);
                frame.extend(payload);
            }
        }
        let sealed = sealer.sealed(&frame);
        wire.extend(sealed.repeat(1 + usize::from(place % 3)));
        sent.push(frame);
    }
    let first = sealer.sealed(&sent[0]);
    let write = async {
        sender.write_all(&wire).await.unwrap();
        sender.write_all(&first).await.unwrap();
    };
    let read = async {
        for frame in &sent {
            link.next_frame().await.unwrap();
            assert_eq!(link.body(), &frame[LENGTH_BYTES..]);
            link.consume();
        }
        link.next_frame().await.unwrap();
    };
    tokio::join!(write, read);
    assert_eq!(link.take_repeated(), 30);
    assert_eq!(link.take_repeated(), 0);
}

/// Returns both ends of a connection.
async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (caller, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (caller.unwrap(), accepted.unwrap().0)
}

/// Returns the two ends of a connection: P0's and P1's.
pub(crate) async fn connected(flit_bytes: u32) -> (Link, Link) {
    let (above, below) = sockets().await;
    let link = |peer, stream| Link::new(PeId(peer), Transport::plain(stream), flit_bytes).unwrap();
    (link(1, above), link(0, below))
}

/// Short frames are coalesced, and written on request or when there are too many of them; all arrive
/// complete and in order.
#[tokio::test]
async fn short_frames_are_coalesced() {
    let (mut sender, mut receiver) = connected(20_000).await;
    let mut sent = Vec::new();
    let mut waits = Vec::new();
    sender.gather();
    for bytes in [100, 0, 1000, 15_000, 500, 20_000, 10] {
        let payload = vec![bytes as u8; bytes];
        let mut prefix = Vec::new();
        put_prefix(None, None, bytes, &mut prefix);
        let flit = Outgoing::flit(&prefix, &payload);
        assert!(sender.begin_frame(flit).unwrap());
        waits.push(sender.rest.bytes.len() / 100);
        sent.push([&prefix[LENGTH_BYTES..], &payload].concat());
    }
    // The fifth exceeds the limit, and is written with those before it; the sixth is written alone.
    assert_eq!(waits, [1, 1, 11, 161, 0, 0, 0]);
    assert!(!sender.rest.bytes.is_empty());
    sender.flush_gathered().unwrap();
    assert!(sender.rest.bytes.is_empty());
    for body in &sent {
        receiver.next_frame().await.unwrap();
        assert_eq!(receiver.body(), body);
        receiver.consume();
    }
}

/// Returns the prefix and the payload of a flit that can be compressed, or not.
fn flit_of(bytes: usize, is_random: bool) -> (Vec<u8>, Vec<u8>) {
    let mut seeds = flitcast_proto::seeded::SplitMix64::new(bytes as u64);
    let kinds = if is_random { 256 } else { 3 };
    let payload: Vec<u8> = (0..bytes).map(|_| seeds.below(kinds) as u8).collect();
    let mut prefix = Vec::new();
    put_prefix(None, None, bytes, &mut prefix);
    (prefix, payload)
}

/// Flits of all kinds arrive as they were sent, over a relay too, which sends compressed ones on as they
/// are. Data that cannot be compressed is sampled less and less often.
#[tokio::test]
async fn flits_are_compressed_where_that_makes_them_shorter() {
    let (mut sender, mut relay) = connected(20_000).await;
    let (mut onward, mut receiver) = connected(20_000).await;
    for link in [&mut sender, &mut relay, &mut onward, &mut receiver] {
        link.compress(Compression::BEST);
    }
    let mut on_wire = Vec::new();
    for place in 0..12 {
        let (prefix, payload) = flit_of([20_000, 500, 5000][place % 3], (2..9).contains(&place));
        let flit = Outgoing::flit(&prefix, &payload);
        match place % 2 {
            0 => sender.send_frame(flit).await.unwrap(),
            _ => assert!(sender.begin_frame(flit).unwrap()),
        }
        let order = EdgeFrame::Control {
            round: flitcast_proto::RoundId(1),
            item: flitcast_proto::items::Control::Receipt,
        };
        sender.send_control(&order).await.unwrap();
        let body = [&prefix[LENGTH_BYTES..], &payload].concat();
        relay.next_frame().await.unwrap();
        assert_eq!(relay.body(), body);
        let bytes = relay.frame_bytes();
        onward.send_frame(relay.forwarded()).await.unwrap();
        relay.consume();
        assert_eq!(relay.next_control().await.unwrap(), order);
        receiver.next_frame().await.unwrap();
        assert_eq!(receiver.body(), body);
        assert_eq!(receiver.frame_bytes(), bytes);
        receiver.consume();
        on_wire.push(bytes < body.len());
    }
    let compressed: Vec<usize> = (0..12).filter(|place| on_wire[*place]).collect();
    // After the second failure, three long ones are sent as they are.
    assert_eq!(compressed, [0, 11]);
}

/// A compressed frame has at most as many bytes as the link's flits may have, whatever it declares.
#[tokio::test]
async fn a_frame_that_would_be_too_long_is_refused() {
    for (flit_bytes, declares) in [
        (30_000, None),
        (30_000, Some(100)),
        (100, Some(u32::MAX as usize)),
    ] {
        let (mut sender, accepted) = sockets().await;
        let mut link = Link::new(PeId(1), Transport::plain(accepted), 20_000).unwrap();
        link.compress(Compression::BEST);
        let (prefix, payload) = flit_of(flit_bytes, false);
        let body = [&prefix[LENGTH_BYTES..], &payload].concat();
        let packed = match declares {
            Some(declares) => {
                packed::encoded(Compression::Lz4, declares, lz4_flex::block::compress(&body))
            }
            None => packed::pack(Compression::BEST, &body, 1 << 20).unwrap(),
        };
        let frame = [&(packed.len() as u32).to_be_bytes()[..], &packed].concat();
        let sealed = FrameSealer::default().sealed(&frame);
        sender.write_all(&sealed).await.unwrap();
        let refused = link.next_frame().await;
        assert!(matches!(refused, Err(LinkError::Wire(..))), "{refused:?}");
    }
}
