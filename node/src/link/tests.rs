//! Links over real sockets.

use super::*;

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
