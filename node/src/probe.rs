//! The short measurement of an edge before any round: what a frame takes to
//! cross, as a latency and a time per byte, per direction.
//!
//! The upper end times bursts that the lower end answers: tiny ones, and long
//! ones down or up. The least of several times is taken: noise only adds.

use bytes::Bytes;
use flitcast_proto::cost::Link as Measured;
use flitcast_proto::wire::edge::EdgeFrame;

use crate::clock;
use crate::link::{Link, LinkError};

/// A burst of one direction.
const BURST_FRAMES: u32 = 4;
/// How often each kind of burst is sent.
const REPEATS: usize = 5;
/// A burst that takes longer is not repeated.
const LONG_BURST_NS: f64 = 5e8;
/// The longest probing frame.
const BURST_FRAME_BYTES: usize = 64 * 1024;

/// Measures the edge at whose upper end this is: (down, up).
pub async fn measure(link: &mut Link, flit_bytes: u32) -> Result<(Measured, Measured), LinkError> {
    let frame = BURST_FRAME_BYTES.min(flit_bytes as usize);
    let round_trip = best(link, 1, 0, 1, 0).await?;
    let down = best(link, BURST_FRAMES, frame, 1, 0).await?;
    let up = best(link, 1, 0, BURST_FRAMES, frame).await?;
    let latency_ns = round_trip / 2.0;
    let of_burst = |time: f64| Measured {
        latency_ns,
        ns_per_byte: (time - round_trip).max(0.0) / (BURST_FRAMES as usize * frame) as f64,
        burst_bytes: 0.0,
    };
    Ok((of_burst(down), of_burst(up)))
}

/// The least time, in nanoseconds, from the first byte of a burst to the last of
/// its answer.
async fn best(
    link: &mut Link,
    frames: u32,
    bytes: usize,
    reply_frames: u32,
    reply_bytes: usize,
) -> Result<f64, LinkError> {
    let payload = Bytes::from(vec![0; bytes]);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = clock::now().0;
        for sent in 1..=frames {
            let last = sent == frames;
            let payload = payload.clone();
            let reply_bytes = reply_bytes as u32;
            let probe = EdgeFrame::Probe {
                last,
                reply_bytes,
                reply_frames,
                payload,
            };
            link.send_control(&probe).await?;
        }
        for _ in 0..reply_frames {
            link.next_frame().await?;
            link.consume();
        }
        let took = (clock::now().0 - start) as f64;
        best = best.min(took);
        // So long a time is no noise, and others wait to be measured.
        if took > LONG_BURST_NS {
            break;
        }
    }
    Ok(best)
}

/// Answers one frame of the burst that the upper end sends. `frame_limit` bounds
/// what it can ask for.
pub async fn answer(link: &mut Link, frame: EdgeFrame, frame_limit: u32) -> Result<(), LinkError> {
    if let EdgeFrame::Probe {
        last: true,
        reply_bytes,
        reply_frames,
        ..
    } = frame
    {
        let payload = Bytes::from(vec![0; reply_bytes.min(frame_limit) as usize]);
        let reply = EdgeFrame::ProbeReply { payload };
        for _ in 0..reply_frames.min(BURST_FRAMES) {
            link.send_control(&reply).await?;
        }
    }
    Ok(())
}
