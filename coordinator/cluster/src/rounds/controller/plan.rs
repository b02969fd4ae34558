//! The cluster and the rounds to run, and the schedules that the PEs receive before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flitcast_node::limits::Timeouts;
use flitcast_plan::Algorithm;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::{Prefix, Prepare};
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

/// The properties of a cluster before the first round.
#[derive(Clone, Debug)]
pub struct ClusterInfo {
    pub tree: Arc<Tree>,
    /// The algorithm of the rounds.
    pub operation: Algorithm,
    pub timeouts: Timeouts,
    /// PEs that have joined. The end of such a process is only visible as the end of its channel.
    pub joined: BTreeSet<PeId>,
    /// Address at which each PE listens, by PE index, for error messages; `None`, or no element, if
    /// it is unknown.
    pub addresses: Vec<Option<String>>,
}

/// A number of equal rounds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// The schedule of each PE, by PE index, as used in the prediction.
    pub schedules: Vec<PeSchedule>,
    /// For each tree, the schedules of the PEs if messages are split over several trees; else
    /// empty.
    pub lanes: Vec<Vec<PeSchedule>>,
    /// The prefixes of messages that are not sent again.
    pub prefixes: Vec<Prefix>,
    pub rounds: u64,
    /// Clock offsets from P0's clock by PE index.
    pub clocks: Vec<ClockOffset>,
    /// The predicted time of a round.
    pub predicted_ns: u64,
}

impl Plan {
    /// Returns the deliveries to be made: the destination and the message of each nonnull one of
    /// `operation`.
    pub fn deliveries(
        &self,
        tree: &Tree,
        operation: Algorithm,
    ) -> BTreeMap<DeliveryId, (PeId, Message)> {
        let schedules = (0..).map(PeId).zip(&self.schedules);
        let takes =
            schedules.flat_map(|(pe, schedule)| schedule.receives.iter().map(move |it| (pe, *it)));
        takes
            .map(|(pe, it)| {
                let delivery = operation.collective().delivery(tree, it.id, pe);
                // A part counts as its whole message.
                let (id, _) = operation.collective().whole(tree, it.id);
                let bytes = self.bytes[delivery.index()];
                (delivery, (pe, Message { id, bytes, ..it }))
            })
            .collect()
    }

    /// Returns the message that prepares each PE.
    pub(super) fn prepares(&self, setting: &ClusterInfo) -> Vec<(PeId, Prepare)> {
        let (operation, tree) = (setting.operation, &setting.tree);
        let prepare = |(pe, whole): (PeId, &PeSchedule)| {
            let prefixes = self.prefixes.iter().copied();
            let prefixes = prefixes.filter(|it| has_part_in(operation, tree, pe, it.message));
            let mut lanes = self.lanes.iter().map(|lane| lane[pe.index()].clone());
            let prepare = Prepare {
                schedule: lanes.next().unwrap_or_else(|| whole.clone()),
                rounds: self.rounds,
                lanes: lanes.collect(),
                prefixes: prefixes.collect(),
            };
            (pe, prepare)
        };
        let schedules = tree.ids().zip(&self.schedules);
        let present = schedules.filter(|(pe, _)| tree.contains(*pe));
        present.map(prepare).collect()
    }
}

/// Returns whether a PE sends or takes a message.
pub fn has_part_in(operation: Algorithm, tree: &Tree, pe: PeId, message: MessageId) -> bool {
    let message = operation.address(tree, message);
    message.is_some_and(|message| message.source == pe || message.is_for(pe))
}
