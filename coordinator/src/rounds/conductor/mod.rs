//! The controller of rounds, without sockets, processes or a clock: it decides which messages the
//! coordinator sends to the PEs, and evaluates their answers and their ends. A driver passes in the
//! time and the events, and sends the messages: `rounds/conduct` does so on real connections, the
//! storm on simulated ones.
//!
//! | in | out |
//! | --- | --- |
//! | `assign`, `probe`, `measure_files`, `measure_host`: a request to one PE | `poll_update`: events, for display or as answers |
//! | `conduct`: all rounds | `poll_word`: messages to PEs |
//! | `handle_word`, `handle_lost`: messages and ends of PEs | `poll_timeout`: when to call `handle_timeout` |
//! | `fail`: an error of the driver | `gave_up`: the end of all rounds after an error, with the results |
//!
//! This module contains all rules about errors: which PEs are awaited and for how long (`awaited`),
//! when a round has stalled (`watch`), which error was first (`cause`), and how a round is given up
//! (`end`). The owner of the connections pings PEs and detects silent ones;
//! [`Conductor::wants_look`] is a parameter of its pings.

mod awaited;
mod beginning;
mod cause;
mod clock;
mod end;
mod plan;
mod round;
mod trouble;
mod watch;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_proto::calibration::Exchange;
use flitcast_proto::cost::FileCosts;
use flitcast_proto::ops::Operation;
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::control::{
    Assignment, Counts, FromPe, Pong, Prefix, Ready, Report, ToPe,
};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{PeId, RoundId, Time, Tree};

use crate::observe::phase::Phase;
use awaited::{Answer, Awaited};
use beginning::Readings;
use round::{Reporting, UnderWay};

pub use end::GaveUp;
pub use plan::{Plan, has_part_in};
pub use trouble::{LEFT, Lost, Trouble, out_of_turn};
pub use watch::{Stall, Watch};

/// The properties of a cluster before the first round.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The tree of PEs.
    pub tree: Arc<Tree>,
    /// The algorithm of the rounds.
    pub operation: Operation,
    /// Limits of all waits.
    pub timeouts: Timeouts,
    /// PEs that have joined. The end of such a process is only visible as the end of its channel.
    pub joined: BTreeSet<PeId>,
    /// Address at which each PE listens, by PE index, for error messages; `None`, or no element, if
    /// it is unknown.
    pub addresses: Vec<Option<String>>,
}

/// An event that the driver receives.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A PE has connected to its neighbours and examined its files.
    Ready(PeId, Ready),
    /// The edge between this PE and its parent was measured.
    Probed(PeId, Vec<Exchange>),
    /// A PE has measured the costs of files, if that is possible.
    FilesMeasured(PeId, Option<FileCosts>),
    /// A PE has measured the costs of processes on its machine; the text is its result.
    HostMeasured(PeId, String),
    /// A PE has read prefixes, and these are their digests.
    PrefixesChecked(PeId, Vec<Digest>),
    /// A new phase begins.
    Enters(Phase),
    /// A PE has answered a ping.
    Heard(PeId, Pong),
    /// P0 gets the trigger of a round.
    RoundBegins(RoundId),
    /// P0 has sent or received bytes of the round.
    Progress {
        /// Number of bytes.
        bytes: u64,
        /// Time since the round began.
        elapsed: Duration,
    },
    /// A round takes much longer than predicted.
    Slow {
        /// The round.
        round: RoundId,
        /// Ratio of the elapsed to the predicted time.
        times: f64,
        /// The phase.
        phase: Phase,
    },
    /// P0 has finished the round.
    RoundDone,
    /// A PE has reported the round, with its counters.
    Reported(PeId, Box<Counts>),
    /// All PEs have reported a round: reports by PE index, blank for absent PEs.
    RoundReported(Vec<Report>),
    /// No answer of a PE, which may be stopped, is expected any more: its process is to be killed.
    GivesUpOn(PeId),
    /// An error has occurred; all following events are its consequences.
    Failed {
        /// The kind of the error.
        kind: &'static str,
        /// The PE at fault.
        pe: Option<PeId>,
        /// The first error.
        cause: String,
    },
}

/// The current wait.
#[derive(Debug)]
enum State {
    /// For answers of PEs, if any were requested.
    Asking,
    /// For P0, which runs a round.
    Round(UnderWay),
    /// For the other PEs' reports on a round.
    Reporting(Reporting),
    /// For an event that explains this error, until this time.
    Seeking(Trouble, Time),
    /// For the last reports of the remaining PEs, until this time.
    GivingUp(Trouble, Time),
    /// For nothing.
    Over,
}

