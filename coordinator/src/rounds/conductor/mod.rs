//! The conductor of rounds, without sockets, processes or a clock: what the coordinator says to
//! the PEs and when, and what it makes of what they say and of their ends. Whoever drives it
//! passes the time in, says what it wants said, and tells it what is heard. The coordinator does
//! so on real connections (`rounds/conduct`), the storm on simulated ones.
//!
//! | in | out |
//! | --- | --- |
//! | `assign`, `probe`, `measure_files`, `measure_host`: one PE is asked for something | `poll_update`: what has happened, for whoever waits for it or shows it |
//! | `conduct`: all rounds | `poll_word`: what is to be said to a PE |
//! | `handle_word`, `handle_lost`: what is heard of a PE | `poll_timeout`: when to call `handle_timeout` |
//! | `fail`: whoever drives it has found trouble | `gave_up`: that all is over, and what came of it |
//!
//! All rules about trouble are here: who is waited for and for how long (`awaited`), when a round
//! stands still (`watch`), what failed first (`cause`), and how a round is given up (`end`).
//! Who pings PEs, and finds out that one is silent, is whoever keeps the connections:
//! [`Conductor::wants_look`] is what a ping asks.

mod awaited;
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
use flitcast_proto::wire::control::{Assignment, Counts, FromPe, Pong, Ready, Report, ToPe};
use flitcast_proto::{PeId, RoundId, Time, Tree};

use crate::observe::phase::Phase;
use awaited::{Answer, Awaited};
use round::{Reporting, UnderWay};

pub use end::GaveUp;
pub use plan::Plan;
pub use trouble::{Lost, Trouble, out_of_turn};
pub use watch::{Stall, Watch};

/// What the conductor knows of the cluster before the first round.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The PEs.
    pub tree: Arc<Tree>,
    /// What its rounds do.
    pub operation: Operation,
    /// How long is waited for what.
    pub timeouts: Timeouts,
    /// Those that have joined: when such a process ends, only the end of its channel is heard.
    pub joined: BTreeSet<PeId>,
    /// Where each PE listens, by its index, as messages tell it; `None`, or no element, where
    /// nobody knows.
    pub addresses: Vec<Option<String>>,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    /// A PE has connected to its neighbours and looked at its files.
    Ready(PeId, Ready),
    /// The edge between this PE and its parent was measured.
    Probed(PeId, Vec<Exchange>),
    /// A PE has found out what files cost, if that can be measured.
    FilesMeasured(PeId, Option<FileCosts>),
    /// A PE has found out what processes cost where it runs, as it says.
    HostMeasured(PeId, String),
    /// Something else is being done.
    Enters(Phase),
    /// A PE has answered a ping.
    Heard(PeId, Pong),
    /// P0 is told to begin a round.
    RoundBegins(RoundId),
    /// So many bytes of the round have moved at P0.
    Progress {
        /// How many.
        bytes: u64,
        /// Since the round began.
        elapsed: Duration,
    },
    /// A round takes much longer than predicted.
    Slow {
        /// Which.
        round: RoundId,
        /// How many times longer.
        times: f64,
        /// What is being done.
        phase: Phase,
    },
    /// P0 is done with the round.
    RoundDone,
    /// A PE has reported the round, with what it has counted.
    Reported(PeId, Box<Counts>),
    /// All PEs have reported a round: their reports, by PE index, those of who is absent blank.
    RoundReported(Vec<Report>),
    /// Nothing more is expected of a PE, which may be stopped: its process is to be killed.
    GivesUpOn(PeId),
    /// Something has failed; all that follows is its aftermath.
    Failed {
        /// What kind of trouble it is.
        kind: &'static str,
        /// With whom.
        pe: Option<PeId>,
        /// What failed first.
        cause: String,
    },
}

/// What is being waited for.
#[derive(Debug)]
enum State {
    /// The PEs that were asked for something, if any.
    Asking,
    /// P0, which plays a round.
    Round(UnderWay),
    /// The other PEs' reports on a round.
    Reporting(Reporting),
    /// A better cause than this trouble, until then.
    Seeking(Trouble, Time),
    /// What arrived, as the survivors tell it, until then.
    GivingUp(Trouble, Time),
    /// Nothing any more.
    Over,
}

/// Conducts rounds on a cluster.
#[derive(Debug)]
pub struct Conductor {
    setting: Setting,
    state: State,
    awaited: Awaited,
    /// The rounds, once they are known.
    plan: Option<Plan>,
    /// The round under way, or the last; 0 before the first.
    round: RoundId,
    /// The latest report of each PE on that round.
    last_reports: Vec<Option<Report>>,
    phase: Phase,
    /// Those whose processes have ended, and those of whom nothing more is expected.
    gone: BTreeSet<PeId>,
    wants_look: bool,
    words: VecDeque<(PeId, ToPe)>,
    updates: VecDeque<Update>,
    gave_up: Option<GaveUp>,
}

