//! Messages split over several trees: the trees, and the parts on each.

use std::sync::Arc;

use flitcast_cluster::machines::has_parts;
use flitcast_plan::Algorithm;
use flitcast_plan::cost::Model;
use flitcast_plan::predict::predict;
use flitcast_plan::timing::Timing;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::ops::parts::bytes_of_parts;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use super::{Dice, Fault, Kind, Scenario, Way};

/// One of the trees over which messages are split; each has separate connections.
#[derive(Clone, Debug)]
pub struct Lane {
    pub tree: Arc<Tree>,
    /// The links; the processes take no time.
    pub model: Model,
    /// The schedule of each PE on this tree, by PE index.
    pub schedules: Vec<PeSchedule>,
}

/// Returns the lanes of a round, and the duration of the round without faults.
pub(super) fn planned(
    (operation, flit_bytes, pacing): (Algorithm, u32, Pacing),
    trees: Vec<(Arc<Tree>, Model)>,
    parts: &[Vec<u64>],
) -> (Vec<Lane>, u64) {
    let lane = |((tree, model), bytes): ((Arc<Tree>, Model), &Vec<u64>)| {
        let timing = Timing::of(&model, flit_bytes, pacing);
        let schedules = operation.schedules(&tree, bytes, &timing);
        Lane {
            tree,
            model,
            schedules,
        }
    };
    let lanes: Vec<Lane> = trees.into_iter().zip(parts).map(lane).collect();
    let predictions = lanes.iter().map(|lane| {
        let predicted = predict(&lane.tree, &lane.schedules, &lane.model);
        predicted.unwrap_or_else(|violation| panic!("the schedule: {violation}"))
    });
    let together = predictions.reduce(|one, other| one.beside(other));
    let predicted_ns = together.map_or(0, |together| together.round_ns());
    (lanes, predicted_ns)
}

impl Scenario {
    /// Returns the directions from a PE to its neighbours on all trees: on each the parent first,
    /// then the children and others in index order.
    pub fn ways_from(&self, from: PeId) -> impl Iterator<Item = Way> {
        let lanes = self.lanes.iter().enumerate();
        lanes.flat_map(move |(lane, it)| {
            let all = self.operation.neighbours(&it.tree, from).into_iter();
            all.map(move |to| Way { lane, from, to })
        })
    }

    /// Returns the schedules by tree, or none if messages are not split.
    pub(in super::super) fn schedules_by_lane(&self) -> Vec<Vec<PeSchedule>> {
        match &self.lanes[..] {
            [_] => Vec::new(),
            lanes => lanes.iter().map(|lane| lane.schedules.clone()).collect(),
        }
    }
}

impl Dice {
    /// Draws the additional trees.
    pub(super) fn further(&mut self, tree: &Arc<Tree>, operation: Algorithm) -> Vec<Arc<Tree>> {
        if !has_parts(operation) || self.below(2) == 0 {
            return Vec::new();
        }
        let one = |dice: &mut Dice| match dice.below(3) {
            // A second network card for the same tree.
            0 => tree.clone(),
            _ => {
                let other = dice.grown(operation, tree.len() as u64);
                Arc::new(other.rerooted(tree.root()))
            }
        };
        (0..1 + self.below(3)).map(|_| one(self)).collect()
    }

    /// Deals the flits of each message to `lanes` trees. Returns the bytes by tree and delivery.
    pub(super) fn dealt(
        &mut self,
        (tree, operation): (&Tree, Algorithm),
        bytes: &[u64],
        lanes: usize,
        flit_bytes: u32,
    ) -> Vec<Vec<u64>> {
        if lanes == 1 {
            return vec![bytes.to_vec()];
        }
        let mut dealt = vec![vec![0; bytes.len()]; lanes];
        let collective = operation.collective();
        for message in collective.messages(tree) {
            let length = collective.length(tree, message, bytes);
            let (how, first) = (self.below(3), self.below(lanes as u64));
            let mut flits = vec![0; lanes];
            for flit in 0..flits_of(length, flit_bytes) {
                let lane = match how {
                    0 => first,
                    1 => flit % lanes as u64,
                    _ => self.below(lanes as u64),
                };
                flits[lane as usize] += 1;
            }
            let parts = bytes_of_parts(&flits, false, length, flit_bytes.into());
            for at in message.ends(tree) {
                let delivery = collective.delivery(tree, message.id, at).index();
                for (lane, part) in dealt.iter_mut().zip(&parts) {
                    lane[delivery] = part * u64::from(bytes[delivery] > 0);
                }
            }
        }
        dealt
    }

    /// Moves each fault of an edge to an edge of any of the trees, and in some runs damages a
    /// payload.
    pub(super) fn spread(&mut self, faults: &mut Vec<Fault>, lanes: &[Lane], span_ns: u64) {
        for fault in faults.iter_mut().filter(|_| lanes.len() > 1) {
            if let Some(way) = fault.kind.way_mut() {
                *way = self.way_on(lanes);
            }
        }
        if self.below(4) == 0 {
            faults.push(Fault {
                at_ns: self.below(span_ns),
                kind: Kind::Damage {
                    way: self.way_on(lanes),
                    skip: self.below(4),
                    bits: 1 + self.below(3),
                },
            });
        }
    }

    fn way_on(&mut self, lanes: &[Lane]) -> Way {
        let lane = self.below(lanes.len() as u64) as usize;
        let way = self.way(&lanes[lane].tree);
        Way { lane, ..way }
    }
}
