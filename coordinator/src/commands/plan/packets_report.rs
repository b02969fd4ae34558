//! Prints a scatter in packets, or its mirror, a gather.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::packets::PacketPlan;
use flitcast_proto::packets::model::{LinkCost, Part, Run, Ticks, Timetable};
use serde::Serialize;
use serde_json::{Value, json};

use super::args::PlanRoundArgs;
use super::command::{AskedPlan, PlanError};
use crate::options::format::Format;
use crate::text::figures::{self, lines, table};
use crate::text::words::counted;

/// Limit of table rows.
pub const MOST_ROWS: usize = 50;
/// Limit of listed packets times links that they cross: a few seconds of work.
const MOST_PACKETS: u64 = 1_000_000;
const MOST_LINKS: u64 = 1_000_000_000;

/// A scatter in packets, or its mirror, a gather, with its names.
pub struct PacketReport<'a> {
    /// The name of the operation.
    pub operation: &'static str,
    /// The tree and the lengths.
    pub asked: &'a AskedPlan,
    /// The cost of links.
    pub cost: LinkCost,
    /// The name of the order, or of how the sequence was found.
    pub method: &'static str,
    /// The scatter.
    pub plan: PacketPlan,
    /// The time with one packet for each message, and with one for each flit.
    pub unplanned: [Ticks; 2],
}

/// A packet of one message or several, farthest PE first.
struct Listed {
    parts: Vec<ListedPart>,
    /// When P0 begins to send the packet, or has all of it.
    at_root: Ticks,
}

/// The flits of one message in a packet.
struct ListedPart {
    pe: PeId,
    flits: u64,
    /// When they are whole at their PE, or when the PE begins to send them.
    at_pe: Ticks,
}

/// Returns an exact time for JSON: an integer, or a fraction as a string.
pub fn exact(cost: LinkCost, time: Ticks) -> Value {
    figures::exact(cost.exact(time))
}

/// Returns the parents of all PEs, `None` for P0.
pub fn parents(asked: &AskedPlan) -> Vec<Option<u32>> {
    let parent = |pe| asked.tree.parent(pe).map(|PeId(parent)| parent);
    asked.tree.ids().map(parent).collect()
}

