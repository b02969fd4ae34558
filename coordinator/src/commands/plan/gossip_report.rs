//! The output of a gossip on a network: a table of its steps, or JSON with every packet.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::exact::Exact;
use flitcast_proto::gossip::{Cost, Gossip, Packet, Step, StepCost};
use serde::{Serialize, Serializer};

use crate::job::on_links::OnLinks;
use crate::options::prices::PriceArgs;
use crate::text::figures::{as_exact, decimal, lines, table};
use crate::text::words::counted;

/// Limit of rows of steps that a user would still read.
const MAX_ROWS: usize = 40;

/// A planned gossip with its names.
pub struct Report<'a> {
    /// The network as typed.
    pub network: &'a str,
    /// The algorithm's name, with its parameters.
    pub algorithm: String,
    /// The prices as typed.
    pub prices: &'a PriceArgs,
    /// The cost of the plan.
    pub cost: Cost,
    /// The time in lock step.
    pub time: Exact,
    /// The time if no PE waits for the end of a step; unknown on complete networks.
    pub free_run: Option<Exact>,
    /// A lower bound of the time of any gossip.
    pub bound: Exact,
    /// The time on the requested links.
    pub on_links: Option<OnLinks>,
    /// The steps.
    pub gossip: &'a Gossip,
}

#[derive(Serialize)]
struct Json<'a> {
    operation: &'static str,
    algorithm: &'a str,
    network: &'a str,
    model: &'static str,
    pes: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "messages")]
    messages: Option<&'a Gossip>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "steps")]
    steps: Option<&'a Gossip>,
    cost: JsonCost,
    #[serde(serialize_with = "as_exact")]
    time: Exact,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_run_time: Option<JsonTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_links: Option<OnLinks>,
    #[serde(serialize_with = "as_exact")]
    bound: Exact,
    proof: String,
}

#[derive(Serialize)]
struct JsonTime(#[serde(serialize_with = "as_exact")] Exact);

#[derive(Serialize)]
struct JsonCost {
    startups: u64,
    distance: u64,
    flits: u64,
}

#[derive(Serialize)]
struct JsonMessage {
    id: usize,
    source: usize,
    flits: u64,
}

#[derive(Serialize)]
struct JsonStep {
    packets: Vec<JsonPacket>,
}

#[derive(Serialize)]
struct JsonPacket {
    path: Vec<u32>,
    pieces: Vec<JsonPiece>,
}

#[derive(Serialize)]
struct JsonPiece {
    message: u64,
    offset: u64,
    flits: u64,
}

/// Omits null blocks, which are not messages.
fn messages<S: Serializer>(gossip: &Option<&Gossip>, to: S) -> Result<S::Ok, S::Error> {
    let lengths = gossip.iter().flat_map(|gossip| gossip.blocks.lengths());
    let nonnull = lengths.enumerate().filter(|(_, flits)| **flits > 0);
    to.collect_seq(nonnull.map(|(pe, flits)| JsonMessage {
        id: pe,
        source: pe,
        flits: *flits,
    }))
}

/// Writes one step after the other, so that the packets of all steps need not be in memory at once.
fn steps<S: Serializer>(gossip: &Option<&Gossip>, to: S) -> Result<S::Ok, S::Error> {
    let step = |gossip: &Gossip, step: Step| JsonStep {
        packets: step
            .packets
            .iter()
            .map(|packet| JsonPacket {
                path: gossip.arena.path(packet).iter().map(|pe| pe.0).collect(),
                pieces: gossip
                    .blocks
                    .pieces(packet.class, &packet.flits)
                    .map(|piece| JsonPiece {
                        message: piece.message.0,
                        offset: piece.offset,
                        flits: piece.flits,
                    })
                    .collect(),
            })
            .collect(),
    };
    let all = gossip.iter();
    to.collect_seq(all.flat_map(|gossip| gossip.steps().map(|one| step(gossip, one))))
}

/// Steps of a kind, in succession.
struct Row {
    first: usize,
    last: usize,
    packets: usize,
    cost: StepCost,
    largest: String,
}

impl Report<'_> {
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

    /// Prints the plan as JSON.
    pub fn write_json(&self, summary: bool, out: &mut dyn Write) -> io::Result<()> {
        let whole = (!summary).then_some(self.gossip);
        let report = Json {
            operation: "gossip",
            algorithm: &self.algorithm,
            network: self.network,
            model: "wormhole",
            pes: self.gossip.arena.pes(),
            messages: whole,
            steps: whole,
            cost: JsonCost {
                startups: self.cost.startups,
                distance: self.cost.distance,
                flits: self.cost.flits,
            },
            time: self.time,
            free_run_time: self.free_run.map(JsonTime),
            on_links: self.on_links,
            bound: self.bound,
            proof: self.proof(),
        };
        serde_json::to_writer(&mut *out, &report)?;
        out.write_all(b"\n")
    }

    /// Returns the plan as human-readable text.
    pub fn text(&self, summary: bool) -> String {
        let lengths = self.gossip.blocks.lengths();
        let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
        let mut out = format!(
            "gossip {}: {}, {}; {} in {}\n\n",
            self.network,
            counted(lengths.len() as u64, "PE", "PEs"),
            self.algorithm,
            counted(lengths.iter().sum(), "flit", "flits"),
            counted(nonnull as u64, "block", "blocks"),
        );
        if !summary && self.cost.startups > 0 {
            out.push_str(&self.steps_as_text());
            out.push('\n');
        }
        let Cost {
            startups,
            distance,
            flits,
        } = self.cost;
        out.push_str(&format!(
            "  cost         {}, distance {}, {}\n  time         {} = {startups} t_s + {distance} t_d + {flits} t_l \
             with {}\n",
            counted(startups, "start-up", "start-ups"),
            counted(distance, "hop", "hops"),
            counted(flits, "flit", "flits"),
            decimal(self.time),
            self.prices_as_text(),
        ));
        if let Some(free_run) = self.free_run {
            let free_run = decimal(free_run);
            out.push_str(&format!(
                "  free run     {free_run}, where nobody waits for a step to be over\n"
            ));
        }
        let (bound, proof) = (decimal(self.bound), self.proof());
        out.push_str(&format!("  bound        {bound}: {proof}\n"));
        out.push_str(&self.on_links.map_or(String::new(), |it| it.text()));
        out
    }

    /// Returns the given prices, or their defaults.
    pub fn prices_as_text(&self) -> String {
        let PriceArgs { ts, td, tl, .. } = self.prices;
        let [ts, td, tl] = [(ts, "1"), (td, "0"), (tl, "1")]
            .map(|(given, default)| given.as_deref().unwrap_or(default));
        let unit = self.prices.profile.as_ref().map_or("", |_| " us");
        format!("t_s = {ts}{unit}, t_d = {td}{unit}, t_l = {tl}{unit}")
    }

    fn steps_as_text(&self) -> String {
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
        let mut text = lines(table, 2);
        if let Some(next) = rows.get(MAX_ROWS) {
            let last = rows.last().map_or(next.last, |row| row.last);
            text.push_str(&format!(
                "  steps {} to {last} are left out: --format json has all\n",
                next.first
            ));
        }
        text
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
