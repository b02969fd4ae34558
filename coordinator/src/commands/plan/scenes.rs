//! Plans as scenes: what crosses when, for the space-time diagram.

use std::collections::BTreeMap;

use flitcast_proto::exact::Exact;
use flitcast_proto::gossip::Prices;
use flitcast_proto::items::Leg;
use flitcast_proto::packets::certification::Stream;
use flitcast_proto::packets::model::{LinkCost, SendPorts, Ticks, way};
use flitcast_proto::{PeId, Tree};

use super::command::{AskedPlan, PlanError};
use super::gossip_report::Report;
use super::packets_certified::CertifiedReport;
use super::packets_report::PacketReport;
use super::static_plan::{PlannedMessage, StaticPlan};
use super::svg::MAX_PES;
use super::svg::crossings::{Band, MAX_BANDS, Moment, Scene};
use super::svg::frame::Axis;
use crate::text::figures::decimal;
use crate::text::words::counted;

/// That a picture of so many PEs shows something.
pub fn check_pes(pes: usize) -> Result<(), PlanError> {
    match pes > MAX_PES {
        true => Err(PlanError::TooLargeToDraw { pes }),
        false => Ok(()),
    }
}

/// Puts a band to the others, as long as the picture still shows something.
fn add(bands: &mut Vec<Band>, band: Band) -> Result<(), PlanError> {
    if bands.len() == MAX_BANDS {
        return Err(PlanError::TooMuchToDraw);
    }
    bands.push(band);
    Ok(())
}

/// What tells the bands of a plan apart.
enum Colours {
    /// Flits of the one message.
    Flits,
    /// The trees of a cover, by the edges that they have.
    Trees(BTreeMap<(PeId, PeId), usize>),
    /// Where messages start.
    Sources,
    /// Messages.
    Messages,
}

impl Colours {
    fn of(plan: &StaticPlan) -> Colours {
        match plan.operation {
            "broadcast" if plan.trees.is_empty() => Colours::Flits,
            "broadcast" => {
                let arcs = (0..).zip(&plan.trees).flat_map(|(number, tree)| {
                    let arc = |pe| Some(((tree.parent(pe)?, pe), number));
                    tree.pes().filter_map(arc).collect::<Vec<_>>()
                });
                Colours::Trees(arcs.collect())
            }
            "gossip" | "exchange" => Colours::Sources,
            _ => Colours::Messages,
        }
    }

    /// What a band of this colour is.
    fn what(&self) -> &'static str {
        match self {
            Colours::Flits => "flit of the message: slanted where it crosses, a bar where it comes",
            Colours::Trees(_) => {
                "flits on one tree: slanted where they cross, a bar where they come"
            }
            Colours::Sources => {
                "flits of one source: slanted where they cross, a bar where they come"
            }
            Colours::Messages => "message Mi: slanted where it crosses, a bar where it comes",
        }
    }
}

/// The flits that cross without a gap; with `singly`, each.
fn runs(leg: Leg, singly: bool) -> impl Iterator<Item = Leg> {
    let (runs, flits) = match leg.every == 1 && !singly {
        true => (1, leg.flits),
        false => (leg.flits, 1),
    };
    (0..runs).map(move |run| Leg {
        offset: leg.offset + run,
        flits,
        first_step: leg.first_step + run * leg.every,
        ..leg
    })
}