impl Conductor {
    /// The conductor of a cluster that has just come up.
    pub fn new(now: Time, setting: Setting) -> Conductor {
        Conductor {
            state: State::Asking,
            awaited: Awaited::new(now),
            plan: None,
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

    /// Something else is being done from now on.
    pub fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.updates.push_back(Update::Enters(phase));
    }

    /// Tells a PE its place; it answers with [`Update::Ready`].
    pub fn assign(&mut self, now: Time, pe: PeId, assignment: Assignment) {
        let limit = self.setting.timeouts.disk;
        self.ask(now, pe, ToPe::Assignment(assignment), Answer::Ready(limit));
    }

    /// Has the edge between a PE and its parent measured, for about `budget`; the answer is
    /// [`Update::Probed`]. P0 has no such edge.
    pub fn probe(&mut self, now: Time, child: PeId, budget: Duration) {
        if let Some(parent) = self.setting.tree.parent(child) {
            let budget_ns = budget.as_nanos() as u64;
            let word = ToPe::ProbeEdge { child, budget_ns };
            self.ask(now, parent, word, Answer::Probe { child, budget });
        }
    }

    /// Has a PE find out what files cost; it answers with [`Update::FilesMeasured`].
    pub fn measure_files(&mut self, now: Time, pe: PeId) {
        self.ask(now, pe, ToPe::MeasureFiles, Answer::FilesMeasured);
    }

    /// Has a PE find out what processes cost where it runs, which have encrypted connections or
    /// plain ones; it answers with [`Update::HostMeasured`].
    pub fn measure_host(&mut self, now: Time, pe: PeId, encrypted: bool) {
        let word = ToPe::MeasureHost { encrypted };
        self.ask(now, pe, word, Answer::HostMeasured);
    }

    /// Prepares all PEs for rounds, and has P0 begin each as soon as the last is reported; the
    /// answers are [`Update::RoundReported`], as many as there are rounds.
    pub fn conduct(&mut self, now: Time, plan: Plan) {
        self.enter(Phase::Prepare);
        for (pe, prepare) in plan.prepares(&self.setting) {
            self.ask(now, pe, ToPe::Prepare(prepare), Answer::Prepared);
        }
        self.plan = Some(plan);
    }

    fn ask(&mut self, now: Time, pe: PeId, word: ToPe, answer: Answer) {
        if matches!(self.state, State::Asking) {
            self.say(pe, word);
            self.awaited.ask(now, pe, answer);
        }
    }

    fn say(&mut self, pe: PeId, word: ToPe) {
        self.words.push_back((pe, word));
    }

    /// A PE has said something.
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
                };
                self.suspect(now, peer, fault);
            }
            (State::Seeking(..), _) => {}
            (_, FromPe::Pong(pong)) => self.heard(now, pe, pong),
            (State::Asking, word) => match self.awaited.take(pe, word) {
                Ok(answer) => {
                    self.updates.extend(answer);
                    self.go_on(now);
                }
                Err(trouble) => self.fail(now, trouble),
            },
            (State::Round(_), word) => self.hear_in_round(now, pe, word),
            (State::Reporting(_), word) => self.hear_in_reporting(now, pe, word),
        }
    }

    /// A PE has answered a ping.
    fn heard(&mut self, now: Time, pe: PeId, pong: Pong) {
        let files_quiet = Duration::from_millis(pong.files_quiet_ms);
        self.awaited.works(clock::before(now, files_quiet));
        if let State::Round(under_way) = &mut self.state {
            under_way.watch.heard(pe, &pong, now);
        }
        self.updates.push_back(Update::Heard(pe, pong));
        self.look_after_round(now);
    }

    /// The process of a PE has ended, or its channel.
    pub fn handle_lost(&mut self, now: Time, pe: PeId, lost: Lost) {
        if !self.setting.tree.contains(pe) {
            return;
        }
        // Nothing else will be heard of a process that has joined.
        let is_last = matches!(lost, Lost::Exited { .. }) || self.setting.joined.contains(&pe);
        if is_last {
            self.gone.insert(pe);
        }
        match self.state {
            State::Seeking(..) => self.seek_in_loss(now, pe, lost),
            State::GivingUp(..) => {
                // Whoever cannot be heard any more tells nothing.
                if matches!(lost, Lost::Lifeless(_) | Lost::Broken(_)) {
                    self.give_up_on(pe);
                }
                self.end_if_all_told();
            }
            State::Over => {}
            _ => self.lose(now, pe, lost),
        }
    }

    /// The time is come that [`Conductor::poll_timeout`] has told.
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

    /// When [`Conductor::handle_timeout`] is to be called, unless something is heard before;
    /// `None` if nothing is waited for.
    pub fn poll_timeout(&self) -> Option<Time> {
        match &self.state {
            State::Asking => self.awaited.deadline(),
            State::Round(under_way) => Some(under_way.next_look),
            State::Reporting(reporting) => Some(reporting.deadline),
            State::Seeking(_, deadline) | State::GivingUp(_, deadline) => Some(*deadline),
            State::Over => None,
        }
    }

    /// What is to be said next, and to whom.
    pub fn poll_word(&mut self) -> Option<(PeId, ToPe)> {
        self.words.pop_front()
    }

    /// What has happened next.
    pub fn poll_update(&mut self) -> Option<Update> {
        self.updates.pop_front()
    }

    /// Whether pings are to ask the PEs to look for neighbours that cannot be reached: nothing has
    /// moved for a while.
    pub fn wants_look(&self) -> bool {
        self.wants_look
    }

    /// Whether nothing is waited for: all that was asked for is answered, and all rounds are
    /// reported; or it gave up.
    pub fn is_idle(&self) -> bool {
        self.poll_timeout().is_none()
    }

    /// That it gave up, and what came of the messages, once that is known.
    pub fn gave_up(&mut self) -> Option<GaveUp> {
        self.gave_up.take()
    }

    /// Whether a PE's process still runs, as far as is known, and can be heard.
    fn is_alive(&self, pe: PeId) -> bool {
        !self.gone.contains(&pe)
    }

    /// Takes note of a report on the round under way.
    fn note(&mut self, pe: PeId, report: &Report) {
        let is_over = matches!(self.state, State::Over);
        if report.round != self.round || is_over {
            return;
        }
        let counts = report.counts.clone();
        self.updates.push_back(Update::Reported(pe, counts));
        self.last_reports[pe.index()] = Some(Report {
            // Of thousands of rounds, the last is enough.
            counts: Box::default(),
            ..report.clone()
        });
    }
}

#[cfg(test)]
mod tests;
