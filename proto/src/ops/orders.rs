//! The times of a PE's orders: all at once, or each in its turn (spec, section 7, "Clock or
//! turns").
//!
//! In turns a PE treats all data that passes it as one line: its own message, then its children's
//! streams. An order is sent when the line has advanced so far that the child's first byte arrives
//! just after the byte before it. The position on the line is exact at each flit and estimated from
//! the pace in between, so a late stream also delays the next order.

use std::collections::VecDeque;

use crate::limits::SHORT_QUEUE_BYTES;
use crate::schedule::certification::Slot;
use crate::{PeId, Time};

/// A message or stream on the line.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: u64,
    ticks: u64,
    /// When its first byte is expected; set once its order has been sent.
    expected: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    to: PeId,
    after: u64,
    /// The position on the line, in ticks, at which the order is sent.
    send_at: u64,
    /// The ticks by which it is sent before the line begins, if the way is so long.
    early: u64,
    /// Ticks from the order to the arrival of the child's first byte.
    ahead: u64,
    piece: usize,
}

/// Orders yet to be sent, in their sequence, and the position on the line.
#[derive(Debug, Default)]
pub(super) struct Orders {
    left: VecDeque<Order>,
    pieces: Vec<Piece>,
    flit_bytes: u64,
    passed: u64,
    /// A position on the line, in ticks, and the time at which it was or will be reached.
    reached: u64,
    reached_at: Time,
    /// When the order in progress was sent.
    pub(super) sent_at: Time,
}

impl Orders {
    /// Creates orders that are sent at once, in the sequence of their turns.
    pub(super) fn at_once(slots: &[Slot]) -> Orders {
        let mut by_place: Vec<&Slot> = slots.iter().collect();
        by_place.sort_by_key(|slot| (slot.turn, slot.pe));
        let order = |slot: &&Slot| Order {
            to: slot.pe,
            after: slot.after,
            send_at: 0,
            early: u64::MAX,
            ahead: 0,
            piece: 0,
        };
        Orders {
            left: by_place.iter().map(order).collect(),
            ..Orders::default()
        }
    }