/// A controller of rounds on a cluster.
#[derive(Debug)]
pub struct Conductor {
    setting: Setting,
    state: State,
    awaited: Awaited,
    /// The rounds, once they are known.
    plan: Option<Plan>,
    /// The readings of the PEs' clocks for the begin of the next round.
    readings: Option<Readings>,
    /// The current or last round; 0 before the first.
    round: RoundId,
    /// The latest report of each PE on that round.
    last_reports: Vec<Option<Report>>,
    phase: Phase,
    /// PEs whose processes have ended, or from which no answer is expected any more.
    gone: BTreeSet<PeId>,
    wants_look: bool,
    words: VecDeque<(PeId, ToPe)>,
    updates: VecDeque<Update>,
    gave_up: Option<GaveUp>,
}

impl Conductor {
    /// Creates the controller of a cluster that was just launched.
    pub fn new(now: Time, setting: Setting) -> Conductor {
        Conductor {
            state: State::Asking,
            awaited: Awaited::new(now),
            plan: None,
            readings: None,
            round: RoundId(0),
            last_reports: vec![None; setting.tree.len()],
            phase: Phase::Connect,
            gone: BTreeSet::new(),
            wants_look: false,
            words: VecDeque::new(),
            updates: VecDeque::new(),
            gave_up: None,
            setting,
        }
    }

