//! A run that failed: what was being done, with whom it went wrong, and who was left without.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_proto::ops::{Direction, Operation};
use flitcast_proto::{DeliveryId, DeliveryName, PeId, RoundId, Tree};

use crate::job::request::Request;
use crate::launch::cluster::LaunchError;
use crate::observe::phase::Phase;
use crate::site::guard::Guard;
use crate::text::deliveries;
use crate::text::units::Bytes;
use crate::text::words::{counted, names};

/// A message that did not arrive.
#[derive(Clone, Debug)]
pub struct Lacking {
    /// Which delivery.
    pub delivery: DeliveryId,
    /// Its length.
    pub bytes: u64,
    /// How much of it came; `None` if nobody can tell.
    pub received: Option<u64>,
}

/// How the cause of a failed launch begins.
const LAUNCHING: &str = "the cluster did not come up: ";

/// What came of the messages of a run that failed.
#[derive(Clone, Debug, Default)]
pub struct Aftermath {
    /// Lengths by delivery; empty if nobody has said.
    pub bytes: Vec<u64>,
    /// What was there before, with a receipt of the undertaking.
    pub found: Vec<DeliveryId>,
    /// What was delivered.
    pub delivered: Vec<DeliveryId>,
    /// What was not.
    pub lacking: Vec<Lacking>,
}

/// Where a PE runs, and where it stands in the tree.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    /// Which.
    pub pe: PeId,
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
}

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
    pub at: Option<Whereabouts>,
    /// How connections were guarded.
    pub guard: Guard,
    /// In which round; `None` before the first.
    pub round: Option<RoundId>,
    /// What was being done with the messages, and on which tree.
    pub operation: Operation,
    /// The tree, which may lack PEs.
    pub tree: Arc<Tree>,
    /// Whether what was delivered is there to be seen.
    pub keeps_files: bool,
    /// What came of the messages.
    pub aftermath: Aftermath,
    /// Whether it was no fault but a request that could not be met, which shows once all PEs
    /// have looked at their files.
    pub refused: bool,
    /// Whom it could go on without.
    pub culprits: Vec<PeId>,
}

/// Of why a PE is left out, so much is kept.
pub const WHY_CHARS: usize = 300;

impl Failure {
    /// Of a cluster that did not come up.
    pub fn of_launch(request: &Request, error: &LaunchError) -> Failure {
        let others = error.others().iter();
        let at = error.pe().map(|pe| Whereabouts {
            pe,
            address: None,
            pid: None,
            joined_from: None,
            host: request.site.placement.places[pe.index()].name.clone(),
            parent: request.site.tree.parent(pe),
            below: Vec::new(),
        });
        Failure {
            cause: format!("{LAUNCHING}{error}"),
            others: others.map(|death| (death.pe, death.to_string())).collect(),
            phase: Phase::Launch,
            at,
            guard: request.site.guard.clone(),
            round: None,
            operation: request.way.operation,
            tree: request.site.tree.clone(),
            keeps_files: false,
            aftermath: Aftermath::default(),
            refused: false,
            culprits: error.pes(),
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

    /// What users call deliveries, in the order of their rows.
    pub fn names_of(&self, deliveries: impl Iterator<Item = DeliveryId>) -> Vec<DeliveryName> {
        let name = |it| self.operation.delivery_name(&self.tree, it);
        let mut names: Vec<DeliveryName> = deliveries.map(name).collect();
        names.sort_unstable();
        names
    }

    /// What came of the messages, each line behind the one before.
    fn write_aftermath(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Aftermath {
            delivered, lacking, ..
        } = &self.aftermath;
        match delivered.len() {
            0 => write!(f, "\n  delivered: nothing")?,
            count => {
                let kept = if self.keeps_files { ", and kept" } else { "" };
                let count = counted(count as u64, "message", "messages");
                let names = deliveries::names(&self.names_of(delivered.iter().copied()));
                write!(f, "\n  delivered: {count}{kept}: {names}")?;
            }
        }
        let which = match self.operation.direction() {
            Direction::Down | Direction::Across => "left without",
            Direction::Up => "not gathered",
        };
        if self.operation.is_of_pairs() {
            return self.write_lacking_by_pe(f, which);
        }
        let (nothing, partly): (Vec<&Lacking>, Vec<&Lacking>) = lacking
            .iter()
            .partition(|lacking| lacking.received == Some(0));
        for Lacking {
            delivery,
            bytes,
            received,
        } in partly
        {
            let name = self.operation.delivery_name(&self.tree, *delivery);
            write!(f, "\n  {which}: {name}, ")?;
            match received {
                Some(received) if received == bytes => {
                    write!(f, "all of {} arrived, but it is not visible", Bytes(*bytes))?
                }
                Some(received) => write!(f, "{} of {} arrived", Bytes(*received), Bytes(*bytes))?,
                None => write!(f, "of {} an unknown part arrived", Bytes(*bytes))?,
            }
        }
        if !nothing.is_empty() {
            let bytes = nothing.iter().map(|lacking| lacking.bytes).sum();
            let names = self.names_of(nothing.iter().map(|lacking| lacking.delivery));
            let (names, bytes) = (deliveries::names(&names), Bytes(bytes));
            write!(f, "\n  {which}: {names}, nothing of {bytes} arrived")?;
        }
        Ok(())
    }
}

impl Failure {
    /// A line for each PE that lacks messages: there may be many pairs.
    fn write_lacking_by_pe(&self, f: &mut fmt::Formatter<'_>, which: &str) -> fmt::Result {
        let mut by_pe: BTreeMap<PeId, Vec<&Lacking>> = BTreeMap::new();
        for lacking in &self.aftermath.lacking {
            let pe = self.operation.row(&self.tree, lacking.delivery);
            by_pe.entry(pe).or_default().push(lacking);
        }
        for (pe, lacking) in by_pe {
            let count = counted(lacking.len() as u64, "message", "messages");
            let bytes = Bytes(lacking.iter().map(|lacking| lacking.bytes).sum());
            let received: Option<u64> = lacking.iter().map(|lacking| lacking.received).sum();
            write!(f, "\n  {which}: {pe}, {count}, ")?;
            match received {
                Some(0) => write!(f, "nothing of {bytes} arrived")?,
                Some(received) => write!(f, "{} of {bytes} arrived", Bytes(received))?,
                None => write!(f, "of {bytes} an unknown part arrived")?,
            }
        }
        Ok(())
    }
}

/// Where it is, if that is known; each line behind the one before.
impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid.is_none() && self.address.is_none() {
            return Ok(());
        }
        write!(f, "\n  where: {}", self.pe)?;
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
        Ok(())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        for (_, cause) in &self.others {
            write!(f, "\n  also: {cause}")?;
        }
        if let Some(at) = &self.at {
            write!(f, "{at}")?;
        }
        if let (Guard::Insecure, Some(told)) = (&self.guard, self.guard.told()) {
            write!(f, "\n  security: {told}")?;
        }
        let phase = self.phase;
        let operation = self.operation.name();
        let Some(round) = self.round else {
            return write!(
                f,
                "\n  when: {phase}, before the first round; nothing was sent"
            );
        };
        write!(f, "\n  when: round {round} of the {operation}, {phase}")?;
        self.write_aftermath(f)
    }
}