impl StaticPlan {
    /// As a scene.
    ///
    /// # Errors
    ///
    /// It would have so much in it that nobody could see anything.
    pub fn scene(&self) -> Result<Scene, PlanError> {
        check_pes(self.pes)?;
        let colours = Colours::of(self);
        let messages = self.messages.iter().zip(0..);
        let messages: BTreeMap<u64, (&PlannedMessage, usize)> = messages
            .map(|(message, place)| (message.id, (message, place)))
            .collect();
        let is_broadcast = self.operation == "broadcast";
        let mut bands = Vec::new();
        for leg in self.crossings.legs() {
            let Some(&(message, place)) = messages.get(&leg.message.0) else {
                continue;
            };
            for run in runs(leg, is_broadcast) {
                let flit = || (run.offset + 1).to_string();
                let (class, name) = match &colours {
                    Colours::Flits => (run.offset as usize, flit()),
                    Colours::Trees(arcs) => {
                        let tree = arcs.get(&(run.from, run.to));
                        (tree.copied().unwrap_or(0), flit())
                    }
                    Colours::Sources => (message.source.index(), self.name_of(message)),
                    Colours::Messages => (place, self.name_of(message)),
                };
                let begin = run.first_step as f64;
                let end = begin + run.flits as f64;
                let band = Band {
                    class: Some(class),
                    name,
                    from: run.from,
                    to: run.to,
                    out: [begin - 1.0, end - 1.0],
                    into: [begin, end],
                };
                add(&mut bands, band)?;
            }
        }
        let flits: u64 = self.messages.iter().map(|message| message.flits).sum();
        let begin = bands.iter().map(|band| band.out[0]).min_by(f64::total_cmp);
        let is_synchronized = self.operation == "gather";
        let phases = [
            ("synchronization", begin.unwrap_or(0.0)),
            ("transmission", Axis::Steps.behind(self.time_steps as f64)),
        ];
        let phases = phases.into_iter().filter(|_| is_synchronized);
        let by = match self.trees.len() {
            0 => format!("by {}", self.algorithm),
            trees if is_broadcast => format!("over {}", counted(trees as u64, "tree", "trees")),
            trees => format!(
                "over {}, {}",
                counted(trees as u64, "tree", "trees"),
                self.algorithm
            ),
        };
        Ok(Scene {
            title: format!("{} on {} {by}", self.operation, self.name),
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
            phases: phases
                .map(|(name, at)| Moment {
                    at,
                    name: name.to_owned(),
                })
                .collect(),
            is_multi_port: self.ports == "multi",
            classes: match &colours {
                Colours::Flits => (1..=flits).map(|flit| format!("flit {flit}")).collect(),
                Colours::Trees(_) => (1..=self.trees.len())
                    .map(|tree| format!("tree {tree}"))
                    .collect(),
                Colours::Sources => (0..self.pes as u32)
                    .map(|pe| PeId(pe).to_string())
                    .collect(),
                Colours::Messages => self.messages.iter().map(|one| self.name_of(one)).collect(),
            },
            what: colours.what(),
            bands,
        })
    }

    fn name_of(&self, message: &PlannedMessage) -> String {
        match (self.operation, &message.destinations[..]) {
            ("exchange", [to]) => format!("{}→{}", message.source.0, to.0),
            ("gossip", _) => message.source.to_string(),
            _ => format!("M{}", message.id),
        }
    }

    /// The tree that all crossings are over: that of the edges, else the one by which each PE gets
    /// everything from one other.
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
                for leg in self.crossings.legs() {
                    let parent = &mut parents[leg.to.index()];
                    if *parent.get_or_insert(leg.from) != leg.from {
                        return None;
                    }
                }
                let tree = Tree::with_absent(root, parents).ok()?;
                (tree.count() == self.pes).then_some(tree)
            }
        }
    }
}

/// A packet on a link, of a set-up and what follows it.
struct Crossing {
    class: usize,
    name: String,
    from: PeId,
    to: PeId,
    begin: f64,
    /// When its set-up is over,
    ready: f64,
    /// and when it is.
    end: f64,
}

impl Crossing {
    fn add(self, bands: &mut Vec<Band>) -> Result<(), PlanError> {
        let Crossing {
            from,
            to,
            begin,
            ready,
            end,
            ..
        } = self;
        if ready > begin {
            add(bands, setup(from, to, [begin, ready]))?;
        }
        let band = Band {
            class: Some(self.class),
            name: self.name,
            from,
            to,
            out: [ready, end],
            into: [ready, end],
        };
        add(bands, band)
    }
}