/// Returns `optimal`, or the distance from the bound.
fn proof(time: Ticks, bound: Ticks) -> String {
    match time - bound {
        0 => "optimal".to_owned(),
        over => format!("gap {:.1}%", over as f64 * 100.0 / bound as f64),
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    operation: &'static str,
    algorithm: &'static str,
    setup: Value,
    pes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    parents: Option<Vec<Option<u32>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<Vec<Value>>,
    packet_count: u64,
    time: Value,
    bound: Value,
    proof: String,
    unsplit_time: Value,
    single_flits_time: Value,
}

impl PacketReport<'_> {
    /// Returns whether the operation is a gather.
    pub fn is_gather(&self) -> bool {
        self.operation == "gather"
    }

    /// Returns how the sequence was found, as human-readable text.
    pub fn by(&self) -> String {
        match self.is_gather() {
            true => format!("mirror of a scatter, {}", self.method),
            false => self.method.to_owned(),
        }
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.plan.sequence.iter().map(|run| run.packets).sum()
    }

    /// Prints the plan in the requested format, or returns an error if the list would be too long.
    pub fn write(
        &self,
        args: &PlanRoundArgs,
        out: &mut dyn Write,
    ) -> Result<io::Result<()>, Vec<PlanError>> {
        if args.format == Format::Svg {
            let scene = self.scene().map_err(|fault| vec![fault])?;
            return Ok(out.write_all(scene.svg().as_bytes()));
        }
        let is_json = args.format == Format::Json;
        let most = if is_json { usize::MAX } else { MOST_ROWS };
        let listed = match args.summary {
            true => None,
            false => Some(self.listed(most).map_err(|fault| vec![fault])?),
        };
        Ok(match is_json {
            true => self.write_json(listed, out),
            false => out.write_all(self.text(listed).as_bytes()),
        })
    }

    /// Returns the first packets in the order in which P0 sends or receives them.
    fn listed(&self, most: usize) -> Result<Vec<Listed>, PlanError> {
        let tree = &self.asked.tree;
        let runs = self.plan.sequence.iter();
        let links = runs.clone().fold(0u64, |links, run| {
            let hops: u64 = tree.depth(run.pe).into();
            links.saturating_add(run.packets.saturating_mul(hops))
        });
        let packets = self.count();
        // The first to arrive are the last that would leave: all are simulated.
        let is_cut = !self.is_gather() && most < MOST_PACKETS as usize;
        if !is_cut && (packets > MOST_PACKETS || links > MOST_LINKS) {
            return Err(PlanError::TooManyPackets { packets, links });
        }
        let mut timetable = Timetable::new(tree, self.cost);
        let at = |time| match self.is_gather() {
            true => self.plan.time - time,
            false => time,
        };
        let single = runs.flat_map(|run| (0..run.packets).map(move |_| run));
        let sent = single.map(|run| {
            let packet = timetable.dispatch(run);
            let parts = run.parts().zip(packet.whole);
            let parts = parts.map(|(Part { pe, flits }, whole)| ListedPart {
                pe,
                flits,
                at_pe: at(whole),
            });
            Listed {
                parts: parts.collect(),
                at_root: at(packet.leaves),
            }
        });
        if !self.is_gather() {
            return Ok(sent.take(most).collect());
        }
        let mut listed: Vec<Listed> = sent.collect();
        listed.reverse();
        listed.truncate(most);
        Ok(listed)
    }

    fn write_json(&self, listed: Option<Vec<Listed>>, out: &mut dyn Write) -> io::Result<()> {
        let exact = |time| exact(self.cost, time);
        let far_end = if self.is_gather() { "start" } else { "end" };
        let packet = |packet: Listed| {
            let farthest = &packet.parts[0];
            let size: u64 = packet.parts.iter().map(|part| part.flits).sum();
            let [near, far] = [packet.at_root, farthest.at_pe].map(exact);
            let [start, end] = if self.is_gather() {
                [far, near]
            } else {
                [near, far]
            };
            let mut listed = json!({
                "pe": farthest.pe.0,
                "flits": size,
                "start": start,
                "end": end,
            });
            if packet.parts.len() > 1 {
                let parts = packet.parts.iter().map(|part| {
                    json!({ "pe": part.pe.0, "flits": part.flits, far_end: exact(part.at_pe) })
                });
                listed["parts"] = parts.collect();
            }
            listed
        };
        let [unsplit, single_flits] = self.unplanned;
        let report = Whole {
            operation: self.operation,
            algorithm: if self.is_gather() {
                "mirror"
            } else {
                self.method
            },
            setup: exact(self.cost.setup),
            pes: self.asked.tree.len(),
            parents: listed.is_some().then(|| parents(self.asked)),
            lengths: listed.is_some().then_some(&self.asked.flits),
            packets: listed.map(|listed| listed.into_iter().map(packet).collect()),
            packet_count: self.count(),
            time: exact(self.plan.time),
            bound: exact(self.plan.bound),
            proof: proof(self.plan.time, self.plan.bound),
            unsplit_time: exact(unsplit),
            single_flits_time: exact(single_flits),
        };
        serde_json::to_writer(&mut *out, &report)?;
        out.write_all(b"\n")
    }

    fn text(&self, listed: Option<Vec<Listed>>) -> String {
        let exact = |time| self.cost.exact(time).to_string();
        let count = self.count();
        let mut out = String::new();
        if let Some(listed) = listed {
            let header = match self.is_gather() {
                false => ["packet", "PE", "flits", "leaves P0", "whole at PE"],
                true => ["packet", "PE", "flits", "leaves PE", "whole at P0"],
            };
            let mut table = table(header);
            let rows = listed.len() as u64;
            for (number, packet) in (1..).zip(listed) {
                let of_parts = |cell: &dyn Fn(&ListedPart) -> String| {
                    let cells: Vec<String> = packet.parts.iter().map(cell).collect();
                    cells.join(", ")
                };
                let at_pe = of_parts(&|part| exact(part.at_pe));
                let at_root = exact(packet.at_root);
                let [leaves, whole] = match self.is_gather() {
                    false => [at_root, at_pe],
                    true => [at_pe, at_root],
                };
                table.add_row([
                    number.to_string(),
                    of_parts(&|part| part.pe.to_string()),
                    of_parts(&|part| part.flits.to_string()),
                    leaves,
                    whole,
                ]);
            }
            out.push_str(&lines(table, 2));
            if rows < count {
                let more = counted(count - rows, "more packet", "more packets");
                out.push_str(&format!("  and {more}: --format json lists them all\n"));
            }
            out.push('\n');
        }
        let by = self.by();
        let AskedPlan { name, tree, flits } = self.asked;
        let largest = self.plan.sequence.iter().map(Run::size).max();
        let depth = tree.pes().map(|pe| tree.depth(pe)).max();
        let [unsplit, single_flits] = self.unplanned;
        out.push_str(&format!(
            "{} on {name} in packets: {by}\n  \
             PEs           {}, depth {}\n  \
             messages      {} nonnull, {} flits together\n  \
             packets       {count}, the largest has {}\n  \
             set-up cost   {}, in the time of a flit on a link, as all times\n  \
             time          {}\n  \
             bound         {}: {}\n  \
             unsplit       {}, each message in one packet\n  \
             single flits  {}, each flit in a packet of its own\n",
            self.operation,
            tree.len(),
            depth.unwrap_or(0),
            flits.iter().filter(|&&flits| flits > 0).count(),
            flits.iter().sum::<u64>(),
            counted(largest.unwrap_or(0), "flit", "flits"),
            exact(self.cost.setup),
            exact(self.plan.time),
            exact(self.plan.bound),
            proof(self.plan.time, self.plan.bound),
            exact(unsplit),
            exact(single_flits),
        ));
        out
    }
}
