//! The measurement of an edge before any round: exchanges of bursts of several sizes, down and up,
//! each with its four times. The coordinator computes the parameters of the edge and of the two
//! clocks from them.
//!
//! A burst is made of flits, as a message is. The upper end first sends ever longer ones, until two
//! sizes take long enough to be timed well, and then all sizes in turn, again and again: a
//! disturbance then affects a few times of each size, and not all of one. If there is time, the
//! longest burst is also sent in many short flits: the difference is the cost of a flit apart from
//! its bytes. Before each burst the link is idle for as long as the last one needs at its rate, so
//! that a token bucket is full again. A bucket that is too deep to be emptied within the time gets
//! no pauses: the rate of its link is found, and its depth is not.

use flitcast_proto::Time;
use flitcast_proto::exchange::Exchange;
use flitcast_proto::wire::edge::{EdgeFrame, Probe};
use flitcast_proto::wire::flit;
use flitcast_proto::wire::seal::SEAL_BYTES;

use crate::link::{Link, LinkError, Outgoing};
use crate::system::clock::{self, Alarm};
use crate::tuning::probe::{
    BUDGET_SHARE, FEW_SIZES, GROWTH, LEAST_TURNS, LONG_ENOUGH_NS, LONGEST_BYTES, MAX_FLITS,
    MOST_TURNS, OVERTIME, OVERTIME_NS, QUICK_GROWTH, QUICK_NS, SHORT_FROM, SHORTEST_BYTES, SMALL,
    SMALL_FOR_CLOCKS, TOO_LONG_NS,
};

/// Measures the edge at whose upper end this PE is, in at most some 1000 exchanges. With a budget
/// of 0 they are small and measure only the clocks.
pub async fn measure(
    link: &mut Link,
    flit_bytes: u32,
    budget_ns: u64,
    alarm: &mut Alarm,
) -> Result<Vec<Exchange>, LinkError> {
    let began = clock::now().0;
    let mut prober = Prober {
        link,
        alarm,
        payload: vec![0; flit_bytes as usize],
        answer_flit_bytes: flit_bytes,
        prefix: Vec::new(),
    };
    if budget_ns == 0 {
        return prober.small(SMALL_FOR_CLOCKS).await;
    }
    // The first ones are slower than all others, because caches are empty.
    prober.small(SMALL).await?;
    let enough_ns = LONG_ENOUGH_NS.max(budget_ns / BUDGET_SHARE);
    let growth = match budget_ns < QUICK_NS {
        true => QUICK_GROWTH,
        false => GROWTH,
    };
    let Grown {
        sizes,
        exchanges: mut all,
        idle_ns_per_byte,
    } = prober.grow(enough_ns, growth).await?;
    let overtime_ns = OVERTIME_NS.min(OVERTIME.saturating_mul(budget_ns));
    for turn in 0..MOST_TURNS {
        let spent = clock::now().0 - began;
        let too_long = spent > budget_ns + overtime_ns && !all.is_empty();
        if spent > budget_ns && (turn >= LEAST_TURNS || too_long) {
            break;
        }
        all.extend(prober.small(SMALL).await?);
        let longest = sizes.last().filter(|_| budget_ns >= QUICK_NS);
        let cut = longest.filter(|bytes| **bytes >= SHORT_FROM);
        let whole = sizes.iter().map(|bytes| (*bytes, false));
        for (bytes, is_cut) in whole.chain(cut.map(|bytes| (*bytes, true))) {
            for (down, up) in [(bytes, 0), (0, bytes)] {
                all.push(match is_cut {
                    true => prober.cut_exchange(down, up).await?,
                    false => prober.exchange(down, up).await?,
                });
                let idle_ns = (idle_ns_per_byte * f64::from(bytes)) as u64;
                prober.idle(idle_ns).await?;
            }
        }
    }
    Ok(all)
}

/// The results of the ever longer bursts.
struct Grown {
    sizes: Vec<u32>,
    /// The exchanges that had the same state of the bucket as later ones will.
    exchanges: Vec<Exchange>,
    /// Time that a bucket needs to fill up again.
    idle_ns_per_byte: f64,
}