    /// Starts a new phase.
    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.updates.push_back(Update::Enters(phase));
    }

    /// Sends a PE its assignment; the answer is [`Update::Ready`].
    pub fn assign(&mut self, now: Time, pe: PeId, assignment: Assignment) {
        let limit = self.setting.timeouts.disk;
        self.ask(now, pe, ToPe::Assignment(assignment), Answer::Ready(limit));
    }

    /// Requests a measurement of the edge between a PE and its parent, for about `budget`; the
    /// answer is [`Update::Probed`]. P0 has no such edge.
    pub fn probe(&mut self, now: Time, child: PeId, budget: Duration) {
        if let Some(parent) = self.setting.tree.parent(child) {
            let budget_ns = budget.as_nanos() as u64;
            let word = ToPe::ProbeEdge { child, budget_ns };
            self.ask(now, parent, word, Answer::Probe { child, budget });
        }
    }

    /// Requests a measurement of the costs of files; the answer is [`Update::FilesMeasured`].
    pub fn measure_files(&mut self, now: Time, pe: PeId) {
        self.ask(now, pe, ToPe::MeasureFiles, Answer::FilesMeasured);
    }

    /// Requests a measurement of the costs of processes with encrypted or unencrypted connections;
    /// the answer is [`Update::HostMeasured`].
    pub fn measure_host(&mut self, now: Time, pe: PeId, encrypted: bool) {
        let word = ToPe::MeasureHost { encrypted };
        self.ask(now, pe, word, Answer::HostMeasured);
    }

    /// Requests the digests of prefixes from a PE, which answers with [`Update::PrefixesChecked`].
    pub fn check_prefixes(&mut self, now: Time, pe: PeId, prefixes: Vec<Prefix>) {
        let answer = Answer::PrefixesChecked(prefixes.len(), self.setting.timeouts.disk);
        self.ask(now, pe, ToPe::CheckPrefixes { prefixes }, answer);
    }

    /// Prepares all PEs for rounds, and triggers each round as soon as the last one is reported;
    /// the answers are [`Update::RoundReported`], one for each round.
    pub fn conduct(&mut self, now: Time, plan: Plan) {
        self.enter(Phase::Prepare);
        for (pe, prepare) in plan.prepares(&self.setting) {
            self.ask(now, pe, ToPe::Prepare(prepare), Answer::Prepared);
        }
        self.plan = Some(plan);
    }

    fn ask(&mut self, now: Time, pe: PeId, word: ToPe, answer: Answer) {
        if !matches!(self.state, State::Asking) {
            return;
        }
        if let Err(WireError::TooLong { length, limit }) = word.check_length() {
            let what = word.kind();
            return self.fail(
                now,
                Trouble::TooLong {
                    pe,
                    what,
                    length,
                    limit,
                },
            );
        }
        self.say(pe, word);
        self.awaited.ask(now, pe, answer);
    }

    fn say(&mut self, pe: PeId, word: ToPe) {
        self.words.push_back((pe, word));
    }

    /// Handles a message from a PE.
    pub fn handle_word(&mut self, now: Time, pe: PeId, word: FromPe) {
        if !self.setting.tree.contains(pe) {
            return;
        }
        if let FromPe::Report(report) = &word {
            self.note(pe, report);
        }
        match (&self.state, word) {
            (State::Over, _) => {}
            (State::GivingUp(..), _) => self.end_if_all_told(),
            (
                _,
                FromPe::Fault {
                    reason,
                    peer,
                    bad_input,
                    output_stands,
                    hung_up,
                    changed,
                    ..
                },
            ) => {
                let fault = Trouble::Fault {
                    witness: pe,
                    blamed: peer.filter(|peer| self.setting.tree.contains(*peer)),
                    reason,
                    bad_input,
                    output_stands,
                    hung_up,
                    changed,
                };
                self.suspect(now, peer, fault);
            }
            (State::Seeking(..), _) => {}
            (_, FromPe::Pong(pong)) => self.heard(now, pe, pong),
            (State::Asking, word) => match self.awaited.take(pe, &word) {
                Ok(()) => {
                    if let (FromPe::ClockRead { at_ns }, Some(readings)) =
                        (&word, &mut self.readings)
                    {
                        let is_root = pe == self.setting.tree.root();
                        readings.add(now, is_root, *at_ns);
                    }
                    let answer = awaited::update(pe, word);
                    self.updates.extend(answer);
                    self.go_on(now);
                }
                Err(trouble) => self.fail(now, trouble),
            },
            (State::Round(_), word) => self.hear_in_round(now, pe, word),
            (State::Reporting(_), word) => self.hear_in_reporting(now, pe, word),
        }
    }

    /// Handles the answer to a ping.
    fn heard(&mut self, now: Time, pe: PeId, pong: Pong) {
        let files_quiet = Duration::from_millis(pong.files_quiet_ms);
        self.awaited.works(clock::before(now, files_quiet));
        if let State::Round(under_way) = &mut self.state {
            under_way.watch.heard(pe, &pong, now);
        }
        self.updates.push_back(Update::Heard(pe, pong));
        self.look_after_round(now);
    }

    /// Handles the end of a PE's process or channel.
    pub fn handle_lost(&mut self, now: Time, pe: PeId, lost: Lost) {
        if !self.setting.tree.contains(pe) {
            return;
        }
        // A process that has joined sends no further event.
        let is_last = matches!(lost, Lost::Exited { .. }) || self.setting.joined.contains(&pe);
        if is_last {
            self.gone.insert(pe);
        }
        match self.state {
            State::Seeking(..) => self.seek_in_loss(now, pe, lost),
            State::GivingUp(..) => {
                // No report can come over a broken channel.
                if matches!(lost, Lost::Lifeless(_) | Lost::Broken(_)) {
                    self.give_up_on(pe);
                }
                self.end_if_all_told();
            }
            State::Over => {}
            _ => self.lose(now, pe, lost),
        }
    }

    /// Handles the expiry of the deadline that [`Conductor::poll_timeout`] returned.
    pub fn handle_timeout(&mut self, now: Time) {
        match &self.state {
            State::Asking => {
                if let Some(silent) = self.awaited.late(now) {
                    self.fail(now, silent);
                }
            }
            State::Round(_) => self.look_after_round(now),
            State::Reporting(reporting) if reporting.deadline <= now => self.miss_reports(now),
            State::Seeking(_, deadline) if *deadline <= now => self.cease_seeking(now),
            State::GivingUp(_, deadline) if *deadline <= now => self.end(),
            _ => {}
        }
    }

    /// Returns when [`Conductor::handle_timeout`] is to be called unless an event occurs before;
    /// `None` if nothing is awaited.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Asking => self.awaited.deadline(),
            State::Round(under_way) => Some(under_way.next_look),
            State::Reporting(reporting) => Some(reporting.deadline),
            State::Seeking(_, deadline) | State::GivingUp(_, deadline) => Some(*deadline),
            State::Over => None,
        }
    }

    /// Returns the next message to a PE.
    pub fn poll_word(&mut self) -> Option<(PeId, ToPe)> {
        self.words.pop_front()
    }

    /// Returns the next event.
    pub fn poll_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    /// Returns whether pings are to ask the PEs for unreachable neighbours, because nothing has
    /// moved for a while.
    pub fn wants_look(&self) -> bool {
        self.wants_look
    }

    /// Returns whether nothing is awaited: all requests are answered and all rounds reported, or
    /// the rounds were given up.
    pub fn is_idle(&self) -> bool {
        self.poll_timeout().is_none()
    }

    /// Returns the results of rounds that were given up, once they are known.
    pub fn gave_up(&mut self) -> Option<GaveUp> {
        self.gave_up.take()
    }

    /// Returns whether a PE's process is assumed to run and to be reachable.
    fn is_alive(&self, pe: PeId) -> bool {
        !self.gone.contains(&pe)
    }

    /// Stores a report on the current round.
    fn note(&mut self, pe: PeId, report: &Report) {
        let is_over = matches!(self.state, State::Over);
        if report.round != self.round || is_over {
            return;
        }
        let counts = report.counts.clone();
        self.updates.push_back(Update::Reported(pe, counts));
        self.last_reports[pe.index()] = Some(Report {
            // Only the last of several rounds is used.
            counts: Box::default(),
            ..report.clone()
        });
    }
}

#[cfg(test)]
mod tests;