    /// Creates orders that are sent in the sequence of the streams, after the own message (its bytes and
    /// its ticks), which starts at `start`.
    pub(super) fn in_turns(
        own: (u64, u64),
        start: Time,
        flit_bytes: u32,
        slots: &[Slot],
    ) -> Orders {
        let piece = |(bytes, ticks)| Piece {
            bytes,
            ticks,
            expected: None,
        };
        let mut pieces = vec![piece(own)];
        let mut ticks = own.1;
        let mut left = VecDeque::new();
        // Bytes that arrive before the next stream.
        let mut bytes = own.0;
        for slot in slots {
            // Nothing arrives while the own message is sent, so the stream after it may have begun
            // already. The first flit after another stream may not begin before that
            // ends.
            let behind_own = pieces.len() == 1;
            let lead = match behind_own {
                true => slot.ahead.saturating_add(slot.delay),
                false => slot.ahead,
            };
            left.push_back(Order {
                to: slot.pe,
                // A child that is called in its turn starts as soon as it can.
                after: slot.lag,
                send_at: ticks.saturating_sub(lead),
                early: match bytes <= SHORT_QUEUE_BYTES {
                    true => u64::MAX,
                    false => lead.saturating_sub(ticks),
                },
                ahead: slot.ahead,
                piece: pieces.len(),
            });
            pieces.push(piece((slot.packets.bytes, slot.through)));
            ticks = ticks.saturating_add(slot.through);
            bytes = bytes.saturating_add(slot.packets.bytes);
        }
        Orders {
            left,
            pieces,
            flit_bytes: flit_bytes.into(),
            reached_at: start,
            ..Orders::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns the receiver of the next order and its s, if it is sent now.
    pub(super) fn next(&self, now: Time) -> Option<(PeId, u64)> {
        let order = self.left.front()?;
        (self.due()? <= now).then_some((order.to, order.after))
    }

    /// Returns when the next order is sent, if that is before the next flit.
    pub(super) fn due(&self) -> Option<Time> {
        let Order { send_at, early, .. } = self.left.front()?;
        let Some(wait) = send_at.checked_sub(self.reached).filter(|wait| *wait > 0) else {
            // On a long way, orders of short streams would meet streams that have yet to arrive.
            let is_before = self.passed == 0;
            let at = Time(self.reached_at.0.saturating_sub(*early));
            return Some(if is_before { at } else { Time(0) });
        };
        // After the next flit the time is computed from that flit.
        let known = *send_at <= self.line(self.passed.saturating_add(self.flit_bytes));
        known.then(|| Time(self.reached_at.0.saturating_add(wait)))
    }

    /// Removes the next order, which was sent at `now`.
    pub(super) fn sent(&mut self, now: Time) {
        let Some(order) = self.left.pop_front() else {
            return;
        };
        let expected = Time(now.0.saturating_add(order.ahead));
        let Some(piece) = self.pieces.get_mut(order.piece) else {
            return;
        };
        piece.expected = Some(expected);
        if self.boundary() == Some(order.piece) {
            self.reached_at = self.reached_at.max(expected);
        }
    }

    /// Reports that `bytes` more bytes have passed.
    pub(super) fn progress(&mut self, now: Time, bytes: u64) {
        self.passed = self.passed.saturating_add(bytes);
        self.reached = self.line(self.passed);
        self.reached_at = now;
        let next = self.boundary().and_then(|piece| self.pieces.get(piece));
        if let Some(expected) = next.and_then(|piece| piece.expected) {
            self.reached_at = now.max(expected);
        }
    }

    /// Returns the piece that comes next, if none is in progress.
    fn boundary(&self) -> Option<usize> {
        let mut end = 0u64;
        for (place, piece) in self.pieces.iter().enumerate() {
            if piece.bytes > 0 && end == self.passed {
                return Some(place);
            }
            end = end.saturating_add(piece.bytes);
            if end > self.passed {
                return None;
            }
        }
        None
    }

    /// Returns the ticks of the line up to a byte.
    fn line(&self, byte: u64) -> u64 {
        let (mut ticks, mut left) = (0u64, byte);
        for piece in &self.pieces {
            if left < piece.bytes {
                let part = u128::from(piece.ticks) * u128::from(left) / u128::from(piece.bytes);
                return ticks.saturating_add(part as u64);
            }
            left -= piece.bytes;
            ticks = ticks.saturating_add(piece.ticks);
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::pace::Packets;

    fn slot(pe: u32, bytes: u64, lag: u64) -> Slot {
        Slot {
            pe: PeId(pe),
            turn: 0,
            ordered: 5,
            after: 99,
            lag,
            packets: Packets::of(bytes, 4),
            through: 10 * bytes,
            ahead: 5 + lag - 10 * bytes.min(4),
            delay: 10 * bytes.min(4),
        }
    }

    /// Streams of 8, 8 and 2 bytes, ten ticks a byte, flits of four bytes; a first byte arrives 20
    /// ticks after its order.
    fn orders() -> Orders {
        let slots = [slot(1, 8, 55), slot(2, 8, 55), slot(3, 2, 35)];
        Orders::in_turns((0, 0), Time(100), 4, &slots)
    }

    #[test]
    fn an_order_is_sent_so_that_its_stream_follows_the_one_before() {
        let mut orders = orders();
        assert_eq!(orders.next(Time(100)), Some((PeId(1), 55)));
        orders.sent(Time(100));
        // The first byte is expected at 120, the last at 200.
        assert_eq!(orders.due(), None, "two flits away");
        orders.progress(Time(160), 4);
        assert_eq!(orders.due(), Some(Time(180)));
        assert_eq!(orders.next(Time(179)), None);
        assert_eq!(orders.next(Time(180)), Some((PeId(2), 55)));
        orders.sent(Time(180));
        orders.progress(Time(200), 4);
        orders.progress(Time(240), 4);
        assert_eq!(orders.due(), Some(Time(260)));
    }

    #[test]
    fn a_stream_that_runs_late_makes_the_next_order_late() {
        let mut orders = orders();
        orders.sent(Time(100));
        orders.progress(Time(1160), 4);
        assert_eq!(orders.due(), Some(Time(1180)));
    }

    #[test]
    fn on_a_long_way_orders_of_streams_that_would_meet_are_sent_in_sequence() {
        let slots = [1, 2, 3, 4].map(|pe| slot(pe, SHORT_QUEUE_BYTES / 2, 1_000_000));
        let through = slots[0].through;
        let mut orders = Orders::in_turns((0, 0), Time(100), 4, &slots);
        // A switch stores what the first streams send at once.
        for pe in 1..=3 {
            assert_eq!(orders.next(Time(100)), Some((PeId(pe), 1_000_000)));
            orders.sent(Time(100));
        }
        assert_eq!(orders.due(), Some(Time(100 + 3 * through)));
        // Once data arrive, that time has passed.
        orders.progress(Time(200), 4);
        assert_eq!(orders.due(), Some(Time(0)));
    }

    #[test]
    fn a_single_flit_is_expected_from_its_order_on() {
        let slots = [slot(1, 2, 35), slot(2, 2, 35), slot(3, 2, 35)];
        let mut orders = Orders::in_turns((0, 0), Time(100), 4, &slots);
        orders.sent(Time(100));
        // Its two bytes pass from 120 to 140; the next stream takes 20 ticks to arrive.
        assert_eq!(
            orders.due(),
            Some(Time(0)),
            "as long as the stream itself: at once"
        );
        let slots = [slot(1, 4, 55), slot(2, 4, 55)];
        let mut orders = Orders::in_turns((0, 0), Time(100), 4, &slots);
        orders.sent(Time(100));
        assert_eq!(orders.due(), Some(Time(140)));
    }
}
