//! The scene of a plan that is a list of crossings.

use std::collections::BTreeMap;

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::{PeId, Tree};

use super::static_plan::{PlannedMessage, StaticPlan};
use super::svg::{Axis, Crossings, MAX_BANDS, Moment, Scene, Sheet};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;

/// Returns the flits that cross without a gap as one hop; with `singly`, each flit.
fn runs(hop: ScheduledHop, singly: bool) -> impl Iterator<Item = ScheduledHop> {
    let (runs, flits) = match hop.every == 1 && !singly {
        true => (1, hop.flits),
        false => (hop.flits, 1),
    };
    (0..runs).map(move |run| ScheduledHop {
        offset: hop.offset + run,
        flits,
        first_step: hop.first_step + run * hop.every,
        ..hop
    })
}

impl StaticPlan {
    pub fn scene(&self) -> anyhow::Result<Scene> {
        let flits: u64 = self.messages.iter().map(|message| message.flits).sum();
        let (what, classes) = self.colours(flits);
        let mut crossings = Crossings {
            is_multi_port: self.ports == "multi",
            classes,
            what,
            ..Crossings::default()
        };
        self.add_bands(&mut crossings)?;
        let begin = crossings
            .bands
            .iter()
            .map(|band| band.out[0])
            .min_by(f64::total_cmp);
        if self.operation == "gather" {
            let end = Axis::Steps.behind(self.time_steps as f64);
            crossings.phases = vec![
                Moment::new(begin.unwrap_or(0.0), "synchronization"),
                Moment::new(end, "transmission"),
            ];
        }
        Ok(Scene {
            sheet: Sheet {
                title: self.title(),
                summary: format!(
                    "{}, {} ports, {}, {}",
                    counted(self.pes as u64, "PE", "PEs"),
                    self.ports,
                    counted(self.messages.len() as u64, "message", "messages"),
                    counted(flits, "flit", "flits"),
                ),
                pes: self.pes,
                tree: self.tree(),
                axis: Axis::Steps,
                time: Moment::step(self.time_steps),
                bound: Some(Moment::step(self.bound_steps)),
                ..Sheet::default()
            },
            crossings,
        })
    }

    /// Adds a band for each run of flits over an edge.
    fn add_bands(&self, crossings: &mut Crossings) -> anyhow::Result<()> {
        let trees = (0..).zip(&self.trees).flat_map(|(number, tree)| {
            let arc = move |pe| Some(((tree.parent(pe)?, pe), number));
            tree.pes().filter_map(arc)
        });
        let tree_of: BTreeMap<(PeId, PeId), usize> = trees.collect();
        let messages = self.messages.iter().zip(0..);
        let messages: BTreeMap<u64, (&PlannedMessage, usize)> = messages
            .map(|(message, place)| (message.id, (message, place)))
            .collect();
        for hop in self.crossings.hops() {
            let Some(&(message, place)) = messages.get(&hop.message.0) else {
                continue;
            };
            for run in runs(hop, self.operation == "broadcast") {
                let flit = || (run.offset + 1).to_string();
                let (class, name) = match self.operation {
                    "broadcast" if self.trees.is_empty() => (run.offset as usize, flit()),
                    "broadcast" => {
                        let tree = tree_of.get(&(run.from, run.to));
                        (tree.copied().unwrap_or(0), flit())
                    }
                    "gossip" | "exchange" => (message.source.index(), self.name_of(message)),
                    _ => (place, self.name_of(message)),
                };
                let begin = run.first_step as f64;
                let end = begin + run.flits as f64;
                let spans = [[begin - 1.0, end - 1.0], [begin, end]];
                crossings.add((Some(class), name), [run.from, run.to], spans)?;
            }
        }
        Ok(())
    }

    /// Returns the legend of a band, and the names of the colours: of flits, trees, sources or
    /// messages.
    fn colours(&self, flits: u64) -> (&'static str, Vec<String>) {
        let numbered = |what: &str, last: u64| {
            let all = 1..=last;
            all.map(|number| format!("{what} {number}")).collect()
        };
        let sources = || {
            let all = (0..self.pes as u32).map(PeId);
            all.map(called).collect()
        };
        match self.operation {
            // Each has a band, unless there is no other PE.
            "broadcast" if self.trees.is_empty() => (
                "flit of the message: slanted where it crosses, a bar where it arrives",
                numbered("flit", flits.min(MAX_BANDS as u64)),
            ),
            "broadcast" => (
                "flits on one tree: slanted where they cross, a bar where they arrive",
                numbered("tree", self.trees.len() as u64),
            ),
            "exchange" => (
                "i→j or i: flits from Pi, slanted where they cross, a bar where they arrive",
                sources(),
            ),
            "gossip" => (
                "flits of one source: slanted where they cross, a bar where they arrive",
                sources(),
            ),
            _ => (
                "message Mi: slanted where it crosses, a bar where it arrives",
                self.messages.iter().map(|one| self.name_of(one)).collect(),
            ),
        }
    }

    fn name_of(&self, message: &PlannedMessage) -> String {
        match (self.operation, &message.destinations[..]) {
            ("exchange", [to]) => format!("{}→{}", message.source.0, to.0),
            ("gossip", _) => message.source.to_string(),
            _ => format!("M{}", message.id),
        }
    }

    /// Returns the tree that all crossings are over: that of the edges, else the one in which each PE
    /// receives everything from one other.
    fn tree(&self) -> Option<Tree> {
        let root = self.source().unwrap_or(PeId::ROOT);
        let mut parents = vec![None; self.pes];
        match &self.edges {
            Some(edges) if edges.len() + 1 == self.pes && self.trees.is_empty() => {
                for [parent, child] in edges {
                    parents[child.index()] = Some(*parent);
                }
                let tree = Tree::from_parents(parents).ok()?;
                Some(tree.rerooted(root))
            }
            _ => {
                for hop in self.crossings.hops() {
                    let parent = &mut parents[hop.to.index()];
                    if *parent.get_or_insert(hop.from) != hop.from {
                        return None;
                    }
                }
                let tree = Tree::with_absent(root, parents).ok()?;
                (tree.count() == self.pes).then_some(tree)
            }
        }
    }
}
