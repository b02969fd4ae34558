//! What is heard of the PEs while they do something: words, pings, deaths, and that
//! nothing moves any more. What becomes of trouble is `aftermath`'s business.

use std::net::SocketAddr;
use std::time::{Duration, Instant as Moment};

use flitcast_node::channel::ChannelError;
use flitcast_node::lively::Lifeless;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Report};
use tokio::time::Instant;

use super::Conductor;
use super::trouble::{Trouble, died, gone, out_of_turn};
use crate::launch::cluster::{DEATH_NOTICE, Heard};
use crate::observe::event::{Event, tell};
use crate::rounds::outcome::slowdown;
use crate::rounds::watch::Stall;

impl Conductor<'_> {
    /// One word of a certain kind from every PE; `take` returns what it is not.
    pub(super) async fn each_says(
        &mut self,
        limit: Duration,
        doing: &'static str,
        mut take: impl FnMut(PeId, FromPe) -> Option<FromPe>,
    ) -> Result<(), Trouble> {
        let mut deadline = Instant::now() + limit;
        let mut silent: Vec<PeId> = self.cluster.pes().collect();
        while !silent.is_empty() {
            let Some((pe, word)) = self.next_word(Some(deadline)).await? else {
                // Who looks through a million files may take longer, file by file.
                if self.worked_at + limit > deadline {
                    deadline = self.worked_at + limit;
                    continue;
                }
                return Err(Trouble::Silent {
                    silent,
                    limit,
                    doing,
                });
            };
            if let Some(other) = take(pe, word) {
                return Err(out_of_turn(pe, &other));
            }
            silent.retain(|&waited_for| waited_for != pe);
        }
        Ok(())
    }

    /// The next word of any PE, `None` at the deadline; trouble if there is any.
    pub(super) async fn next_word(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<(PeId, FromPe)>, Trouble> {
        loop {
            // Pongs come all the time. Should they not, silence is noticed below.
            let heard = self.cluster.hear(deadline).await;
            self.look_after_round()?;
            match heard {
                None => return Ok(None),
                Some((pe, Heard::Word(FromPe::Pong(pong)))) => {
                    tell(Event::Heard(pe, &pong));
                    let quiet = Duration::from_millis(pong.files_quiet_ms);
                    let worked_at = Instant::now().checked_sub(quiet);
                    self.worked_at = self.worked_at.max(worked_at.unwrap_or(self.worked_at));
                    if let Some(round) = &mut self.under_way {
                        round.watch.heard(pe, &pong, Moment::now());
                    }
                }
                Some((
                    pe,
                    Heard::Word(FromPe::Fault {
                        reason,
                        peer,
                        bad_input,
                        output_stands,
                        ..
                    }),
                )) => {
                    let fault = Trouble::Fault {
                        witness: pe,
                        blamed: peer.filter(|peer| self.request.tree.contains(*peer)),
                        reason,
                        bad_input,
                        output_stands,
                    };
                    return Err(self.first_cause(fault, peer).await);
                }
                Some((pe, Heard::Word(word))) => {
                    self.note(pe, &word);
                    return Ok(Some((pe, word)));
                }
                Some((pe, Heard::ChannelEnded(end))) => return Err(self.ended(pe, end).await),
                Some((pe, Heard::Exited(exit, last_words))) => {
                    return Err(died(pe, &exit, last_words));
                }
            }
        }
    }

    /// Why the channel of a PE has ended.
    pub(super) async fn ended(&mut self, pe: PeId, end: Option<ChannelError>) -> Trouble {
        let lifeless = match &end {
            Some(ChannelError::Io(error)) => Lifeless::of(error),
            _ => None,
        };
        if let Some(lifeless) = lifeless {
            return Trouble::Lifeless(pe, lifeless);
        }
        if self.cluster.joined_from(pe).is_some() {
            return gone(pe, end);
        }
        let how = end.map_or("closed its channel without a word".to_owned(), |error| {
            format!("cannot be understood any more: {error}")
        });
        self.first_cause(Trouble::Vanished(pe, how), Some(pe)).await
    }

    /// Says that a round is slow, and gives it up when it stands still.
    pub(super) fn look_after_round(&mut self) -> Result<(), Trouble> {
        let Some(round) = &mut self.under_way else {
            return Ok(());
        };
        let now = Moment::now();
        // Said once, and again each time that it has doubled.
        let slower = slowdown(now - round.began, round.predicted_ns);
        if let Some(times) = slower.filter(|times| *times >= 2.0 * round.slow) {
            round.slow = times;
            self.console.slow(self.round, times, self.phase);
        }
        let watch = &round.watch;
        self.cluster.look(watch.wants_look(now));
        match watch.check(now) {
            None => Ok(()),
            Some(stall) => {
                let seconds = watch.quiet(now).as_secs_f64();
                let what = self.told_of(stall);
                let text = format!("{what}; nothing has moved for {seconds:.1} s");
                Err(Trouble::Stalled(stall.pe(), text))
            }
        }
    }

    pub(super) fn told_of(&self, stall: Stall) -> String {
        let at = |pe: PeId| match self.address(pe) {
            Some(address) => format!("{pe} at {address}"),
            None => pe.to_string(),
        };
        match stall {
            Stall::Unreached { pe, from } => format!(
                "{} cannot be reached from {}: it acknowledges nothing",
                at(pe),
                at(from)
            ),
            Stall::TakesNothing { pe, from } => {
                format!("{} takes nothing from {}", at(pe), at(from))
            }
            Stall::SendsNothing { pe, to } => {
                format!("{} owes {} the rest of a message", at(pe), at(to))
            }
            Stall::Busy { pe } => format!("{} does not get done with its files", at(pe)),
            Stall::StandsStill => "every PE waits for another".to_owned(),
        }
    }

    /// Where a PE is reached, as far as is known.
    pub(super) fn address(&self, pe: PeId) -> Option<String> {
        let place = self.request.placement.places.get(pe.index())?;
        let listen: SocketAddr = self.cluster.register(pe)?.listen.parse().ok()?;
        let address = self.or_joined_from(place.address, pe);
        Some(SocketAddr::new(address, listen.port()).to_string())
    }

    pub(super) fn note(&mut self, pe: PeId, word: &FromPe) {
        if let FromPe::Report(report) = word
            && report.round == self.round
        {
            tell(Event::Reported(pe, &report.counts));
            self.last_reports[pe.index()] = Some(Report {
                // Of thousands of rounds, the last is enough.
                counts: Box::default(),
                ..report.clone()
            });
        }
    }

    /// A neighbour often notices a death before the operating system tells of it, or that
    /// somebody gives up before that one has said why: waits a moment for a better cause than
    /// `seen`.
    pub(super) async fn first_cause(&mut self, seen: Trouble, suspect: Option<PeId>) -> Trouble {
        if suspect.is_none() {
            return seen;
        }
        let deadline = Instant::now() + DEATH_NOTICE;
        while let Some((pe, heard)) = self.cluster.hear(Some(deadline)).await {
            match heard {
                Heard::Exited(exit, last_words) => return died(pe, &exit, last_words),
                Heard::Word(FromPe::Fault {
                    reason,
                    peer: None,
                    bad_input,
                    output_stands,
                    ..
                }) => {
                    return Trouble::Fault {
                        witness: pe,
                        blamed: None,
                        reason,
                        bad_input,
                        output_stands,
                    };
                }
                Heard::Word(word) => self.note(pe, &word),
                Heard::ChannelEnded(end) if self.cluster.joined_from(pe).is_some() => {
                    return gone(pe, end);
                }
                Heard::ChannelEnded(_) => {}
            }
        }
        seen
    }
}