struct Prober<'a> {
    link: &'a mut Link,
    alarm: &'a mut Alarm,
    payload: Vec<u8>,
    answer_flit_bytes: u32,
    prefix: Vec<u8>,
}

impl Prober<'_> {
    async fn small(&mut self, count: u32) -> Result<Vec<Exchange>, LinkError> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.exchange(0, 0).await?);
        }
        Ok(all)
    }

    /// Sends ever longer bursts, until two sizes take `enough_ns` longer than a small one.
    async fn grow(&mut self, enough_ns: u64, growth: u32) -> Result<Grown, LinkError> {
        let mut all = self.small(SMALL).await?;
        let small = all.iter().map(elapsed).min().unwrap_or(0);
        let mut sizes = Vec::new();
        let longest = LONGEST_BYTES.min(MAX_FLITS.saturating_mul(self.answer_flit_bytes));
        let mut bytes = SHORTEST_BYTES.min(longest);
        let mut long_enough = 0;
        let mut idle_ns_per_byte = 0.0;
        let ways = |bytes| [(bytes, 0), (0, bytes)];
        loop {
            // The second of two in a row finds an empty bucket, and shows the rate.
            let mut at_its_rate = 0;
            for (down, up) in ways(bytes) {
                self.exchange(down, up).await?;
                let second = self.exchange(down, up).await?;
                at_its_rate = at_its_rate.max(elapsed(&second));
            }
            self.idle(2 * at_its_rate).await?;
            let mut took = u64::MAX;
            for (down, up) in ways(bytes) {
                let rested = self.exchange(down, up).await?;
                took = took.min(elapsed(&rested));
                all.push(rested);
            }
            sizes.push(bytes);
            long_enough += u32::from(took > small + enough_ns);
            let is_last = bytes.saturating_mul(growth) > longest || long_enough == 2;
            if long_enough > 0 || is_last {
                idle_ns_per_byte = at_its_rate as f64 / f64::from(bytes);
            }
            if is_last || at_its_rate.saturating_mul(growth.into()) > TOO_LONG_NS {
                break;
            }
            bytes *= growth;
        }
        if long_enough == 2 {
            add_middle(&mut sizes);
        }
        if idle_ns_per_byte == 0.0 {
            // All found a full bucket, which shall be empty from now on.
            all.clear();
            for (down, up) in ways(bytes).into_iter().cycle().take(4) {
                self.exchange(down, up).await?;
            }
        }
        Ok(Grown {
            sizes,
            exchanges: all,
            idle_ns_per_byte,
        })
    }

    async fn idle(&mut self, ns: u64) -> Result<(), LinkError> {
        let until = Time(clock::now().0 + ns);
        let waited = self.alarm.wait(Some(until)).await;
        waited.map_err(|error| self.link.failed(error))
    }

    /// Exchanges a burst of `down` bytes down and one of `up` bytes up.
    async fn exchange(&mut self, down: u32, up: u32) -> Result<Exchange, LinkError> {
        let shapes = [down, up].map(|bytes| shape(bytes, self.answer_flit_bytes));
        self.burst(shapes, 0).await
    }

    /// Exchanges such bursts in the largest possible number of flits.
    async fn cut_exchange(&mut self, down: u32, up: u32) -> Result<Exchange, LinkError> {
        let flits = shape(down.max(up), self.answer_flit_bytes).0;
        let shapes = [down, up].map(|bytes| shape(bytes, bytes.div_ceil(MAX_FLITS)));
        self.burst(shapes, MAX_FLITS - flits).await
    }

    /// Exchanges bursts of this number and length of flits, down and up.
    async fn burst(
        &mut self,
        shapes: [(u32, u32); 2],
        extra_flits: u32,
    ) -> Result<Exchange, LinkError> {
        let [(flits, flit_bytes), (reply_flits, reply_flit_bytes)] = shapes;
        let probe = Probe {
            flits,
            reply_flits,
            reply_flit_bytes,
        };
        let sent_ns = clock::now().0;
        self.link.send_control(&EdgeFrame::Probe(probe)).await?;
        let payload = &self.payload[..flit_bytes as usize];
        let down_bytes = send_flits(self.link, flits, payload, &mut self.prefix).await?;
        let up_bytes = take_flits(self.link, reply_flits).await?;
        match self.link.next_control().await? {
            EdgeFrame::ProbeReply {
                received_ns,
                answered_ns,
            } => Ok(Exchange {
                down_bytes,
                up_bytes,
                extra_flits,
                sent_ns,
                received_ns,
                answered_ns,
                returned_ns: clock::now().0,
            }),
            _ => Err(self.link.malformed("no end of the answer to a probe")),
        }
    }
}

