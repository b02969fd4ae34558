//! A failed run: its phase, the PEs at fault, and the missing deliveries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_proto::ops::Direction;
use flitcast_proto::wire::control::Version;
use flitcast_proto::{DeliveryId, DeliveryName, MessageId, PeId, RoundId, Tree};

use crate::job::request::Request;
use crate::launch::cluster::LaunchError;
use crate::observe::phase::Phase;
use crate::rounds::versions::SeenVersions;
use crate::site::guard::Guard;
use crate::text::deliveries;
use crate::text::phrases::{counted, names};
use crate::text::units::Bytes;

/// A message that did not arrive.
#[derive(Clone, Debug)]
pub struct MissingDelivery {
    pub delivery: DeliveryId,
    /// The length of the message.
    pub bytes: u64,
    /// Number of bytes that arrived; `None` if it is unknown.
    pub received: Option<u64>,
}

/// Prefix of the cause of a failed launch.
const LAUNCHING: &str = "the cluster did not come up: ";

/// The state of the messages after a failed run.
#[derive(Clone, Debug, Default)]
pub struct DeliverySummary {
    /// Lengths by delivery; empty if they are unknown.
    pub bytes: Vec<u64>,
    /// Deliveries that existed before, with a receipt of the job.
    pub found: Vec<DeliveryId>,
    /// The versions of messages made of files.
    pub seen: SeenVersions,
    /// Deliveries that were made.
    pub delivered: Vec<DeliveryId>,
    /// Deliveries that were not made.
    pub lacking: Vec<MissingDelivery>,
}

impl DeliverySummary {
    /// Marks deliveries as complete, regardless of the PEs' reports.
    pub fn learn_delivered(&mut self, complete: &BTreeSet<DeliveryId>) {
        let is_complete = |lacking: &MissingDelivery| complete.contains(&lacking.delivery);
        let more = self.lacking.extract_if(.., |lacking| is_complete(lacking));
        self.delivered.extend(more.map(|lacking| lacking.delivery));
        self.delivered.sort_unstable();
    }
}

/// The location of a PE and its position in the tree.
#[derive(Clone, Debug)]
pub struct PeLocation {
    pub pe: PeId,
    /// The address at which it listens, if it is known.
    pub address: Option<String>,
    /// The process, if it was started here.
    pub pid: Option<u32>,
    /// The address that it has joined from, if it has.
    pub joined_from: Option<SocketAddr>,
    /// The name of its host, if hosts have names.
    pub host: Option<String>,
    pub parent: Option<PeId>,
    /// The PEs below it, which were cut off.
    pub below: Vec<PeId>,
}

