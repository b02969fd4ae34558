//! Messages that come in: passed on, kept or delivered, flit by flit, or dropped.

use flitcast_proto::PeId;
use flitcast_proto::pe::{Message, Route, Violation};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::flit::{self, Flit};
use xxhash_rust::xxh3::Xxh3;

use super::{Round, RoundError, is_earlier};
use crate::clock;
use crate::limits::COMMITS_UNDER_WAY;
use crate::link::Link;
use crate::payload::{PayloadError, Sink};
use crate::pulse::Pulse;
use crate::recorder::Moment;

impl Round<'_> {
    /// Takes a message whose first flit was there at `begin`.
    pub(super) async fn take_message(
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
        self.begins();
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
            self.pulse.counters().late();
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
        let kept = self.kept_flits();
        let mut flit = first;
        let mut left = message.bytes;
        loop {
            let (source, sink) = self.neighbours.pair(from, to);
            left = flit.rest(source.peer(), message, left)?;
            let held = flit.payload.len().div_ceil(self.flit_bytes as usize) as u64;
            self.report.peak_buffered_flits = self.report.peak_buffered_flits.max(held);
            self.pulse.counters().holds(kept + held);
            if left == 0 {
                self.recorder.received(begin, from, message);
            }
            sink.send_body(source.body()).await?;
            source.consume();
            self.passed(flit.payload.len() as u64).await?;
            if left == 0 {
                self.pulse.counters().holds(kept);
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
            let body = link.body();
            frames.extend_from_slice(&(body.len() as u32).to_be_bytes());
            frames.extend_from_slice(body);
            link.consume();
            if left == 0 {
                break;
            }
            flit = next_flit(self.pulse, link).await?;
        }
        self.held.push((message, frames));
        let held = self.kept_flits();
        self.report.peak_buffered_flits = self.report.peak_buffered_flits.max(held);
        self.pulse.counters().holds(held);
        Ok(())
    }

    /// Flits of the messages that a combining algorithm has this PE hold.
    pub(super) fn kept_flits(&self) -> u64 {
        let flits = |(message, _): &(Message, _)| flits_of(message.bytes, self.flit_bytes);
        self.held.iter().map(flits).sum()
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
        let mut sink = self.store.sink(message);
        let mut hash = Xxh3::new();
        let mut flit = first;
        let mut left = message.bytes;
        let digest = loop {
            let link = self.neighbours.get(from);
            left = flit.rest(link.peer(), message, left)?;
            let payload = &link.body()[flit.payload.clone()];
            hash.update(payload);
            let as_expected = sink.write(payload, &mut self.report.files_ns).await;
            let arrival = &mut self.report.arrivals[place];
            if !as_expected.map_err(|source| RoundError::Payload { message, source })? {
                let at = arrival.bytes_received;
                let what = format!("not the expected bytes in the flit at byte {at}");
                return Err(RoundError::Damaged { message, what });
            }
            arrival.bytes_received += payload.len() as u64;
            self.pulse.counters().moved(payload.len() as u64);
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
                let arrival = &mut self.report.arrivals[place];
                arrival.delivered = true;
                arrival.delivered_ns = arrival.at_ns;
                self.pe.handle_delivered();
            }
            Sink::Files(files) => {
                let began = (self.commits.len() >= COMMITS_UNDER_WAY).then(clock::now);
                while self.commits.len() >= COMMITS_UNDER_WAY {
                    if let Some(commit) = self.commits.join_next().await {
                        self.committed(commit)?;
                    }
                }
                self.report.files_ns += began.map_or(0, |began| clock::now().0 - began.0);
                self.commits
                    .spawn(async move { (place, files.commit().await) });
            }
        }
        Ok(())
    }

    pub(super) fn committed(
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
        arrival.delivered_ns = clock::now().0;
        let came_ns = arrival.at_ns;
        self.recorder.made_visible(came_ns, message.source, message);
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