/// The sender is busy, and nothing comes yet.
fn setup(from: PeId, to: PeId, span: [f64; 2]) -> Band {
    Band {
        class: None,
        name: String::new(),
        from,
        to,
        out: span,
        into: [span[1]; 2],
    }
}

const PACKETS: &str = "packet of message Mi: a bar where it comes";

/// What all scenes in packets have in common.
fn in_packets(asked: &AskedPlan, cost: LinkCost, time: Ticks, bound: Option<Ticks>) -> Scene {
    let moment = |time| Moment {
        at: cost.exact(time).to_f64(),
        name: cost.exact(time).to_string(),
    };
    Scene {
        title: String::new(),
        summary: String::new(),
        pes: asked.tree.len(),
        tree: Some(Tree::clone(&asked.tree)),
        axis: Axis::Time,
        time: moment(time),
        bound: bound.map(moment),
        phases: Vec::new(),
        is_multi_port: false,
        classes: Vec::new(),
        what: PACKETS,
        bands: Vec::new(),
    }
}

impl PacketReport<'_> {
    /// As a scene: each packet on each link.
    ///
    /// # Errors
    ///
    /// It would have so much in it that nobody could see anything.
    pub fn scene(&self) -> Result<Scene, PlanError> {
        let (tree, cost, whole) = (&self.asked.tree, self.cost, self.plan.time);
        check_pes(tree.len())?;
        let nonnull = tree.ids().filter(|pe| self.asked.flits[pe.index()] > 0);
        let places: BTreeMap<PeId, usize> = nonnull.zip(0..).collect();
        let mut ports = SendPorts::new(tree.len());
        let mut bands = Vec::new();
        for run in &self.plan.sequence {
            let mut stops: Vec<PeId> = way(tree, run.pe).into_iter().map(PeId).collect();
            stops.push(run.pe);
            for _ in 0..run.packets {
                let mut end = 0;
                for link in stops.windows(2) {
                    let begin = ports.free[link[0].index()].max(end);
                    end = begin + cost.packet(run.flits);
                    ports.free[link[0].index()] = end;
                    let ([from, to], [begin, end]) = match self.is_gather() {
                        false => ([link[0], link[1]], [begin, end]),
                        true => ([link[1], link[0]], [whole - end, whole - begin]),
                    };
                    let at = |time| cost.exact(time).to_f64();
                    let crossing = Crossing {
                        class: places[&run.pe],
                        name: format!("M{}", run.pe.0),
                        from,
                        to,
                        begin: at(begin),
                        ready: at(begin + cost.setup),
                        end: at(end),
                    };
                    crossing.add(&mut bands)?;
                }
            }
        }
        Ok(Scene {
            title: format!(
                "{} on {} in packets: {}",
                self.operation,
                self.asked.name,
                self.by()
            ),
            summary: format!(
                "{}, {}, {}, set-up {}",
                counted(tree.len() as u64, "PE", "PEs"),
                counted(places.len() as u64, "message", "messages"),
                counted(self.count(), "packet", "packets"),
                cost.exact(cost.setup),
            ),
            classes: places.keys().map(|pe| format!("M{}", pe.0)).collect(),
            bands,
            ..in_packets(self.asked, cost, whole, Some(self.plan.bound))
        })
    }
}

