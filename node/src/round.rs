//! One round of one PE: asks the state machine what to do, and moves the bytes.
//!
//! One thing at a time: an item goes out whole, a message comes in whole, before
//! the next is looked at. What overlaps, overlaps in the sockets' buffers.

mod error;
mod incoming;

use std::task::Poll;

use flitcast_proto::pe::{Message, Pe, Transmit};
use flitcast_proto::wire::MAX_FLIT_PREFIX;
use flitcast_proto::wire::control::{Arrival, Doing, OwnStart, Report};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit;
use flitcast_proto::{PeId, RoundId, Time};
use tokio::task::JoinSet;
use xxhash_rust::xxh3::Xxh3;

use crate::clock::{self, Alarm};
use crate::link::LinkError;
use crate::neighbours::Neighbours;
use crate::payload::PayloadError;
use crate::pulse::Pulse;
use crate::recorder::Recorder;
use crate::store::{Outbox, Store};
pub use error::RoundError;

/// One round of one PE.
pub struct Round<'a> {
    /// Which one.
    pub id: RoundId,
    /// The state machine.
    pub pe: Pe,
    /// Whether data flows up the tree, where streams can meet.
    pub gathers: bool,
    /// The connections.
    pub neighbours: &'a mut Neighbours,
    /// Where the messages for this PE go.
    pub store: &'a Store,
    /// The messages that it sends.
    pub outbox: Outbox<'a>,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Messages that a combining algorithm has this PE hold, as frames.
    pub held: Vec<(Message, Vec<u8>)>,
    /// The alarm for what time alone brings.
    pub alarm: &'a mut Alarm,
    /// Where it is told what the PE is doing.
    pub pulse: &'a Pulse,
    /// Whether anything of the round has come, or P0 was triggered.
    pub begun: bool,
    /// What the ports do.
    pub recorder: Recorder,
    /// What is to be told of the round. Its arrivals are the messages expected.
    pub report: Report,
    /// Messages that are being made visible, by their place in the report.
    pub commits: JoinSet<(usize, Result<(), PayloadError>)>,
}

