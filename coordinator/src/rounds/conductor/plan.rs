//! The rounds that are to be conducted, and what each PE is told of them beforehand.

use std::collections::BTreeMap;

use flitcast_proto::items::Message;
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::wire::control::Prepare;
use flitcast_proto::{DeliveryId, PeId, Tree};

use super::Setting;

/// Rounds that are to be conducted, each like the others.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// What each PE is told, by PE index: the very briefs that were predicted with.
    pub briefs: Vec<Brief>,
    /// By tree, what each PE is told instead where messages go on several trees at once, in parts;
    /// else empty.
    pub lanes: Vec<Vec<Brief>>,
    /// How many.
    pub rounds: u64,
    /// What one is expected to take.
    pub predicted_ns: u64,
}

impl Plan {
    /// What is owed: which messages to whom, those of `operation` that are not null.
    pub fn deliveries(
        &self,
        tree: &Tree,
        operation: Operation,
    ) -> BTreeMap<DeliveryId, (PeId, Message)> {
        let briefs = (0..).map(PeId).zip(&self.briefs);
        let takes = briefs.flat_map(|(pe, brief)| brief.takes.iter().map(move |it| (pe, *it)));
        takes
            .map(|(pe, it)| {
                let delivery = operation.delivery(tree, it.id, pe);
                // Of parts, the whole.
                let (id, _) = operation.whole(tree, it.id);
                let bytes = self.bytes[delivery.index()];
                (delivery, (pe, Message { id, bytes, ..it }))
            })
            .collect()
    }

    /// What each PE is told.
    pub(super) fn prepares(&self, setting: &Setting) -> Vec<(PeId, Prepare)> {
        let prepare = |(pe, whole): (PeId, &Brief)| {
            let mut told = self.lanes.iter().map(|lane| lane[pe.index()].clone());
            let prepare = Prepare {
                brief: told.next().unwrap_or_else(|| whole.clone()),
                rounds: self.rounds,
                lanes: told.collect(),
            };
            (pe, prepare)
        };
        let tree = &setting.tree;
        let briefs = tree.ids().zip(&self.briefs);
        briefs
            .filter(|(pe, _)| tree.contains(*pe))
            .map(prepare)
            .collect()
    }
}
