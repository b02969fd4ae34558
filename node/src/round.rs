//! One round of one PE: asks the state machine what to do, and moves the bytes.
//!
//! One thing at a time: an item goes out whole, a message comes in whole, before
//! the next is looked at. What overlaps, overlaps in the sockets' buffers.

mod error;

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use flitcast_proto::pe::{Message, Pe, Route, Transmit, Violation};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::wire::MAX_FLIT_PREFIX;
use flitcast_proto::wire::control::{Arrival, Doing, OwnStart, Report};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::{self, Flit};
use flitcast_proto::{PeId, RoundId, Time};
use tokio::task::JoinSet;
use xxhash_rust::xxh3::Xxh3;

use crate::clock::{self, Alarm};
use crate::limits::COMMITS_UNDER_WAY;
use crate::link::{Link, LinkError};
use crate::neighbours::Neighbours;
use crate::payload::{PayloadError, Sink};
use crate::pulse::Pulse;
use crate::recorder::{Moment, Recorder};
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
    /// Bytes moved so far, for whoever shows progress.
    pub progress: Rc<Cell<u64>>,
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
            self.report.started_ns = now.0;
            self.pe.handle_trigger(now);
        }
        loop {
            while let Some(transmit) = self.pe.poll_transmit(clock::now()) {
                self.transmit(transmit).await?;
            }
            if self.pe.is_finished() {
                self.report.complete = true;
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
            return Ok(self.neighbours.get(to).send_frames(&frames).await?);
        }
        let mut source = self.outbox.take(message);
        let mut hash = Xxh3::new();
        let mut prefix = Vec::new();
        let mut head = Some((self.id, message));
        let mut left = message.bytes;
        while left > 0 {
            let len = left.min(u64::from(self.flit_bytes));
            let payload = source.next(len as usize).await;
            let payload = payload.map_err(|source| RoundError::Payload { message, source })?;
            hash.update(payload);
            left -= len;
            let digest = (left == 0).then(|| hash.digest128().to_be_bytes());
            prefix.clear();
            if head.is_some() {
                self.report.own_start = self.pe.own_due().map(|due| OwnStart {
                    due_ns: due.0,
                    began_ns: clock::now().0,
                });
            }
            flit::put_prefix(head.take(), digest.as_ref(), payload.len(), &mut prefix);
            let link = self.neighbours.get(to);
            link.send_flit(&prefix, payload).await?;
            self.progress.set(self.progress.get() + len);
            self.passed(len).await?;
        }
        Ok(())
    }

    /// So much more of the message under way has passed; what goes between its flits
    /// goes now.
    async fn passed(&mut self, bytes: u64) -> Result<(), RoundError> {
        self.pe.handle_progress(clock::now(), bytes);
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
                self.recorder.received(begin, from, item);
                Ok(self.pe.handle_control(clock::now(), from, item)?)
            }
            EdgeFrame::Control { round, item } if is_earlier(round, self.id) => {
                tracing::warn!(%from, %round, ?item, "dropped: it is late");
                self.report.late_frames += 1;
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

    /// Takes a message whose first flit was there at `begin`.
    async fn take_message(
        &mut self,
        begin: Moment,
        from: PeId,
        first: Flit,
    ) -> Result<(), RoundError> {
        let message = match first.head {
            Some((round, message)) if round == self.id => message,
            Some((round, message)) if is_earlier(round, self.id) => {
                tracing::warn!(%from, %round, of = %message.pe(), "dropped: it is late");
                return self.drop_late(from, message, first).await;
            }
            Some((round, _)) => {
                return Err(self.out_of_place(from, &format_args!("a message of round {round}")));
            }
            None => return Err(self.out_of_place(from, &"a body flit without a head")),
        };
        let route = self.pe.handle_head(from, message)?;
        tracing::debug!(%from, of = %message.pe(), bytes = message.bytes, ?route, "message");
        match route {
            Route::Relay { to } => {
                self.relay(begin, from, to, message, first).await?;
                self.pe.handle_received();
                self.pe.handle_sent();
            }
            Route::Deliver => {
                self.deliver(begin, from, message, first).await?;
                self.pe.handle_received();
            }
            Route::Hold => {
                self.hold(from, message, first).await?;
                self.recorder.received(begin, from, message);
                self.pe.handle_received();
            }
        }
        self.count_collisions(Some(from));
        Ok(())
    }

    /// Drops a message of an earlier round, frame by frame.
    async fn drop_late(
        &mut self,
        from: PeId,
        message: Message,
        first: Flit,
    ) -> Result<(), RoundError> {
        let link = self.neighbours.get(from);
        let mut flit = first;
        let mut left = message.bytes;
        loop {
            left = flit.rest(link.peer(), message, left)?;
            link.consume();
            self.report.late_frames += 1;
            if left == 0 {
                return Ok(());
            }
            flit = next_flit(self.pulse, link).await?;
        }
    }

    /// Passes a message on, frame by frame, each as it came.
    async fn relay(
        &mut self,
        begin: Moment,
        from: PeId,
        to: PeId,
        message: Message,
        first: Flit,
    ) -> Result<(), RoundError> {
        let sending = self.recorder.now();
        let mut flit = first;
        let mut left = message.bytes;
        loop {
            let (source, sink) = self.neighbours.pair(from, to);
            left = flit.rest(source.peer(), message, left)?;
            let held = flit.payload.len().div_ceil(self.flit_bytes as usize) as u64;
            self.report.peak_buffered_flits = self.report.peak_buffered_flits.max(held);
            if left == 0 {
                self.recorder.received(begin, from, message);
            }
            sink.send_frame(source.frame()).await?;
            source.consume();
            self.passed(flit.payload.len() as u64).await?;
            if left == 0 {
                self.recorder.sent(sending, to, message);
                return Ok(());
            }
            flit = self.next_flit(from).await?;
        }
    }

    /// The next flit of the message that is coming in. What is due meanwhile, goes.
    async fn next_flit(&mut self, from: PeId) -> Result<Flit, RoundError> {
        loop {
            let due = self.pe.interjection_timeout();
            let flit = next_flit(self.pulse, self.neighbours.get(from));
            tokio::select! {
                biased;
                flit = flit => return flit,
                rung = self.alarm.wait(due), if due.is_some() => rung?,
            }
            self.interject().await?;
        }
    }

    /// Keeps a message, frame by frame as it came: what a combining algorithm costs.
    async fn hold(&mut self, from: PeId, message: Message, first: Flit) -> Result<(), RoundError> {
        let link = self.neighbours.get(from);
        let mut frames = Vec::new();
        let mut flit = first;
        let mut left = message.bytes;
        loop {
            left = flit.rest(link.peer(), message, left)?;
            frames.extend_from_slice(link.frame());
            link.consume();
            if left == 0 {
                break;
            }
            flit = next_flit(self.pulse, link).await?;
        }
        self.held.push((message, frames));
        let flits = |(message, _): &(Message, _)| flits_of(message.bytes, self.flit_bytes);
        let held = self.held.iter().map(flits).sum();
        self.report.peak_buffered_flits = self.report.peak_buffered_flits.max(held);
        Ok(())
    }

    /// Takes a message for this PE.
    async fn deliver(
        &mut self,
        begin: Moment,
        from: PeId,
        message: Message,
        first: Flit,
    ) -> Result<(), RoundError> {
        let place = self.report.arrivals.iter().position(|arrival| {
            (arrival.source, arrival.destination) == (message.source, message.destination)
        });
        let place = match place {
            Some(place) if self.report.arrivals[place].bytes_total == message.bytes => place,
            _ => return Err(self.out_of_place(from, &message)),
        };
        let mut sink = self.store.sink(message, self.id);
        let mut hash = Xxh3::new();
        let mut flit = first;
        let mut left = message.bytes;
        let digest = loop {
            let link = self.neighbours.get(from);
            left = flit.rest(link.peer(), message, left)?;
            let payload = &link.body()[flit.payload.clone()];
            hash.update(payload);
            let as_expected = sink.write(payload).await;
            let arrival = &mut self.report.arrivals[place];
            if !as_expected.map_err(|source| RoundError::Payload { message, source })? {
                let at = arrival.bytes_received;
                let what = format!("not the expected bytes in the flit at byte {at}");
                return Err(RoundError::Damaged { message, what });
            }
            arrival.bytes_received += payload.len() as u64;
            self.progress
                .set(self.progress.get() + payload.len() as u64);
            let digest = flit.digest;
            link.consume();
            if left == 0 {
                arrival.at_ns = clock::now().0;
                self.recorder.received(begin, from, message);
                self.passed(flit.payload.len() as u64).await?;
                break digest;
            }
            self.passed(flit.payload.len() as u64).await?;
            flit = self.next_flit(from).await?;
        };
        let ours = hash.digest128().to_be_bytes();
        if digest != Some(ours) {
            let theirs = digest.map_or("none".to_owned(), |d| {
                format!("{:032x}", u128::from_be_bytes(d))
            });
            let what = format!(
                "its digest is {:032x}, its source's {theirs}",
                u128::from_be_bytes(ours)
            );
            return Err(RoundError::Damaged { message, what });
        }
        match sink {
            Sink::Synthetic(_) => {
                self.report.arrivals[place].delivered = true;
                self.pe.handle_delivered();
            }
            Sink::Files(files) => {
                while self.commits.len() >= COMMITS_UNDER_WAY {
                    if let Some(commit) = self.commits.join_next().await {
                        self.committed(commit)?;
                    }
                }
                self.commits
                    .spawn(async move { (place, files.commit().await) });
            }
        }
        Ok(())
    }

    fn committed(
        &mut self,
        commit: Result<(usize, Result<(), PayloadError>), tokio::task::JoinError>,
    ) -> Result<(), RoundError> {
        let (place, result) = crate::payload::joined(commit);
        let arrival = &mut self.report.arrivals[place];
        let message = Message {
            source: arrival.source,
            destination: arrival.destination,
            bytes: arrival.bytes_total,
        };
        result.map_err(|source| RoundError::Payload { message, source })?;
        arrival.delivered = true;
        self.pe.handle_delivered();
        Ok(())
    }

    /// Given up: what was complete is made visible all the same, and told so.
    pub async fn settle(&mut self) {
        while let Some(commit) = self.commits.join_next().await {
            // The round has its error already.
            let _ = self.committed(commit);
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
                self.report.collisions += link.waiting_bytes().div_ceil(frame);
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

/// Waits for the next flit of a message.
async fn next_flit(pulse: &Pulse, link: &mut Link) -> Result<Flit, RoundError> {
    let _waiting = pulse.doing(Doing::Receiving(link.peer()));
    link.next_frame().await?;
    let flit = flit::parse(link.body()).map_err(|e| link.wire(e))?;
    match flit.head {
        None => Ok(flit),
        Some((_, message)) => Err(Violation::Interrupted {
            from: link.peer(),
            message,
        }
        .into()),
    }
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
        spans: Vec::new(),
    }
}