impl Round<'_> {
    /// Plays the round to its end. P0 begins when this is called.
    pub async fn play(&mut self) -> Result<(), RoundError> {
        let _working = self.pulse.doing(Doing::Working);
        if self.pe.id() == PeId::ROOT {
            let now = clock::now();
            self.begins();
            self.report.started_ns = now.0;
            self.pe.handle_trigger(now);
        }
        loop {
            while let Some(transmit) = self.pe.poll_transmit(clock::now()) {
                self.transmit(transmit).await?;
            }
            if self.pe.is_finished() {
                self.report.complete = true;
                self.pulse.counters().round_done();
                return Ok(());
            }
            let due = self.pe.poll_timeout();
            let depends_on_others = due.is_none() && self.commits.is_empty();
            let _listening = depends_on_others.then(|| self.pulse.doing(Doing::Listening));
            tokio::select! {
                biased;
                from = next_frame(&self.pe, self.neighbours) => self.take(from?).await?,
                Some(commit) = self.commits.join_next() => self.committed(commit)?,
                rung = self.alarm.wait(due), if due.is_some() => rung?,
            }
        }
    }

    fn begins(&mut self) {
        if !self.begun {
            self.begun = true;
            self.pulse.counters().round_begins();
        }
    }

    async fn transmit(&mut self, transmit: Transmit) -> Result<(), RoundError> {
        match transmit {
            Transmit::Control { to, item } => {
                tracing::trace!(%to, ?item, "send");
                let frame = EdgeFrame::Control {
                    round: self.id,
                    item,
                };
                let begin = self.recorder.now();
                self.neighbours.get(to).send_control(&frame).await?;
                self.recorder.sent(begin, to, item);
                self.pe.handle_sent();
            }
            Transmit::Message { to, message } => {
                tracing::debug!(%to, of = %message.pe(), bytes = message.bytes, "send message");
                let begin = self.recorder.now();
                self.send_message(to, message).await?;
                self.recorder.sent(begin, to, message);
                self.pe.handle_sent();
                self.count_collisions(None);
            }
        }
        Ok(())
    }

    async fn send_message(&mut self, to: PeId, message: Message) -> Result<(), RoundError> {
        let held = self.held.iter().position(|(held, _)| *held == message);
        if let Some((_, frames)) = held.map(|place| self.held.swap_remove(place)) {
            self.neighbours.get(to).send_frames(&frames).await?;
            self.pulse.counters().holds(self.kept_flits());
            return Ok(());
        }
        let mut source = self.outbox.take(message);
        let mut hash = Xxh3::new();
        let mut prefix = Vec::new();
        let mut head = Some((self.id, message));
        let mut left = message.bytes;
        while left > 0 {
            let len = left.min(u64::from(self.flit_bytes));
            let payload = source.next(len as usize, &mut self.report.files_ns).await;
            let payload = payload.map_err(|source| RoundError::Payload { message, source })?;
            hash.update(payload);
            left -= len;
            let digest = (left == 0).then(|| hash.digest128().to_be_bytes());
            prefix.clear();
            if head.is_some() {
                self.report.own_start = self.pe.own_due().map(|due| {
                    let began = clock::now();
                    self.pulse.counters().started(due, began);
                    OwnStart {
                        due_ns: due.0,
                        began_ns: began.0,
                    }
                });
            }
            flit::put_prefix(head.take(), digest.as_ref(), payload.len(), &mut prefix);
            let link = self.neighbours.get(to);
            link.send_flit(&prefix, payload).await?;
            self.pulse.counters().moved(len);
            self.passed(len).await?;
        }
        Ok(())
    }

    /// So much more of the message under way has passed; what goes between its flits
    /// goes now. While one connection is busy, another one may be lost.
    async fn passed(&mut self, bytes: u64) -> Result<(), RoundError> {
        let now = clock::now();
        self.pe.handle_progress(now, bytes);
        self.neighbours.look(now)?;
        self.interject().await
    }

    /// Sends what goes between two flits, if it is due.
    async fn interject(&mut self) -> Result<(), RoundError> {
        while let Some((to, item)) = self.pe.poll_interjection(clock::now()) {
            tracing::trace!(%to, ?item, "send");
            let round = self.id;
            let frame = EdgeFrame::Control { round, item };
            let begin = self.recorder.now();
            self.neighbours.get(to).send_control(&frame).await?;
            self.recorder.sent(begin, to, item);
        }
        Ok(())
    }

    /// Takes the frame that `from` has sent, and if it is a head, the whole message.
    async fn take(&mut self, from: PeId) -> Result<(), RoundError> {
        let begin = self.recorder.now();
        let link = self.neighbours.get(from);
        if flit::is_flit(link.body()) {
            let flit = flit::parse(link.body()).map_err(|e| link.wire(e))?;
            return self.take_message(begin, from, flit).await;
        }
        let frame = EdgeFrame::parse(link.body()).map_err(|e| link.wire(e))?;
        link.consume();
        match frame {
            EdgeFrame::Control { round, item } if round == self.id => {
                tracing::trace!(%from, ?item, "receive");
                self.begins();
                self.recorder.received(begin, from, item);
                Ok(self.pe.handle_control(clock::now(), from, item)?)
            }
            EdgeFrame::Control { round, item } if is_earlier(round, self.id) => {
                tracing::warn!(%from, %round, ?item, "dropped: it is late");
                self.report.late_frames += 1;
                self.pulse.counters().late();
                Ok(())
            }
            other => Err(self.out_of_place(from, &other)),
        }
    }

    fn out_of_place(&self, from: PeId, what: &dyn std::fmt::Debug) -> RoundError {
        let what = crate::clipped(what);
        RoundError::OutOfPlace {
            from,
            what,
            round: self.id,
        }
    }

    /// The port has turned from `last` (or from an own message) to another
    /// neighbour: what that one has sent already had to wait.
    fn count_collisions(&mut self, last: Option<PeId>) {
        if !self.gathers {
            return;
        }
        let frame = u64::from(self.flit_bytes) + MAX_FLIT_PREFIX as u64;
        for link in self.neighbours.children_mut() {
            if Some(link.peer()) != last && self.pe.listens_to(link.peer()) {
                let waiting = link.waiting_bytes().div_ceil(frame);
                self.report.collisions += waiting;
                self.pulse.counters().collided(waiting);
            }
        }
    }
}

/// Waits until a neighbour that the state machine listens to has a frame.
async fn next_frame(pe: &Pe, neighbours: &mut Neighbours) -> Result<PeId, LinkError> {
    std::future::poll_fn(|cx| {
        for link in neighbours.all_mut() {
            if pe.listens_to(link.peer())
                && let Poll::Ready(result) = link.poll_frame(cx)
            {
                return Poll::Ready(result.map(|()| link.peer()));
            }
        }
        Poll::Pending
    })
    .await
}

/// Whether a frame of round `round` comes late in round `now`; there is no round 0.
fn is_earlier(round: RoundId, now: RoundId) -> bool {
    RoundId(0) < round && round < now
}

/// What a PE expects of a round, as the report begins.
pub fn blank_report(id: RoundId, arrivals: Vec<Arrival>) -> Report {
    Report {
        round: id,
        complete: false,
        started_ns: Time(0).0,
        arrivals,
        collisions: 0,
        peak_buffered_flits: 0,
        peak_resident_bytes: 0,
        own_start: None,
        late_frames: 0,
        files_ns: 0,
        repeated_frames: 0,
        retransmitted_packets: 0,
        spans: Vec::new(),
        counts: Box::default(),
    }
}
