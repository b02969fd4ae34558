//! A run that failed: what was being done, with whom it went wrong, and who was left without.

use std::fmt;
use std::net::SocketAddr;

use flitcast_proto::{PeId, RoundId};

use crate::job::request::Request;
use crate::launch::cluster::LaunchError;
use crate::observe::phase::Phase;
use crate::site::guard::Guard;
use crate::text::units::Bytes;
use crate::text::words::names;

/// A message that did not arrive.
#[derive(Clone, Debug)]
pub struct Lacking {
    /// M_i's PE.
    pub pe: PeId,
    /// Its length.
    pub bytes: u64,
    /// How much of it came; `None` if nobody can tell.
    pub received: Option<u64>,
}

/// How the cause of a failed launch begins.
const LAUNCHING: &str = "the cluster did not come up: ";

/// A run that failed.
#[derive(Debug)]
pub struct Failure {
    /// What failed first.
    pub cause: String,
    /// Who failed besides, and how: of a launch, since all its hosts are called at once.
    pub others: Vec<(PeId, String)>,
    /// What was being done.
    pub phase: Phase,
    /// With whom.
    pub pe: Option<PeId>,
    /// Where it listens, as far as is known.
    pub address: Option<String>,
    /// Its process, if it was started here.
    pub pid: Option<u32>,
    /// From where it has joined, if it has.
    pub joined_from: Option<SocketAddr>,
    /// Its host's name, in a cluster that has such.
    pub host: Option<String>,
    /// Its parent in the tree.
    pub parent: Option<PeId>,
    /// Who stands below it, and so was cut off.
    pub below: Vec<PeId>,
    /// How connections were guarded.
    pub guard: Guard,
    /// In which round; `None` before the first.
    pub round: Option<RoundId>,
    /// Whether it was a scatter.
    pub scatter: bool,
    /// Whether what was delivered is there to be seen.
    pub keeps_files: bool,
    /// Whose messages were delivered.
    pub delivered: Vec<PeId>,
    /// Whose were not.
    pub lacking: Vec<Lacking>,
    /// Whether it was no fault but a request that could not be met, which shows once all PEs
    /// have looked at their files.
    pub refused: bool,
    /// Whose messages were there before, with a receipt of the undertaking.
    pub found: Vec<PeId>,
    /// Whom it could go on without.
    pub culprits: Vec<PeId>,
    /// Bytes of M_i, by PE index; empty if nobody has said.
    pub bytes: Vec<u64>,
}

/// Of why a PE is left out, so much is kept.
pub const WHY_CHARS: usize = 300;

impl Failure {
    /// Of a cluster that did not come up.
    pub fn of_launch(request: &Request, error: &LaunchError) -> Failure {
        let pe = error.pe();
        let others = error.others().iter();
        Failure {
            cause: format!("{LAUNCHING}{error}"),
            others: others.map(|death| (death.pe, death.to_string())).collect(),
            phase: Phase::Launch,
            pe,
            address: None,
            pid: None,
            joined_from: None,
            host: pe.and_then(|pe| request.placement.places[pe.index()].name.clone()),
            parent: pe.and_then(|pe| request.tree.parent(pe)),
            below: Vec::new(),
            guard: request.guard.clone(),
            round: None,
            scatter: request.operation.is_scatter(),
            keeps_files: false,
            delivered: Vec::new(),
            lacking: Vec::new(),
            refused: false,
            found: Vec::new(),
            culprits: error.pes(),
            bytes: Vec::new(),
        }
    }

    /// Why a PE is left out, to be put behind its name.
    pub fn why(&self, pe: PeId) -> String {
        let why = self.cause_of(pe);
        let why = why.strip_prefix(LAUNCHING).unwrap_or(why);
        let name = format!("{pe} ");
        let why = why.strip_prefix(&name).unwrap_or(why);
        let why = why.strip_prefix("was ").unwrap_or(why);
        let why = why.strip_prefix("is ").unwrap_or(why);
        why.chars().take(WHY_CHARS).collect()
    }

    /// What failed as far as this PE goes.
    pub fn cause_of(&self, pe: PeId) -> &str {
        let other = self.others.iter().find(|(other, _)| *other == pe);
        other.map_or(&self.cause, |(_, cause)| cause)
    }

    /// The messages of which no byte came.
    fn nothing_of(&self) -> impl Iterator<Item = &Lacking> {
        self.lacking
            .iter()
            .filter(|lacking| lacking.received == Some(0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        for (_, cause) in &self.others {
            write!(f, "\n  also: {cause}")?;
        }
        let is_known = self.pid.is_some() || self.address.is_some();
        if let Some(pe) = self.pe.filter(|_| is_known) {
            write!(f, "\n  where: {pe}")?;
            if let Some(pid) = self.pid {
                write!(f, ", process {pid}")?;
            }
            if let Some(from) = self.joined_from {
                write!(f, ", joined from {from},")?;
            }
            if let Some(address) = &self.address {
                write!(f, " at {address}")?;
            }
            if let Some(host) = &self.host {
                write!(f, " on {host}")?;
            }
            if let Some(parent) = self.parent {
                write!(f, ", child of {parent}")?;
            }
            if !self.below.is_empty() {
                write!(f, "\n  cut off with it: {}", names(&self.below))?;
            }
        }
        if let (Guard::Insecure, Some(told)) = (&self.guard, self.guard.told()) {
            write!(f, "\n  security: {told}")?;
        }
        let phase = self.phase;
        let operation = if self.scatter { "scatter" } else { "gather" };
        match self.round {
            Some(round) => write!(f, "\n  when: round {round} of the {operation}, {phase}")?,
            None => {
                return write!(
                    f,
                    "\n  when: {phase}, before the first round; nothing was sent"
                );
            }
        }
        match self.delivered.is_empty() {
            true => write!(f, "\n  delivered: nothing")?,
            false => {
                let kept = if self.keeps_files { ", and kept" } else { "" };
                let messages = if self.delivered.len() == 1 {
                    "message"
                } else {
                    "messages"
                };
                write!(
                    f,
                    "\n  delivered: {} {messages}{kept}: {}",
                    self.delivered.len(),
                    names(&self.delivered)
                )?;
            }
        }
        let which = if self.scatter {
            "left without"
        } else {
            "not gathered"
        };
        let nothing: Vec<PeId> = self.nothing_of().map(|lacking| lacking.pe).collect();
        for lacking in self
            .lacking
            .iter()
            .filter(|lacking| lacking.received != Some(0))
        {
            let Lacking {
                pe,
                bytes,
                received,
            } = lacking;
            write!(f, "\n  {which}: {pe}, ")?;
            match received {
                Some(received) if received == bytes => {
                    write!(f, "all of {} arrived, but it is not visible", Bytes(*bytes))?
                }
                Some(received) => write!(f, "{} of {} arrived", Bytes(*received), Bytes(*bytes))?,
                None => write!(f, "of {} an unknown part arrived", Bytes(*bytes))?,
            }
        }
        if !nothing.is_empty() {
            let bytes = self.nothing_of().map(|lacking| lacking.bytes).sum();
            write!(
                f,
                "\n  {which}: {}, nothing of {} arrived",
                names(&nothing),
                Bytes(bytes)
            )?;
        }
        Ok(())
    }
}
