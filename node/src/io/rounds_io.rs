//! The beginning and the end of each round of a node.

use flitcast_proto::round::Round;
use flitcast_proto::wire::control::{Begin, Doing, Report};
use flitcast_proto::{RoundId, Time};
use tokio::time::timeout;

use super::reader::Readers;
use super::{NodeIo, Outlet, RoundBuffers, committed};
use crate::activity_monitor::ActivityGuard;
use crate::counters::CounterObserver;
use crate::limits::OPENING;
use crate::link::Link;
use crate::round::Committed;
use crate::rounds::RoundsIo;
use crate::store::Outbox;
use crate::system::{clock, process};

impl<'a> RoundsIo for NodeIo<'a> {
    type Observer = CounterObserver<'a>;
    type Working = ActivityGuard<'a>;

    async fn prepare(&mut self) {
        if let Some((_, parts)) = self.parts {
            parts.forget();
        }
        let parts = self.parts.map(|(_, parts)| parts);
        let mut outbox = Outbox::new(self.store, &self.schedule, parts);
        // A slower disk delays the round after its begin.
        let _ = timeout(OPENING, outbox.opened()).await;
        let mut held = std::mem::take(&mut self.state.held);
        held.forget_all();
        self.yields.next_round();
        let polls = self.schedule.polls_before_sleep && self.yields.are_short();
        if let (Some(home), true) = (&self.home, polls) {
            home.move_here();
        }
        self.state = RoundBuffers {
            outbox: Some(outbox),
            outlet: Outlet::new(self.schedule.is_duplex()),
            readers: Readers::new(self.schedule.all_ports),
            held,
            polls_before_sleep: self.schedule.polls_before_sleep,
            ..RoundBuffers::default()
        };
    }

    fn is_triggered(&self) -> bool {
        self.schedule.collective.is_triggered(&self.tree, self.pe)
    }

    fn begin(&mut self, id: RoundId, at: Time) -> Round<CounterObserver<'a>> {
        let (tree, schedule) = (self.tree.clone(), self.schedule.clone());
        let observer = CounterObserver {
            counters: self.pulse.counters(),
            // The round begins and ends once.
            is_first: self.parts.is_none_or(|(lane, _)| lane == 0),
        };
        let round = Round::observed(id, tree, self.pe, schedule, observer);
        let mut round = round.record_spans(self.spans);
        if self.is_triggered() {
            // Arrivals of a round are compared with its begin at P0.
            let is_root = self.pe == self.tree.root();
            self.state.started_ns = if is_root { at.0 } else { 0 };
            round.handle_trigger(at);
        }
        round
    }

    fn working(&self) -> ActivityGuard<'a> {
        self.pulse.doing(Doing::Working)
    }

    async fn settle(&mut self, round: &mut Round<CounterObserver<'a>>) {
        if let Some((_, parts)) = self.parts {
            parts.give_up().await;
        }
        while let Some(commit) = self.state.commits.join_next().await {
            // The round already has its error.
            if let Ok(Committed { message, digest }) = committed(commit) {
                round.handle_committed(clock::now(), message, digest);
            }
        }
    }

    fn report(&mut self, mut round: Round<CounterObserver<'a>>, complete: bool) -> Report {
        let links = self.neighbours.all_mut();
        Report {
            round: round.id(),
            complete,
            begin: Begin {
                started_ns: self.state.started_ns,
                began_ns: round.began_at().map_or(0, |at| at.0),
            },
            arrivals: round.arrivals(),
            collisions: self.state.collisions,
            peak_buffered_flits: round.peak_buffered_flits(),
            peak_resident_bytes: process::peak_resident_bytes(),
            own_start: round.own_start(),
            late_frames: round.late_frames(),
            repeated_frames: links.map(Link::take_repeated).sum(),
            files_ns: self.state.files_ns,
            retransmitted_packets: self.retransmissions.take(),
            spans: round.take_spans(),
            counts: Box::new(self.pulse.counters().counts()),
            streams: round.take_streams(),
        }
    }
}
