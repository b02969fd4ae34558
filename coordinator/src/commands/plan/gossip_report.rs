//! The report of a gossip on a network: a table of its steps, JSON with every packet, or a picture.

use std::io::{self, Write};

use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{Gossip, GossipAlgorithm, Packet, Prices, Step, StepCost, free_run};
use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::report::{Numbers, PlanReport};
use super::svg::{Axis, Moment, SETUP, Scene};
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::text::figures::{Table, decimal, exact, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::title::title;

/// Limit of rows of steps that a user would still read.
const MAX_ROWS: usize = 40;

/// A planned gossip with its names.
pub struct GossipPlan {
    /// The network as typed.
    pub network: String,
    pub algorithm: GossipAlgorithm,
    /// The prices as typed.
    pub typed: PriceArgs,
    pub prices: Prices,
    pub gossip: Gossip,
}

/// Steps of a kind, in succession.
struct Row {
    first: usize,
    last: usize,
    packets: usize,
    cost: StepCost,
    largest: String,
}

impl GossipPlan {
    fn title(&self) -> String {
        title("gossip", &self.network, &self.algorithm.to_string())
    }

    fn exact(&self, time: u128) -> Fraction {
        Fraction::new(time, self.prices.unit.into())
    }

    pub fn write(
        &self,
        print: PrintArgs,
        on_links: Option<OnLinks>,
        simulated: &str,
        out: &mut dyn Write,
    ) -> anyhow::Result<io::Result<()>> {
        let (gossip, lengths) = (&self.gossip, self.gossip.blocks.lengths());
        let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
        let heading = format!(
            "{}: {}; {} in {}",
            self.title(),
            counted(lengths.len() as u64, "PE", "PEs"),
            counted(lengths.iter().sum(), "flit", "flits"),
            counted(nonnull as u64, "block", "blocks"),
        );
        let cost = gossip.cost();
        let (startups, distance, flits) = (cost.startups, cost.distance, cost.flits);
        let (time, bound) = (
            self.exact(self.prices.time(cost)),
            gossip.bound(&self.prices),
        );
        // If no PE waits for the end of a step; unknown on complete networks.
        let free_run = free_run(gossip, &self.prices).map(|time| self.exact(time));
        let proof = proof(time, bound);
        let mut report = PlanReport::new(heading, print);
        report.field("operation", "gossip");
        report.field("algorithm", self.algorithm.to_string());
        report.field("network", &self.network);
        report.field("model", "wormhole");
        report.field("pes", gossip.arena.pes());
        report.list("messages", || self.messages());
        report.list("steps", || gossip.steps().map(|step| self.step(&step)));
        let cost = [
            ("startups", startups),
            ("distance", distance),
            ("flits", flits),
        ];
        report.field("cost", Numbers(cost));
        report.field("time", exact(time));
        report.optional("free_run_time", free_run.map(exact));
        report.on_links(on_links);
        report.field("bound", exact(bound));
        report.field("proof", proof.clone());
        report.line(
            "cost",
            format!(
                "{}, distance {}, {}",
                counted(startups, "start-up", "start-ups"),
                counted(distance, "hop", "hops"),
                counted(flits, "flit", "flits"),
            ),
        );
        let sum = format!("{startups} t_s + {distance} t_d + {flits} t_l");
        let (time, prices) = (decimal(time), self.prices_as_text());
        report.line("time", format!("{time} = {sum} with {prices}"));
        if let Some(free_run) = free_run.map(decimal) {
            let why = "where nobody waits for a step to be over";
            report.line("free run", format!("{free_run}, {why}"));
        }
        report.line("bound", format!("{}: {proof}", decimal(bound)));
        report.simulated(simulated);
        if startups > 0 {
            let least = ["distance", "packets", "flits"];
            report.rows(2, &least, || self.steps_as_text())?;
        }
        report.scene(gossip.arena.pes(), || self.scene())?;
        Ok(report.write(out))
    }

    /// Returns the given prices, or their defaults.
    fn prices_as_text(&self) -> String {
        let PriceArgs { ts, td, tl, .. } = &self.typed;
        let [ts, td, tl] = [(ts, "1"), (td, "0"), (tl, "1")]
            .map(|(given, default)| given.as_deref().unwrap_or(default));
        let unit = self.typed.profile.as_ref().map_or("", |_| " us");
        format!("t_s = {ts}{unit}, t_d = {td}{unit}, t_l = {tl}{unit}")
    }

    /// Returns the blocks as JSON, without null blocks, which are not messages.
    fn messages(&self) -> impl Iterator<Item = Numbers<3>> {
        let lengths = (0..).zip(self.gossip.blocks.lengths());
        let nonnull = lengths.filter(|(_, flits)| **flits > 0);
        nonnull.map(|(pe, flits)| Numbers([("id", pe), ("source", pe), ("flits", *flits)]))
    }

    /// Returns a step as JSON. The packets of all steps need not be in memory at once.
    fn step(&self, step: &Step) -> Value {
        let Gossip { arena, blocks, .. } = &self.gossip;
        let packet = |packet: &Packet| {
            let path = packet.path(arena).into_iter().map(|pe| pe.0);
            let pieces = blocks.pieces(packet.class, &packet.flits);
            let pieces = pieces.map(
                |it| json!({ "message": it.message.0, "offset": it.offset, "flits": it.flits }),
            );
            json!({ "path": path.collect::<Vec<_>>(), "pieces": pieces.collect::<Vec<_>>() })
        };
        json!({ "packets": step.packets.iter().map(packet).collect::<Vec<_>>() })
    }

    /// Returns a row for each kind of step, and a line for those that are left out.
    fn steps_as_text(&self) -> (Table, String) {
        let mut rows: Vec<Row> = Vec::new();
        for (step, number) in self.gossip.steps().zip(1..) {
            let (packets, cost) = (step.packets.len(), step.cost(&self.gossip.arena));
            match rows.last_mut() {
                Some(row) if (row.packets, row.cost) == (packets, cost) => row.last = number,
                _ => rows.push(Row {
                    first: number,
                    last: number,
                    packets,
                    cost,
                    largest: self.largest(&step),
                }),
            }
        }
        let mut table = table(["step", "largest packet", "packets", "distance", "flits"]);
        for row in rows.iter().take(MAX_ROWS) {
            table.add_row([
                match row.last == row.first {
                    true => row.first.to_string(),
                    false => format!("{}-{}", row.first, row.last),
                },
                row.largest.clone(),
                row.packets.to_string(),
                row.cost.distance.to_string(),
                row.cost.flits.to_string(),
            ]);
        }
        let left_out = rows.get(MAX_ROWS).zip(rows.last());
        let more = left_out.map(|(next, end)| {
            let (first, last) = (next.first, end.last);
            format!("  steps {first} to {last} are left out: --format json has all\n")
        });
        (table, more.unwrap_or_default())
    }

    /// Returns the first of the largest packets, such as `P4 to P7 with P3..P5`.
    fn largest(&self, step: &Step) -> String {
        let size = |packet: &&Packet| packet.flits.len();
        let Some(packet) = step.packets.iter().rev().max_by_key(size) else {
            return String::new();
        };
        let pieces = self.gossip.blocks.pieces(packet.class, &packet.flits);
        let blocks: Vec<PeId> = pieces.map(|piece| piece.message.pe()).collect();
        let blocks = match blocks[..] {
            [only] => format!("the block of {only}"),
            _ => counted(blocks.len() as u64, "block", "blocks"),
        };
        format!("{} to {}, of {blocks}", packet.from, packet.to)
    }

    /// Returns the scene: of each packet its set-up, and the blocks or pieces of blocks that it
    /// carries.
    fn scene(&self) -> anyhow::Result<Scene> {
        let (gossip, prices, cost) = (&self.gossip, &self.prices, self.gossip.cost());
        let pes = gossip.arena.pes();
        let at = |time| self.exact(time).to_f64();
        let flits_take = |flits: u64| u128::from(prices.flit) * u128::from(flits);
        let moment = |time: Fraction| Moment::new(time.to_f64(), decimal(time));
        let flits = gossip.blocks.lengths().iter().sum();
        let mut scene = Scene {
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
            time: moment(self.exact(prices.time(cost))),
            bound: Some(moment(gossip.bound(prices))),
            is_multi_port: gossip.arena.grid().is_some(),
            classes: (0..pes as u32).map(|pe| called(PeId(pe))).collect(),
            what: "flits of one block: a bar where they arrive",
            ..Scene::default()
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
                    let begin = ready + if scene.is_multi_port { 0 } else { *before };
                    *before += flits_take(packet.flits.len());
                    begin
                });
                if ready > now {
                    let span = [at(now), at(ready)];
                    scene.add(SETUP, [from, to], [span, [span[1]; 2]])?;
                }
                for piece in gossip.blocks.pieces(packet.class, &packet.flits) {
                    let pe = piece.message.pe();
                    let takes = flits_take(piece.flits);
                    let spans = ends.map(|begin| [at(begin), at(begin + takes)]);
                    ends = ends.map(|begin| begin + takes);
                    scene.add((Some(pe.index()), pe.to_string()), [from, to], spans)?;
                }
            }
            now += prices.time(std::iter::once(step.cost(&gossip.arena)).collect());
            let name = format!("step {}", scene.phases.len() + 1);
            scene.phases.push(Moment::new(at(now), name));
        }
        Ok(scene)
    }
}

/// Returns `optimal`, or the distance of a time from the bound.
fn proof(time: Fraction, bound: Fraction) -> String {
    match time == bound {
        true => "optimal".to_owned(),
        false => {
            let over = time.to_f64() / bound.to_f64() - 1.0;
            format!("gap {:.1}%", over * 100.0)
        }
    }
}
