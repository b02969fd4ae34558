//! Frames in the reader, and links over real sockets.

use super::*;

fn feed(reader: &mut Reader, wire: &mut &[u8], most: usize) -> usize {
    let space = reader.space();
    let n = space.len().min(wire.len()).min(most);
    space[..n].copy_from_slice(&wire[..n]);
    *wire = &wire[n..];
    reader.filled(n);
    n
}

#[test]
fn frames_come_out_as_they_went_in_however_they_are_cut() {
    let bodies: [&[u8]; 5] = [b"a", b"", b"hello", &[7; 100], b"z"];
    let mut sealer = Sealer::default();
    let sealed = |body: &[u8]| [&sealer.seal([body, &[]])[..], body].concat();
    let wire = bodies.map(sealed).concat();
    for most in [1, 2, 3, 5, 7, 1000] {
        let mut reader = Reader::new(SEAL_BYTES + 100);
        let mut rest = &wire[..];
        for body in bodies {
            while reader.missing().unwrap() > 0 {
                assert!(feed(&mut reader, &mut rest, most) > 0);
            }
            assert_eq!(&reader.frame()[HEAD_BYTES..], body);
            reader.consume();
        }
        assert_eq!(reader.held.len() + rest.len(), 0);
    }
}

#[test]
fn never_more_than_a_frame_and_a_prefix_is_held() {
    let body = [7; 100];
    let frame = [&Sealer::default().seal([&body, &[]])[..], &body].concat();
    let wire = frame.repeat(10);
    let mut reader = Reader::new(SEAL_BYTES + 100);
    let mut rest = &wire[..];
    for _ in 0..10 {
        while reader.missing().unwrap() > 0 {
            feed(&mut reader, &mut rest, 1000);
            assert!(reader.held.len() <= frame.len() + LENGTH_BYTES);
        }
        reader.consume();
    }
}

#[test]
fn a_long_frame_is_refused_by_its_prefix() {
    let mut reader = Reader::new(3);
    feed(&mut reader, &mut &u32::MAX.to_be_bytes()[..], 4);
    assert!(matches!(reader.missing(), Err(WireError::TooLong { .. })));
}

/// Over a real connection: control frames and flits, each once, twice or thrice.
#[tokio::test]
async fn what_comes_again_is_dropped_and_counted() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) =
        tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
    let mut sender = sender.unwrap();
    let mut link = Link::new(PeId(1), Transport::plain(accepted.unwrap().0), 1000).unwrap();
    let mut sealer = Sealer::default();
    let mut wire = Vec::new();
    let mut sent = Vec::new();
    for place in 0..30u8 {
        let mut frame = Vec::new();
        match place % 2 {
            0 => EdgeFrame::Departed {
                at: Time(place.into()),
            }
            .put(&mut frame),
            _ => {
                let payload = vec![place; 30 * usize::from(place)];
                flitcast_proto::wire::flit::put_prefix(None, None, payload.len(), &mut frame);
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