impl PeLocation {
    /// Returns the location of a PE that has not started yet.
    pub fn of(request: &Request, pe: PeId) -> PeLocation {
        PeLocation {
            pe,
            address: None,
            pid: None,
            joined_from: None,
            host: request.site.placement.places[pe.index()].name.clone(),
            parent: request.site.tree.parent(pe),
            below: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct Failure {
    /// The first error.
    pub cause: String,
    /// Further failed PEs with their errors. Only launches have several, because they start all
    /// hosts at once.
    pub others: Vec<(PeId, String)>,
    pub phase: Phase,
    /// The location of the PE at fault.
    pub at: Option<PeLocation>,
    pub guard: Guard,
    /// The round; `None` before the first.
    pub round: Option<RoundId>,
    pub operation: Algorithm,
    /// The tree, from which PEs may be absent.
    pub tree: Arc<Tree>,
    /// Whether delivered messages are kept as files.
    pub keeps_files: bool,
    pub aftermath: DeliverySummary,
    /// Whether the request could not be met because of existing files, which is not an error of a
    /// PE.
    pub refused: bool,
    /// The PEs without which the run could continue.
    pub failed_pes: Vec<PeId>,
    /// Whether the PE at fault still ran.
    pub is_faulty_pe_alive: bool,
    /// The messages whose sources have another version than at the start of the run.
    pub changed: Vec<MessageId>,
    /// Deliveries that may be complete, each with the version at its destination: the run is
    /// repeated and compares the sources with these versions.
    pub holds: Vec<(DeliveryId, Version)>,
}

/// Maximum number of characters of the reason for excluding a PE.
pub const WHY_CHARS: usize = 300;

impl Failure {
    /// A cluster that could not be launched.
    pub fn of_launch(request: &Request, error: &LaunchError) -> Failure {
        let others = error.others().iter();
        let first = error.pes().first();
        Failure {
            cause: format!("{LAUNCHING}{error}"),
            others: others.map(|death| (death.pe, death.to_string())).collect(),
            phase: Phase::Launch,
            at: first.map(|pe| PeLocation::of(request, *pe)),
            guard: request.site.guard.clone(),
            round: None,
            operation: request.way.operation,
            tree: request.site.tree.clone(),
            keeps_files: false,
            aftermath: DeliverySummary::default(),
            refused: false,
            failed_pes: error.pes().to_vec(),
            is_faulty_pe_alive: false,
            changed: Vec::new(),
            holds: Vec::new(),
        }
    }

    /// Returns the reason for excluding a PE, to be printed after the PE's name.
    pub fn why(&self, pe: PeId) -> String {
        let why = self.cause_of(pe);
        let why = why.strip_prefix(LAUNCHING).unwrap_or(why);
        let name = format!("{pe} ");
        let why = why.strip_prefix(&name).unwrap_or(why);
        let why = why.strip_prefix("was ").unwrap_or(why);
        let why = why.strip_prefix("is ").unwrap_or(why);
        why.chars().take(WHY_CHARS).collect()
    }

    pub fn cause_of(&self, pe: PeId) -> &str {
        let other = self.others.iter().find(|(other, _)| *other == pe);
        other.map_or(&self.cause, |(_, cause)| cause)
    }

    /// Returns the names of deliveries, in the order of their rows.
    pub fn names_of(&self, deliveries: impl Iterator<Item = DeliveryId>) -> Vec<DeliveryName> {
        let name = |it| self.operation.collective().delivery_name(&self.tree, it);
        let mut names: Vec<DeliveryName> = deliveries.map(name).collect();
        names.sort_unstable();
        names
    }

    /// Writes the state of the messages, each line after a line break.
    fn write_aftermath(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeliverySummary {
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
        let collective = self.operation.collective();
        let which = match collective.direction() {
            Direction::Down | Direction::Across => "left without",
            Direction::Up => "not gathered",
        };
        if collective.is_of_pairs() {
            return self.write_lacking_by_pe(f, which);
        }
        let (nothing, partly): (Vec<&MissingDelivery>, Vec<&MissingDelivery>) = lacking
            .iter()
            .partition(|lacking| lacking.received == Some(0));
        for lacking in partly {
            let (bytes, received) = (lacking.bytes, lacking.received);
            let name = collective.delivery_name(&self.tree, lacking.delivery);
            let arrived = match received {
                Some(all) if all == bytes => {
                    format!("all of {} arrived, but it is not visible", Bytes(bytes))
                }
                _ => arrived(received, bytes),
            };
            write!(f, "\n  {which}: {name}, {arrived}")?;
        }
        if !nothing.is_empty() {
            let bytes = nothing.iter().map(|lacking| lacking.bytes).sum();
            let names = self.names_of(nothing.iter().map(|lacking| lacking.delivery));
            let (names, arrived) = (deliveries::names(&names), arrived(Some(0), bytes));
            write!(f, "\n  {which}: {names}, {arrived}")?;
        }
        Ok(())
    }

    /// Writes one line for each PE that lacks messages, because there may be many pairs.
    fn write_lacking_by_pe(&self, f: &mut fmt::Formatter<'_>, which: &str) -> fmt::Result {
        let mut by_pe: BTreeMap<PeId, Vec<&MissingDelivery>> = BTreeMap::new();
        for lacking in &self.aftermath.lacking {
            let collective = self.operation.collective();
            let pe = collective.row(&self.tree, lacking.delivery);
            by_pe.entry(pe).or_default().push(lacking);
        }
        for (pe, lacking) in by_pe {
            let count = counted(lacking.len() as u64, "message", "messages");
            let bytes = lacking.iter().map(|lacking| lacking.bytes).sum();
            let received = lacking.iter().map(|lacking| lacking.received).sum();
            let arrived = arrived(received, bytes);
            write!(f, "\n  {which}: {pe}, {count}, {arrived}")?;
        }
        Ok(())
    }
}

/// Describes the part of some bytes that arrived, if it is known.
fn arrived(received: Option<u64>, bytes: u64) -> String {
    let bytes = Bytes(bytes);
    match received {
        Some(0) => format!("nothing of {bytes} arrived"),
        Some(received) => format!("{} of {bytes} arrived", Bytes(received)),
        None => format!("of {bytes} an unknown part arrived"),
    }
}

/// Writes the location if it is known, each line after a line break.
impl fmt::Display for PeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid.is_none() && self.address.is_none() {
            return Ok(());
        }
        // The name follows where all names are put.
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
        if let Some(parent) = self.parent {
            write!(f, ", child of {parent}")?;
        }
        if !self.below.is_empty() {
            write!(f, "\n  cut off with it: {}", names(&self.below))?;
        }
        Ok(())
    }
}

/// Formats the state of the messages of a run, one line for each kind; nothing before the first
/// round.
pub struct AftermathOf<'a>(pub &'a Failure);

impl fmt::Display for AftermathOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.round {
            Some(_) => self.0.write_aftermath(f),
            None => Ok(()),
        }
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
        if let (Guard::Insecure, Some(security)) = (&self.guard, self.guard.description()) {
            write!(f, "\n  security: {security}")?;
        }
        let phase = self.phase;
        let operation = self.operation.collective().name();
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
