//! A checked request: all that a run or a plan needs from a command line or a record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_node::payload::delivered_at;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Payload, Version};
use flitcast_proto::{DeliveryId, PeId};

use crate::algorithms::candidates::Candidate;
use crate::algorithms::method::Method;
use crate::files::profile::Profile;
use crate::job::decisions::{Choice, Decisions};
use crate::job::site::Site;
use crate::options::format::Format;
use crate::options::transfer::PictureArgs;
use crate::site::topology::Topology;

/// The messages of a request: their content, and the selection that is sent.
#[derive(Clone, Debug)]
pub struct Messages {
    pub payload: Payload,
    /// Lengths by delivery, if they are known here.
    pub bytes: Vec<u64>,
    /// Deliveries that are not sent, because they were made before; in increasing order.
    pub left_out: Vec<DeliveryId>,
    /// The number of the job that this is a part of; 0 before it has begun.
    pub job_id: u64,
    /// The versions of messages made of files that are known from earlier runs, by message.
    pub versions: Vec<Version>,
    /// Whether a record of the job is on the disk, or is written before the first round.
    pub recorded: bool,
    /// The output of the gather that follows a scatter, which must be empty.
    pub later_output: Option<PathBuf>,
}

impl Messages {
    /// Creates the messages of a job that has not begun, with nothing left out.
    pub fn new(payload: Payload, bytes: Vec<u64>) -> Messages {
        Messages {
            payload,
            bytes,
            left_out: Vec::new(),
            job_id: 0,
            versions: Vec::new(),
            recorded: false,
            later_output: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// The PEs, their tree and their links.
    pub site: Site,
    /// The algorithm and its settings.
    pub way: Method,
    /// The alternatives, if the algorithm was chosen.
    pub choice: Option<Arc<Choice>>,
    /// Alternatives to `way` on the same links. The quickest is chosen after the links are measured.
    pub others: Vec<Method>,
    pub messages: Messages,
    /// The number of times that the run may continue without a PE that fails.
    pub retries: u32,
    /// Whether another cluster may follow this one: to retry, or to measure more.
    pub again: bool,
    /// Whether the PEs are to run commands, in this cluster or one that follows.
    pub commands: bool,
    pub timeouts: Timeouts,
    /// The number of rounds; 0 for a dry run, in which one round is predicted and prepared.
    pub rounds: u64,
    /// The measurements of the cluster from a profile.
    pub profile: Option<Arc<Profile>>,
    pub format: Format,
    pub pictures: PictureArgs,
}

impl Request {
    /// Returns whether the request is only predicted: nothing is sent, and no output is changed.
    pub fn is_dry_run(&self) -> bool {
        self.rounds == 0
    }

    /// Returns whether the links are known only after the cluster has measured them.
    pub fn is_measured_later(&self) -> bool {
        let site = &self.site;
        site.placement.is_spread() && !site.is_shaped() && self.profile.is_none()
    }

    /// Returns the number of nonnull messages.
    pub fn message_count(&self) -> u64 {
        let collective = self.way.operation.collective();
        let lengths = collective.lengths(&self.site.tree, &self.messages.bytes);
        lengths.count() as u64
    }

    pub fn total_bytes(&self) -> u64 {
        let collective = self.way.operation.collective();
        collective.total(&self.site.tree, &self.messages.bytes)
    }

    /// Returns the PEs to which a PE connects outside the tree, for any method that may be chosen.
    pub fn peers(&self, pe: PeId) -> BTreeSet<PeId> {
        let methods = [&self.way].into_iter().chain(&self.others);
        methods
            .flat_map(|way| way.operation.peers(&self.site.tree, pe))
            .collect()
    }

    /// Returns how orders are obeyed: as requested, else by the profile's best pacing, else in
    /// turns over a network, which may have a switch that drops packets under load.
    pub fn pacing(&self) -> Pacing {
        let measured_best = self.profile.as_ref().map(|profile| profile.pacing);
        let usual = match self.site.placement.is_spread() {
            true => Pacing::Turns,
            false => Pacing::Scheduled,
        };
        match self.way.pacing.or(measured_best).unwrap_or(usual) {
            // A static schedule has no clock.
            Pacing::Scheduled if self.way.operation.is_static() => Pacing::Eager,
            pacing => pacing,
        }
    }

    /// Returns the name of the tree, or of the network alone if data does not go over the tree.
    pub fn place(&self) -> String {
        let over_tree = self.way.operation.fits().stays_in_tree();
        self.site.name_of(over_tree)
    }

    /// Returns the decisions that the request has made; the prediction of a round makes the others.
    pub fn decisions(&self) -> Decisions {
        let (way, choice) = (self.way.clone(), self.choice.clone());
        Decisions::new(self.place(), way, choice, self.pacing())
    }

    /// Returns the decisions of the request for each alternative in `others`.
    pub fn other_decisions(&self) -> Vec<Decisions> {
        let by = |way: &Method| Request {
            way: way.clone(),
            ..self.clone()
        };
        let others = self.others.iter().map(|way| by(way).decisions());
        others.collect()
    }

    /// Names the place where a message is to become visible at a PE: its path and the PE.
    pub fn place_of(&self, of: DeliveryId, at: PeId) -> String {
        let (operation, tree) = (self.way.operation, &self.site.tree);
        // A delivery that does not end at the PE means the output of the gather that follows.
        let ends_there = operation
            .collective()
            .delivered(tree, of)
            .is_some_and(|(_, end)| end == at);
        let output = match ends_there {
            true => self.messages.payload.output(),
            false => self.messages.later_output.as_deref(),
        };
        let name = operation.collective().delivery_name(tree, of);
        let files = self.messages.payload.files().zip(output);
        let path = files.map_or_else(PathBuf::new, |(files, output)| {
            delivered_at(output, name, files)
        });
        format!("{} at {}", path.display(), self.site.placement.called(at))
    }

    /// Returns the request by an algorithm that works, as [`Candidate::check`] confirms.
    pub fn done_by(&self, candidate: &Candidate, breadth_first: &Topology) -> Request {
        let mut request = self.clone();
        request.way = candidate.way(self.way.flit_bytes);
        if let Some(baseline) = candidate.baseline {
            let own = baseline.lay(breadth_first.clone(), &self.messages.bytes);
            request.site = request.site.with_tree(own);
        }
        request
    }
}
