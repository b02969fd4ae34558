//! A gossip on a network as a scene: its steps, and in each its packets.

use flitcast_plan::fraction::Fraction;
use flitcast_proto::PeId;

use super::gossip_report::GossipPlan;
use super::svg::{Axis, Crossings, Moment, SETUP, Scene, Sheet};
use flitcast_cluster::text::figures::decimal;
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;

impl GossipPlan<'_> {
    /// Returns the scene: of each packet its set-up, and the blocks or pieces of blocks that it
    /// carries.
    pub fn scene(&self) -> anyhow::Result<Scene> {
        let GossipPlan {
            gossip,
            cost,
            prices,
            ..
        } = self;
        let pes = gossip.arena.pes();
        let at = |time| Fraction::new(time, prices.unit.into()).to_f64();
        let flits_take = |flits: u64| u128::from(prices.flit) * u128::from(flits);
        let is_multi_port = gossip.arena.grid().is_some();
        let mut crossings = Crossings {
            is_multi_port,
            classes: (0..pes as u32).map(|pe| called(PeId(pe))).collect(),
            what: "flits of one block: a bar where they arrive",
            ..Crossings::default()
        };
        let mut now = 0;
        for step in gossip.steps() {
            // In a complete network the packets of a PE follow each other.
            let (mut sent, mut received) = (vec![0; pes], vec![0; pes]);
            for packet in &step.packets {
                let hops = u128::from(packet.hops.unsigned_abs());
                let ready = now + u128::from(prices.startup) + u128::from(prices.hop) * hops;
                let (from, to) = (packet.from, packet.to);
                let ends = [&mut sent[from.index()], &mut received[to.index()]];
                let mut ends = ends.map(|before: &mut u128| {
                    let begin = ready + if is_multi_port { 0 } else { *before };
                    *before += flits_take(packet.flits.len());
                    begin
                });
                if ready > now {
                    let span = [at(now), at(ready)];
                    crossings.add(SETUP, [from, to], [span, [span[1]; 2]])?;
                }
                for piece in gossip.blocks.pieces(packet.class, &packet.flits) {
                    let pe = piece.message.pe();
                    let takes = flits_take(piece.flits);
                    let spans = ends.map(|begin| [at(begin), at(begin + takes)]);
                    ends = ends.map(|begin| begin + takes);
                    crossings.add((Some(pe.index()), pe.to_string()), [from, to], spans)?;
                }
            }
            now += prices.time(std::iter::once(step.cost(&gossip.arena)).collect());
            let phases = &mut crossings.phases;
            let name = format!("step {}", phases.len() + 1);
            phases.push(Moment::new(at(now), name));
        }
        let moment = |time: Fraction| Moment::new(time.to_f64(), decimal(time));
        let flits = gossip.blocks.lengths().iter().sum();
        Ok(Scene {
            sheet: Sheet {
                title: self.title(),
                summary: format!(
                    "{}, {}, {}, {}",
                    counted(pes as u64, "PE", "PEs"),
                    counted(flits, "flit", "flits"),
                    counted(cost.startups, "step", "steps"),
                    self.prices_as_text(),
                ),
                pes,
                axis: Axis::Time,
                time: moment(self.time),
                bound: Some(moment(self.bound)),
                ..Sheet::default()
            },
            crossings,
        })
    }
}
