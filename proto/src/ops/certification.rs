//! A PE in a gather by Transmission-Certification (paper 000, section III-B):
//! token down, certificates up, orders down, then one gap-free stream up.

use std::collections::{BTreeSet, VecDeque};

use super::orders::Orders;
use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Control, Message, MessageFault, Transmit};
use crate::schedule::certification::{self as rules, Certificate, Child, Slot, Sync};
use crate::schedule::pace::{ChildPace, Pace, Pacing, Packets, Passage};
use crate::{PeId, Time};

/// A child and its certificate.
#[derive(Debug)]
struct Certifier {
    pe: PeId,
    /// The rank by which its stream is taken.
    rank: u32,
    pace: ChildPace,
    certificate: Option<Certificate>,
}

/// The message that starts at a PE.
#[derive(Debug)]
struct Own {
    /// The message, until it is sent.
    message: Option<Message>,
    packets: Packets,
    /// The time from which it may be sent.
    due: Time,
}

#[derive(Debug)]
pub(super) struct Certification {
    sync: Sync,
    pace: Pace,
    /// Whether the PE receives the streams of all children at the same time; only P0 does.
    all_ports: bool,
    own: Own,
    /// Children in the token's order.
    children: Vec<Certifier>,
    tokens_sent: usize,
    token_at: Option<Time>,
    /// Children that have the token, and whose certificate has not arrived.
    awaited: BTreeSet<PeId>,
    /// Pipelined, in lock step: the number of steps between the token's arrival and the
    /// certificate's crossing.
    certify_after: u64,
    certificate_pending: bool,
    /// Whether the PE's order has arrived; P0 gives itself one.
    ordered: bool,
    /// Orders yet to be sent.
    orders: Orders,
    /// Streams yet to arrive, in their sequence; the first may be in progress.
    streams: VecDeque<Slot>,
    /// Whether the PE gets an order: pipelined, a subtree without flits gets none.
    gets_order: bool,
}

impl Certification {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule, sync: Sync) -> Certification {
        let is_root = place.is_root();
        let own = schedule.sends.first().copied();
        let (order, certify_after) = match sync {
            Sync::Serial | Sync::Parallel | Sync::MultiPort | Sync::Known => {
                (place.children().to_vec(), 0)
            }
            Sync::Pipelined => {
                let broadcast = place.tree.token_broadcast();
                // Received in step t, it crosses in step 2B + 1 - t.
                let after = 2 * broadcast.steps() + 1 - 2 * broadcast.received_step(place.id);
                let after = if schedule.pace.lock_step { after } else { 0 };
                (broadcast.order(place.id).to_vec(), after)
            }
        };
        let is_known = sync == Sync::Known;
        let certifier = |pe: PeId| {
            let place = place.children().binary_search(&pe).unwrap_or(0);
            let pace = schedule.pace.below[place];
            Certifier {
                pe,
                rank: schedule.child_ranks.get(place).copied().unwrap_or(0),
                pace,
                certificate: is_known.then(|| known_certificate(&schedule, pe, &pace.up)),
            }
        };
        let children: Vec<Certifier> = order.into_iter().map(certifier).collect();
        Certification {
            sync,
            all_ports: schedule.all_ports,
            own: Own {
                message: own,
                packets: schedule.own_packets(),
                due: Time(0),
            },
            tokens_sent: if is_known { children.len() } else { 0 },
            children,
            awaited: BTreeSet::new(),
            token_at: (is_known && !is_root).then_some(Time(0)),
            certify_after,
            certificate_pending: !is_root && !is_known,
            ordered: false,
            orders: Orders::default(),
            streams: VecDeque::new(),
            gets_order: is_root || sync == Sync::Serial || schedule.subtree_messages > 0,
            pace: schedule.pace,
        }
    }

    fn all_certified(&self) -> bool {
        self.tokens_sent == self.children.len() && self.awaited.is_empty()
    }

    /// Returns the children that get an order; all must have certified.
    fn ordered_children(&self) -> Vec<Child> {
        let certified = self.children.iter();
        let certified = certified
            .filter_map(|child| Some((child.pe, child.rank, child.pace, child.certificate?)));
        rules::places(self.sync, self.pace.control, certified)
    }

    /// Sets the orders to give, and the sequence in which the streams arrive.
    fn give_orders(&mut self, now: Time, slots: Vec<Slot>) {
        self.orders = match self.pace.pacing {
            // No stream waits for another one.
            _ if self.all_ports => Orders::at_once(&slots),
            Pacing::Turns => {
                let up = &self.pace.up;
                let own = (self.own.packets.bytes, up.message(self.own.packets));
                let start = if self.own.message.is_some() {
                    self.own.due
                } else {
                    now
                };
                Orders::in_turns(own, start, up.flit_bytes, &slots)
            }
            Pacing::Scheduled | Pacing::Eager => Orders::at_once(&slots),
        };
        self.streams = slots
            .into_iter()
            .filter(|slot| slot.packets.bytes > 0)
            .collect();
        self.ordered = true;
    }

    /// Sets P0's orders; all children must have certified.
    fn give_root_orders(&mut self, now: Time) {
        let slots = rules::root_orders(self.all_ports, &self.ordered_children());
        self.give_orders(now, slots);
    }

    /// Returns the position of the stream from this child that may be in progress.
    fn stream_of(&self, from: PeId) -> Option<usize> {
        let open = if self.all_ports { usize::MAX } else { 1 };
        let mut open = self.streams.iter().take(open);
        open.position(|slot| slot.pe == from)
    }

    /// Returns when the certificate may be sent, if it waits for nothing but time.
    fn certificate_due(&self) -> Option<Time> {
        let Time(at) = self.token_at?;
        (self.certificate_pending && self.all_certified())
            .then(|| Time(at + self.certify_after.saturating_sub(1)))
    }

    /// Returns when the own message may be sent, if it waits for nothing but time.
    fn own_due(&self) -> Option<Time> {
        (self.ordered && self.own.message.is_some()).then_some(self.own.due)
    }
}