/// Adds a size between the last two if there are few, so that three are beyond a bend: no disturbed one
/// decides the rate.
fn add_middle(sizes: &mut Vec<u32>) {
    if let [.., shorter, longer] = sizes[..]
        && sizes.len() < FEW_SIZES
    {
        sizes.insert(sizes.len() - 1, shorter.midpoint(longer));
    }
}

fn elapsed(exchange: &Exchange) -> u64 {
    exchange.returned_ns - exchange.sent_ns
}

/// Returns the number and the length of the flits of a burst of `bytes` bytes.
fn shape(bytes: u32, flit_bytes: u32) -> (u32, u32) {
    match bytes {
        0 => (0, 0),
        _ if bytes <= flit_bytes => (1, bytes),
        _ => (bytes.div_ceil(flit_bytes), flit_bytes),
    }
}

/// Waits for the next frame of the upper end and answers it if it is a probe. Returns false if it is
/// a control item of a round: the upper end is prepared for the rounds before this PE is, and the
/// frame stays the next one of the link. `flit_bytes` bounds the length of requested flits.
pub async fn answer_next(link: &mut Link, flit_bytes: u32) -> Result<bool, LinkError> {
    link.next_frame().await?;
    let probe = match EdgeFrame::parse(link.body()).map_err(|error| link.wire(error))? {
        EdgeFrame::Probe(probe) => probe,
        EdgeFrame::Control { .. } => return Ok(false),
        _ => return Err(link.malformed("a frame that is not a probe, before the rounds")),
    };
    link.consume();
    if probe.flits.max(probe.reply_flits) > MAX_FLITS || probe.reply_flit_bytes > flit_bytes {
        return Err(link.malformed("a probe of more than may be asked for"));
    }
    let payload = vec![0; probe.reply_flit_bytes as usize];
    let mut prefix = Vec::new();
    take_flits(link, probe.flits).await?;
    let received_ns = clock::now().0;
    let answered_ns = clock::now().0;
    send_flits(link, probe.reply_flits, &payload, &mut prefix).await?;
    let reply = EdgeFrame::ProbeReply {
        received_ns,
        answered_ns,
    };
    link.send_control(&reply).await?;
    Ok(true)
}

/// Sends flits, and returns their length on the wire.
async fn send_flits(
    link: &mut Link,
    flits: u32,
    payload: &[u8],
    prefix: &mut Vec<u8>,
) -> Result<u64, LinkError> {
    prefix.clear();
    flit::put_prefix(None, None, payload.len(), prefix);
    for _ in 0..flits {
        link.send_frame(Outgoing::flit(prefix, payload)).await?;
    }
    Ok(u64::from(flits) * (SEAL_BYTES + prefix.len() + payload.len()) as u64)
}

