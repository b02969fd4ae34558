//! Packets with a set-up cost as a scene: each packet on each link.

use std::collections::BTreeMap;

use flitcast_plan::packets::certification::Stream;
use flitcast_plan::packets::model::{LinkCost, Part, Ticks, Timetable, way};
use flitcast_proto::{PeId, Tree};

use super::input::PlanInput;
use super::packets_certified::CertifiedPlan;
use super::packets_report::PlanInPackets;
use super::svg::{Axis, Crossings, Moment, SETUP, Scene, Sheet};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;

/// Returns the sheet of a plan in packets, without title and summary.
fn in_packets(input: &PlanInput, cost: LinkCost, time: Ticks, bound: Option<Ticks>) -> Sheet {
    let moment = |time| Moment::new(cost.exact(time).to_f64(), cost.exact(time));
    Sheet {
        pes: input.tree.len(),
        tree: Some(Tree::clone(&input.tree)),
        axis: Axis::Time,
        time: moment(time),
        bound: bound.map(moment),
        ..Sheet::default()
    }
}

impl PlanInPackets<'_> {
    /// Returns the scene: each packet on each link.
    pub fn scene(&self) -> anyhow::Result<Scene> {
        let (tree, cost, whole) = (&self.input.tree, self.cost, self.plan.time);
        let nonnull = tree.ids().filter(|pe| self.input.flits[pe.index()] > 0);
        let places: BTreeMap<PeId, usize> = nonnull.zip(0..).collect();
        let mut timetable = Timetable::new(tree, cost);
        let mut crossings = Crossings {
            classes: places.keys().map(|pe| format!("M{}", pe.0)).collect(),
            what: "packet of message Mi: a bar where it arrives",
            ..Crossings::default()
        };
        for run in &self.plan.sequence {
            let mut stops: Vec<PeId> = way(tree, run.pe).into_iter().map(PeId).collect();
            stops.push(run.pe);
            for _ in 0..run.packets {
                let crossed = timetable.dispatch(run).links;
                for (link, [begin, end]) in stops.windows(2).zip(crossed) {
                    let (ends, [begin, end]) = match self.is_gather() {
                        false => ([link[0], link[1]], [begin, end]),
                        true => ([link[1], link[0]], [whole - end, whole - begin]),
                    };
                    let [begin, ready, end] =
                        [begin, begin + cost.setup, end].map(|time| cost.exact(time).to_f64());
                    if ready > begin {
                        crossings.add(SETUP, ends, [[begin, ready], [ready; 2]])?;
                    }
                    let is_on = |part: &Part| tree.depth(part.pe) >= tree.depth(link[1]);
                    let on_link = run.parts().filter(is_on);
                    let names: Vec<String> = on_link.map(|it| format!("M{}", it.pe.0)).collect();
                    let band = (Some(places[&run.pe]), names.join("+"));
                    crossings.add(band, ends, [[ready, end]; 2])?;
                }
            }
        }
        Ok(Scene {
            sheet: Sheet {
                title: self.heading(),
                summary: format!(
                    "{}, {}, {}, set-up {}",
                    counted(tree.len() as u64, "PE", "PEs"),
                    counted(places.len() as u64, "message", "messages"),
                    counted(self.count(), "packet", "packets"),
                    cost.exact(cost.setup),
                ),
                ..in_packets(self.input, cost, whole, Some(self.plan.bound))
            },
            crossings,
        })
    }
}

impl CertifiedPlan<'_> {
    /// Returns the scene: each PE's stream to its parent.
    pub fn scene(&self) -> anyhow::Result<Scene> {
        let tree = &self.input.tree;
        let at = |time| self.cost.exact(time).to_f64();
        let mut crossings = Crossings {
            phases: vec![
                Moment::new(at(self.certified.certified), "certification"),
                Moment::new(at(self.certified.time), "transmission"),
            ],
            classes: tree.ids().map(called).collect(),
            what: "packets from a PE and those below it: a bar where they arrive",
            ..Crossings::default()
        };
        for Stream { pe, start, end, .. } in &self.certified.streams {
            if let Some(to) = tree.parent(*pe) {
                let stream = (Some(pe.index()), pe.to_string());
                crossings.add(stream, [*pe, to], [[*start, *end].map(at); 2])?;
            }
        }
        Ok(Scene {
            sheet: Sheet {
                title: self.heading(),
                summary: format!(
                    "{}, packets of at most {}, set-up {}",
                    counted(tree.len() as u64, "PE", "PEs"),
                    counted(self.certified.cap, "flit", "flits"),
                    self.cost.exact(self.cost.setup),
                ),
                ..in_packets(self.input, self.cost, self.certified.time, self.bound)
            },
            crossings,
        })
    }
}