impl CertifiedReport<'_> {
    /// As a scene: each PE's stream to its parent.
    ///
    /// # Errors
    ///
    /// It would have so much in it that nobody could see anything.
    pub fn scene(&self) -> Result<Scene, PlanError> {
        let tree = &self.asked.tree;
        check_pes(tree.len())?;
        let at = |time| self.cost.exact(time).to_f64();
        let phase = |name: &str, time| Moment {
            at: at(time),
            name: name.to_owned(),
        };
        let mut bands = Vec::new();
        for Stream { pe, start, end, .. } in &self.certified.streams {
            if let Some(to) = tree.parent(*pe) {
                let span = [*start, *end].map(at);
                let stream = Band {
                    class: Some(pe.index()),
                    name: pe.to_string(),
                    from: *pe,
                    to,
                    out: span,
                    into: span,
                };
                add(&mut bands, stream)?;
            }
        }
        Ok(Scene {
            title: format!("gather on {} in packets: certification", self.asked.name),
            summary: format!(
                "{}, packets of at most {}, set-up {}",
                counted(tree.len() as u64, "PE", "PEs"),
                counted(self.certified.cap, "flit", "flits"),
                self.cost.exact(self.cost.setup),
            ),
            classes: tree.ids().map(|pe| pe.to_string()).collect(),
            phases: vec![
                phase("certification", self.certified.certified),
                phase("transmission", self.certified.time),
            ],
            what: "packets from a PE and those below it: a bar where they come",
            bands,
            ..in_packets(self.asked, self.cost, self.certified.time, self.bound)
        })
    }
}

impl Report<'_> {
    /// As a scene: the steps, each with its packets, and in these pieces of blocks.
    ///
    /// # Errors
    ///
    /// It would have so much in it that nobody could see anything.
    pub fn scene(&self, prices: &Prices) -> Result<Scene, PlanError> {
        let Report { gossip, cost, .. } = self;
        let pes = gossip.arena.pes();
        check_pes(pes)?;
        let at = |time| Exact::new(time, prices.unit.into()).to_f64();
        let flits_take = |flits: u64| u128::from(prices.flit) * u128::from(flits);
        let (mut bands, mut phases, mut now) = (Vec::new(), Vec::new(), 0);
        for step in gossip.steps() {
            // Where all reach each other, packets of a PE follow each other.
            let (mut sent, mut come) = (vec![0; pes], vec![0; pes]);
            for packet in &step.packets {
                let hops = u128::from(packet.hops.unsigned_abs());
                let ready = now + u128::from(prices.startup) + u128::from(prices.hop) * hops;
                let is_grid = gossip.arena.grid().is_some();
                let (from, to) = (packet.from, packet.to);
                let ends = [&mut sent[from.index()], &mut come[to.index()]];
                let mut ends = ends.map(|before: &mut u128| {
                    let begin = ready + if is_grid { 0 } else { *before };
                    *before += flits_take(packet.flits.len());
                    begin
                });
                if ready > now {
                    add(&mut bands, setup(from, to, [at(now), at(ready)]))?;
                }
                for piece in gossip.blocks.pieces(packet.class, &packet.flits) {
                    let pe = piece.message.pe();
                    let takes = flits_take(piece.flits);
                    let [out, into] = ends.map(|begin| [at(begin), at(begin + takes)]);
                    ends = ends.map(|begin| begin + takes);
                    let band = Band {
                        class: Some(pe.index()),
                        name: pe.to_string(),
                        from,
                        to,
                        out,
                        into,
                    };
                    add(&mut bands, band)?;
                }
            }
            now += prices.time(std::iter::once(step.cost(&gossip.arena)).collect());
            phases.push(Moment {
                at: at(now),
                name: format!("step {}", phases.len() + 1),
            });
        }
        let moment = |time: Exact| Moment {
            at: time.to_f64(),
            name: decimal(time),
        };
        let flits = gossip.blocks.lengths().iter().sum();
        Ok(Scene {
            title: format!("gossip on {} by {}", self.network, self.algorithm),
            summary: format!(
                "{}, {}, {}, {}",
                counted(pes as u64, "PE", "PEs"),
                counted(flits, "flit", "flits"),
                counted(cost.startups, "step", "steps"),
                self.prices_as_text(),
            ),
            pes,
            tree: None,
            axis: Axis::Time,
            time: moment(self.time),
            bound: Some(moment(self.bound)),
            phases,
            is_multi_port: gossip.arena.grid().is_some(),
            classes: (0..pes as u32).map(|pe| PeId(pe).to_string()).collect(),
            what: "flits of one block: a bar where they come",
            bands,
        })
    }
}

#[cfg(test)]
mod tests;