/// Receives flits, and returns their length on the wire.
async fn take_flits(link: &mut Link, flits: u32) -> Result<u64, LinkError> {
    let mut bytes = 0;
    for _ in 0..flits {
        link.next_frame().await?;
        if !flit::is_flit(link.body()) {
            return Err(link.malformed("no flit in the burst of a probe"));
        }
        bytes += link.frame_bytes() as u64;
        link.consume();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use flitcast_plan::calibration::clock::ClockOffset;
    use flitcast_plan::calibration::fit_edge;
    use flitcast_proto::RoundId;
    use flitcast_proto::items::Control;

    use crate::link::tests::connected;

    use super::*;

    const FLIT: u32 = 64 * 1024;

    /// Returns the exchanges with a lower end that answers correctly.
    async fn measured(budget_ns: u64) -> Vec<Exchange> {
        let (mut above, mut below) = connected(FLIT).await;
        let mut alarm = Alarm::new().unwrap();
        let answering = async {
            loop {
                assert!(answer_next(&mut below, FLIT).await.unwrap());
            }
        };
        tokio::select! {
            all = measure(&mut above, FLIT, budget_ns, &mut alarm) => all.unwrap(),
            () = answering => unreachable!("it never ends"),
        }
    }

    #[tokio::test]
    async fn an_edge_can_be_fitted_to_what_is_exchanged() {
        // A busy machine gets much longer than this for the least number of exchanges.
        let all = measured(49_000_000).await;
        assert!(all.len() <= 1024, "{}", all.len());
        let small = all.iter().filter(|e| e.down_bytes + e.up_bytes == 0);
        assert!(small.count() >= 6, "{all:?}");
        let edge = fit_edge(&all, true).unwrap().values();
        let latencies = [edge.down.latency_ns, edge.up.latency_ns];
        assert!(latencies.iter().all(|ns| *ns > 0.0), "{edge:?}");
    }

    #[tokio::test]
    async fn the_clocks_alone_need_no_bursts() {
        let all = measured(0).await;
        assert!(all.iter().all(|e| e.down_bytes + e.up_bytes == 0));
        let offset = ClockOffset::between(&all).unwrap();
        let distance = offset.offset_ns.unsigned_abs();
        assert!(distance <= offset.uncertainty_ns, "{offset:?}");
    }

    /// Frames before the rounds: probes that request too much, a burst of anything but flits, and what
    /// is not a probe.
    #[tokio::test]
    async fn what_is_not_a_good_probe_is_refused() {
        let probe = |flits, reply_flits, reply_flit_bytes| {
            EdgeFrame::Probe(Probe {
                flits,
                reply_flits,
                reply_flit_bytes,
            })
        };
        let reply = EdgeFrame::ProbeReply {
            received_ns: 1,
            answered_ns: 2,
        };
        for (frame, why) in [
            (probe(MAX_FLITS + 1, 0, 0), "more than may be"),
            (probe(0, MAX_FLITS + 1, 0), "more than may be"),
            (probe(0, 0, FLIT + 1), "more than may be"),
            (probe(1, 0, 0), "no flit"),
            (reply, "not a probe"),
        ] {
            let (mut above, mut below) = connected(FLIT).await;
            for _ in 0..2 {
                above.send_control(&frame).await.unwrap();
            }
            let refused = answer_next(&mut below, FLIT).await.unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }

    /// A PE that is prepared calls its senders, of which some may not be prepared yet.
    #[tokio::test]
    async fn a_control_item_waits_for_the_rounds() {
        let (mut above, mut below) = connected(FLIT).await;
        let call = EdgeFrame::Control {
            round: RoundId(1),
            item: Control::Token,
        };
        above.send_control(&call).await.unwrap();
        for _ in 0..2 {
            assert!(!answer_next(&mut below, FLIT).await.unwrap());
        }
        assert_eq!(below.next_control().await.unwrap(), call);
    }

    #[test]
    fn few_sizes_get_one_more_near_the_end() {
        for (before, after) in [
            (&[1024, 4096, 16_384][..], &[1024, 4096, 10_240, 16_384][..]),
            (&[1024], &[1024]),
            (&[1, 2, 4, 8, 16], &[1, 2, 4, 8, 16]),
        ] {
            let mut sizes = before.to_vec();
            add_middle(&mut sizes);
            assert_eq!(sizes, after);
        }
    }

    #[test]
    fn bursts_are_cut_into_flits() {
        assert_eq!(shape(0, 100), (0, 0));
        assert_eq!(shape(100, 100), (1, 100));
        assert_eq!(shape(1024, 64), (16, 64));
        assert_eq!(shape(LONGEST_BYTES, 1 << 14), (64, 1 << 14));
    }
}
