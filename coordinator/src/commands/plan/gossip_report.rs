//! The report of a gossip on a network: a table of its steps, or JSON with every packet.

use std::io::{self, Write};

use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{Cost, Gossip, Packet, Prices, Step, StepCost};
use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::report::{Numbers, PlanReport, each};
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::text::figures::{Table, decimal, exact, table};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::title::title;

/// Limit of rows of steps that a user would still read.
const MAX_ROWS: usize = 40;

/// A planned gossip with its names.
pub struct GossipPlan<'a> {
    /// The network as typed.
    pub network: &'a str,
    /// The algorithm's name, with its parameters.
    pub algorithm: String,
    /// The prices as typed.
    pub typed: &'a PriceArgs,
    pub prices: &'a Prices,
    pub cost: Cost,
    /// The time in lock step.
    pub time: Fraction,
    /// The time if no PE waits for the end of a step; unknown on complete networks.
    pub free_run: Option<Fraction>,
    pub bound: Fraction,
    pub gossip: &'a Gossip,
}

/// Steps of a kind, in succession.
struct Row {
    first: usize,
    last: usize,
    packets: usize,
    cost: StepCost,
    largest: String,
}

impl GossipPlan<'_> {
    pub fn title(&self) -> String {
        title("gossip", self.network, &self.algorithm)
    }

    /// Prints the plan in the requested format.
    pub fn write(
        &self,
        print: PrintArgs,
        on_links: Option<OnLinks>,
        simulated: &str,
        out: &mut dyn Write,
    ) -> anyhow::Result<io::Result<()>> {
        let (gossip, lengths) = (self.gossip, self.gossip.blocks.lengths());
        let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
        let heading = format!(
            "{}: {}; {} in {}",
            self.title(),
            counted(lengths.len() as u64, "PE", "PEs"),
            counted(lengths.iter().sum(), "flit", "flits"),
            counted(nonnull as u64, "block", "blocks"),
        );
        let Cost {
            startups,
            distance,
            flits,
        } = self.cost;
        let mut report = PlanReport::new(heading, print);
        report.field("operation", "gossip");
        report.field("algorithm", &self.algorithm);
        report.field("network", self.network);
        report.field("model", "wormhole");
        report.field("pes", gossip.arena.pes());
        report.detail("messages", Some(each(|| self.messages())));
        let steps = each(|| gossip.steps().map(|step| self.step(&step)));
        report.detail("steps", Some(steps));
        let cost = [
            ("startups", startups),
            ("distance", distance),
            ("flits", flits),
        ];
        report.field("cost", Numbers(cost));
        report.field("time", exact(self.time));
        report.optional("free_run_time", self.free_run.map(exact));
        report.on_links(on_links);
        report.field("bound", exact(self.bound));
        report.field("proof", self.proof());
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
        let (time, prices) = (decimal(self.time), self.prices_as_text());
        report.line("time", format!("{time} = {sum} with {prices}"));
        if let Some(free_run) = self.free_run {
            let free_run = decimal(free_run);
            let why = "where nobody waits for a step to be over";
            report.line("free run", format!("{free_run}, {why}"));
        }
        let bound = decimal(self.bound);
        report.line("bound", format!("{bound}: {}", self.proof()));
        report.simulated(simulated);
        if startups > 0 {
            let least = ["distance", "packets", "flits"];
            report.rows(2, &least, || self.steps_as_text())?;
        }
        report.scene(gossip.arena.pes(), || self.scene())?;
        Ok(report.write(out))
    }

    /// Returns the given prices, or their defaults.
    pub fn prices_as_text(&self) -> String {
        let PriceArgs { ts, td, tl, .. } = self.typed;
        let [ts, td, tl] = [(ts, "1"), (td, "0"), (tl, "1")]
            .map(|(given, default)| given.as_deref().unwrap_or(default));
        let unit = self.typed.profile.as_ref().map_or("", |_| " us");
        format!("t_s = {ts}{unit}, t_d = {td}{unit}, t_l = {tl}{unit}")
    }

    /// Returns `optimal`, or the distance from the bound.
    fn proof(&self) -> String {
        match self.time == self.bound {
            true => "optimal".to_owned(),
            false => {
                let over = self.time.to_f64() / self.bound.to_f64() - 1.0;
                format!("gap {:.1}%", over * 100.0)
            }
        }
    }

    /// Returns the blocks as JSON, without null blocks, which are not messages.
    fn messages(&self) -> impl Iterator<Item = Numbers<3>> {
        let lengths = (0..).zip(self.gossip.blocks.lengths());
        let nonnull = lengths.filter(|(_, flits)| **flits > 0);
        nonnull.map(|(pe, flits)| Numbers([("id", pe), ("source", pe), ("flits", *flits)]))
    }

    /// Returns a step as JSON. The packets of all steps need not be in memory at once.
    fn step(&self, step: &Step) -> Value {
        let Gossip { arena, blocks, .. } = self.gossip;
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
}
