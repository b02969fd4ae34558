//! A checked request: all that a run or a plan needs from a command line or a record.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_node::payload::delivered_at;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{DeliveryId, PeId};

use super::messages::Messages;
use crate::algorithms::candidates::Candidate;
use crate::algorithms::method::Method;
use crate::files::profile::Profile;
use crate::job::choice::Choice;
use crate::job::decisions::Decisions;
use crate::job::site::Site;
use crate::options::format::Format;
use crate::options::transfer::PictureArgs;
use crate::site::topology::Topology;

/// A checked request.
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
    /// The time limits.
    pub timeouts: Timeouts,
    /// The number of rounds; 0 for a dry run, in which one round is predicted and prepared.
    pub rounds: u64,
    /// The measurements of the cluster from a profile.
    pub profile: Option<Arc<Profile>>,
    /// The format of the result.
    pub format: Format,
    /// The pictures of the run.
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

    /// Returns the bytes of all messages.
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

    /// Returns the request by an algorithm that works, as [`Candidate::check`] confirms. `bytes[i]` is
    /// the length of M_i.
    pub fn done_by(
        &self,
        candidate: &Candidate,
        bytes: &[u64],
        breadth_first: &Topology,
    ) -> Request {
        let mut request = self.clone();
        request.way = candidate.way(self.way.flit_bytes);
        if let Some(baseline) = candidate.baseline {
            let own = baseline.lay(breadth_first.clone(), bytes);
            request.site = request.site.with_tree(own);
        }
        request
    }
}