impl Role for Certification {
    fn trigger(&mut self, now: Time) {
        self.token_at = Some(now);
        if self.all_certified() {
            self.give_root_orders(now);
        }
    }

    fn control(&mut self, place: &PePosition, now: Time, from: PeId, item: Control) -> bool {
        let from_parent = place.parent() == Some(from);
        match item {
            Control::Token if from_parent && self.token_at.is_none() => self.token_at = Some(now),
            Control::Certificate(certificate) if self.awaited.contains(&from) => {
                self.awaited.remove(&from);
                if let Some(child) = self.children.iter_mut().find(|child| child.pe == from) {
                    child.certificate = Some(certificate);
                }
                if place.is_root() && self.all_certified() {
                    self.give_root_orders(now);
                }
            }
            Control::Order { after }
                if from_parent && !self.certificate_pending && !self.ordered =>
            {
                let up = &self.pace.up;
                let slots = rules::orders(
                    self.sync,
                    self.pace.pacing,
                    up,
                    after,
                    self.own.packets,
                    &self.ordered_children(),
                );
                let wait = match self.pace.pacing {
                    Pacing::Eager => 0,
                    _ => after.saturating_sub(up.first_packet(self.own.packets.first)),
                };
                self.own.due = Time(now.0.saturating_add(wait));
                self.give_orders(now, slots);
            }
            _ => return false,
        }
        true
    }

    fn progress(&mut self, now: Time, bytes: u64) {
        self.orders.progress(now, bytes);
    }

    fn interjection(&mut self, now: Time) -> Option<(PeId, Control)> {
        let (to, after) = self.orders.next(now)?;
        self.orders.sent(now);
        Some((to, Control::Order { after }))
    }

    fn interjection_timeout(&self) -> Option<Time> {
        self.orders.due()
    }

    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        let route = place.route_up(from, message)?;
        let stream = self.stream_of(from);
        let left = stream.map_or(0, |place| self.streams[place].packets.bytes);
        if message.bytes > left {
            return Err(MessageFault::Overrun);
        }
        Ok(route)
    }

    fn received(&mut self, from: PeId, message: &Message) {
        if let Some(place) = self.stream_of(from) {
            self.streams[place].packets.bytes -= message.bytes;
            if self.streams[place].packets.bytes == 0 {
                self.streams.remove(place);
            }
        }
    }

    fn was_due(&self) -> Option<Time> {
        (self.ordered && self.own.packets.bytes > 0).then_some(self.own.due)
    }

    fn next(&mut self, place: &PePosition, now: Time) -> Option<Transmit> {
        self.token_at?;
        let control = |to, item| Some(Transmit::Control { to, item });
        if let Some(&Certifier { pe: to, .. }) = self.children.get(self.tokens_sent)
            && (self.sync != Sync::Serial || self.awaited.is_empty())
        {
            return control(to, Control::Token);
        }
        let parent = place.parent();
        if let (Some(due), Some(to)) = (self.certificate_due(), parent) {
            let children = self.ordered_children();
            let up = &self.pace.up;
            let certificate =
                rules::certificate(self.sync, self.pace.pacing, up, self.own.packets, &children);
            let item = Control::Certificate(certificate);
            return (due <= now).then_some(Transmit::Control { to, item });
        }
        if let Some((to, after)) = self.orders.next(now) {
            self.orders.sent_at = now;
            return control(to, Control::Order { after });
        }
        if let (Some(due), Some(to), Some(message)) = (self.own_due(), parent, self.own.message) {
            return (due <= now).then_some(Transmit::message(to, message));
        }
        None
    }

    fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Message { .. } | Transmit::Part { .. } => self.own.message = None,
            &Transmit::Control {
                to,
                item: Control::Token,
            } => {
                self.tokens_sent += 1;
                self.awaited.insert(to);
            }
            Transmit::Control {
                item: Control::Certificate(_),
                ..
            } => self.certificate_pending = false,
            Transmit::Control { .. } => self.orders.sent(self.orders.sent_at),
        }
    }

    fn timeout(&self) -> Option<Time> {
        let orders = self.orders.due();
        let own = self.own_due();
        let next = orders.into_iter().chain(own).min();
        self.certificate_due().or(next)
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        if place.parent() == Some(from) {
            let awaits_order = self.gets_order && !self.certificate_pending && !self.ordered;
            return self.token_at.is_none() || awaits_order;
        }
        // A relay needs the send port; P0 relays nothing.
        let has_due_order = self.orders.due() == Some(Time(0));
        let port_free = place.is_root() || (!has_due_order && self.own.message.is_none());
        let its_turn = self.ordered && port_free && self.stream_of(from).is_some();
        self.awaited.contains(&from) || its_turn
    }

    fn is_over(&self, _place: &PePosition) -> bool {
        self.token_at.is_some()
            && self.all_certified()
            && !self.certificate_pending
            && (self.ordered || !self.gets_order)
            && self.orders.is_empty()
            && self.own.message.is_none()
            && self.streams.is_empty()
    }
}

/// Returns the certificate of a child without children, from the message that P0 receives from it.
fn known_certificate(schedule: &PeSchedule, child: PeId, up: &Passage) -> Certificate {
    let mut receives = schedule.receives.iter();
    let message = receives.find(|message| message.source == child);
    let bytes = message.map_or(0, |message| message.bytes);
    let packets = Packets::of(bytes, schedule.flit_bytes);
    rules::certificate(Sync::Known, schedule.pace.pacing, up, packets, &[])
}
