//! The report of a scatter in packets, or of its mirror, a gather.

use std::io::{self, Write};

use anyhow::bail;
use flitcast_plan::packets::PacketPlan;
use flitcast_plan::packets::model::{LinkCost, Part, Run, Ticks, Timetable};
use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::input::PlanInput;
use super::report::{PlanReport, each, proof};
use crate::render::tree::parents;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::text::figures::{self, Table, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;

const MOST_ROWS: usize = 50;
/// The unit of times in packets.
pub const UNIT: &str = "in the time of a flit on a link, as all times";
/// Limit of listed packets times links that they cross: a few seconds of work.
const MOST_PACKETS: u64 = 1_000_000;
const MOST_LINKS: u64 = 1_000_000_000;

/// A scatter in packets, or its mirror, a gather, with its names.
pub struct PlanInPackets<'a> {
    pub operation: &'static str,
    pub input: &'a PlanInput,
    pub cost: LinkCost,
    /// The name of the order, or of how the sequence was found.
    pub method: &'static str,
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

impl PlanInPackets<'_> {
    /// Returns whether the operation is a gather.
    pub fn is_gather(&self) -> bool {
        self.operation == "gather"
    }

    pub fn heading(&self) -> String {
        let (operation, name, method) = (self.operation, &self.input.name, self.method);
        let by = if self.is_gather() {
            "mirror of a scatter, "
        } else {
            ""
        };
        format!("{operation} on {name} in packets: {by}{method}")
    }

    pub fn count(&self) -> u64 {
        self.plan.sequence.iter().map(|run| run.packets).sum()
    }

    /// Prints the plan in the requested format, or returns an error if the list would be too long.
    pub fn write(&self, print: PrintArgs, out: &mut dyn Write) -> anyhow::Result<io::Result<()>> {
        let listed = match print.format {
            Format::Json if !print.summary => self.listed(usize::MAX)?,
            Format::Table if !print.summary => self.listed(MOST_ROWS)?,
            _ => Vec::new(),
        };
        let mut report = PlanReport::new(self.heading(), print).below_table(14);
        self.fields(&mut report, &listed);
        self.figures(&mut report);
        let least = ["packet", "leaves P0", "whole at P0", "flits"];
        report.rows(2, &least, || self.table(&listed))?;
        report.scene(self.input.tree.len(), || self.scene())?;
        Ok(report.write(out))
    }

    /// Returns the first packets in the order in which P0 sends or receives them.
    fn listed(&self, most: usize) -> anyhow::Result<Vec<Listed>> {
        let tree = &self.input.tree;
        let runs = self.plan.sequence.iter();
        let links = runs.clone().fold(0u64, |links, run| {
            let hops: u64 = tree.depth(run.pe).into();
            links.saturating_add(run.packets.saturating_mul(hops))
        });
        let packets = self.count();
        // The first to arrive are the last that would leave: all are simulated.
        let is_cut = !self.is_gather() && most < MOST_PACKETS as usize;
        if !is_cut && (packets > MOST_PACKETS || links > MOST_LINKS) {
            bail!(
                "a list of this plan would have {packets} packets on {links} links: use --summary"
            );
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

    fn fields<'a>(&'a self, report: &mut PlanReport<'a>, listed: &'a [Listed]) {
        let exact = |time| exact(self.cost, time);
        let [unsplit, single_flits] = self.unplanned;
        let algorithm = match self.is_gather() {
            true => "mirror",
            false => self.method,
        };
        report.field("operation", self.operation);
        report.field("algorithm", algorithm);
        report.field("setup", exact(self.cost.setup));
        report.field("pes", self.input.tree.len());
        report.detail("parents", Some(parents(&self.input.tree)));
        report.detail("lengths", Some(&self.input.flits));
        let packets = each(|| listed.iter().map(|packet| self.packet(packet)));
        report.detail("packets", Some(packets));
        report.field("packet_count", self.count());
        report.field("time", exact(self.plan.time));
        report.field("bound", exact(self.plan.bound));
        report.field("proof", proof(self.plan.time, self.plan.bound));
        report.field("unsplit_time", exact(unsplit));
        report.field("single_flits_time", exact(single_flits));
    }

    fn packet(&self, packet: &Listed) -> Value {
        let exact = |time| exact(self.cost, time);
        let farthest = &packet.parts[0];
        let size: u64 = packet.parts.iter().map(|part| part.flits).sum();
        let [near, far] = [packet.at_root, farthest.at_pe].map(exact);
        let ([start, end], far_end) = match self.is_gather() {
            true => ([far, near], "start"),
            false => ([near, far], "end"),
        };
        let mut listed = json!({
            "pe": farthest.pe.0,
            "flits": size,
            "start": start,
            "end": end,
        });
        if packet.parts.len() > 1 {
            let parts = packet.parts.iter().map(
                |part| json!({ "pe": part.pe.0, "flits": part.flits, far_end: exact(part.at_pe) }),
            );
            listed["parts"] = parts.collect();
        }
        listed
    }

    fn figures(&self, report: &mut PlanReport<'_>) {
        let exact = |time| self.cost.exact(time).to_string();
        self.input.figures(report);
        let largest = self.plan.sequence.iter().map(Run::size).max();
        let largest = counted(largest.unwrap_or(0), "flit", "flits");
        let packets = format!("{}, the largest has {largest}", self.count());
        report.line("packets", packets);
        let setup = exact(self.cost.setup);
        report.line("set-up cost", format!("{setup}, {UNIT}"));
        report.line("time", exact(self.plan.time));
        let proof = proof(self.plan.time, self.plan.bound);
        let bound = exact(self.plan.bound);
        report.line("bound", format!("{bound}: {proof}"));
        let [unsplit, single_flits] = self.unplanned.map(exact);
        let each = "each message in one packet";
        report.line("unsplit", format!("{unsplit}, {each}"));
        let each = "each flit in a packet of its own";
        report.line("single flits", format!("{single_flits}, {each}"));
    }

    fn table(&self, listed: &[Listed]) -> (Table, String) {
        let exact = |time| self.cost.exact(time).to_string();
        let mut table = table(match self.is_gather() {
            false => ["packet", "PE", "flits", "leaves P0", "whole at PE"],
            true => ["packet", "PE", "flits", "leaves PE", "whole at P0"],
        });
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
                u64::to_string(&number),
                of_parts(&|part| called(part.pe)),
                of_parts(&|part| part.flits.to_string()),
                leaves,
                whole,
            ]);
        }
        let (rows, count) = (listed.len() as u64, self.count());
        (table, more(count.saturating_sub(rows), "packet", "packets"))
    }
}

/// Returns the line for rows that are not in a table.
fn more(rows: u64, one: &str, many: &str) -> String {
    match rows {
        0 => String::new(),
        _ => {
            let [one, many] = [one, many].map(|what| format!("more {what}"));
            let more = counted(rows, &one, &many);
            format!("  and {more}: --format json lists them all\n")
        }
    }
}
