//! The reports of plans in packets and their pictures: of a scatter or its mirror, a gather, with each packet on each
//! link; and of a gather by Transmission-Certification II, with the certificate, the order and the transmission of each
//! PE.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::bail;
use flitcast_plan::packets::PacketPlan;
use flitcast_plan::packets::certification::{Certified, Stream};
use flitcast_plan::packets::model::{LinkCost, Part, Run, Ticks, Timetable, way};
use flitcast_proto::{PeId, Tree};
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::input::PlanInput;
use super::report::{PlanReport, proof};
use super::svg::{Axis, Moment, SETUP, Scene};
use crate::render::rows::notable;
use crate::render::tree::parents;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::text::figures::{self, Table, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen;

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
    /// The flits of each message, and when they are whole at their PE, or when the PE begins to send them.
    parts: Vec<(Part, Ticks)>,
    /// When P0 begins to send the packet, or has all of it.
    at_root: Ticks,
}

/// Returns an exact time for JSON: an integer, or a fraction as a string.
pub fn exact(cost: LinkCost, time: Ticks) -> Value {
    figures::exact(cost.exact(time))
}

impl PlanInPackets<'_> {
    fn is_gather(&self) -> bool {
        self.operation == "gather"
    }

    fn heading(&self) -> String {
        let (operation, name, method) = (self.operation, &self.input.name, self.method);
        let by = if self.is_gather() {
            "mirror of a scatter, "
        } else {
            ""
        };
        format!("{operation} on {name} in packets: {by}{method}")
    }

    fn count(&self) -> u64 {
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
            Listed {
                parts: run.parts().zip(packet.whole.into_iter().map(at)).collect(),
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
        report.detail("parents", parents(&self.input.tree));
        report.detail("lengths", &self.input.flits);
        report.list("packets", || listed.iter().map(|it| self.packet(it)));
        report.field("packet_count", self.count());
        report.field("time", exact(self.plan.time));
        report.field("bound", exact(self.plan.bound));
        report.field("proof", proof(self.plan.time, self.plan.bound));
        report.field("unsplit_time", exact(unsplit));
        report.field("single_flits_time", exact(single_flits));
    }

    fn packet(&self, packet: &Listed) -> Value {
        let exact = |time| exact(self.cost, time);
        let (farthest, at_pe) = &packet.parts[0];
        let size: u64 = packet.parts.iter().map(|(part, _)| part.flits).sum();
        let [near, far] = [packet.at_root, *at_pe].map(exact);
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
            let parts = packet.parts.iter().map(|(part, at_pe)| {
                json!({ "pe": part.pe.0, "flits": part.flits, far_end: exact(*at_pe) })
            });
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
            let of_parts = |cell: &dyn Fn(&(Part, Ticks)) -> String| {
                let cells: Vec<String> = packet.parts.iter().map(cell).collect();
                cells.join(", ")
            };
            let at_pe = of_parts(&|(_, at_pe)| exact(*at_pe));
            let at_root = exact(packet.at_root);
            let [leaves, whole] = match self.is_gather() {
                false => [at_root, at_pe],
                true => [at_pe, at_root],
            };
            table.add_row([
                u64::to_string(&number),
                of_parts(&|(part, _)| called(part.pe)),
                of_parts(&|(part, _)| part.flits.to_string()),
                leaves,
                whole,
            ]);
        }
        let more = match self.count().saturating_sub(listed.len() as u64) {
            0 => String::new(),
            rows => {
                let more = counted(rows, "more packet", "more packets");
                format!("  and {more}: --format json lists them all\n")
            }
        };
        (table, more)
    }

    fn scene(&self) -> anyhow::Result<Scene> {
        let (tree, cost, whole) = (&self.input.tree, self.cost, self.plan.time);
        let nonnull = tree.ids().filter(|pe| self.input.flits[pe.index()] > 0);
        let places: BTreeMap<PeId, usize> = nonnull.zip(0..).collect();
        let mut timetable = Timetable::new(tree, cost);
        let mut scene = Scene {
            title: self.heading(),
            summary: format!(
                "{}, {}, {}, set-up {}",
                counted(tree.len() as u64, "PE", "PEs"),
                counted(places.len() as u64, "message", "messages"),
                counted(self.count(), "packet", "packets"),
                cost.exact(cost.setup),
            ),
            classes: places.keys().map(|pe| format!("M{}", pe.0)).collect(),
            what: "packet of message Mi: a bar where it arrives",
            ..in_packets(self.input, cost, whole, Some(self.plan.bound))
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
                        scene.add(SETUP, ends, [[begin, ready], [ready; 2]])?;
                    }
                    let is_on = |part: &Part| tree.depth(part.pe) >= tree.depth(link[1]);
                    let on_link = run.parts().filter(is_on);
                    let names: Vec<String> = on_link.map(|it| format!("M{}", it.pe.0)).collect();
                    let band = (Some(places[&run.pe]), names.join("+"));
                    scene.add(band, ends, [[ready, end]; 2])?;
                }
            }
        }
        Ok(scene)
    }
}

/// Returns the scene of a plan in packets, without title, summary and bands.
pub fn in_packets(input: &PlanInput, cost: LinkCost, time: Ticks, bound: Option<Ticks>) -> Scene {
    let moment = |time| Moment::new(cost.exact(time).to_f64(), cost.exact(time));
    Scene {
        pes: input.tree.len(),
        tree: Some(Tree::clone(&input.tree)),
        axis: Axis::Time,
        time: moment(time),
        bound: bound.map(moment),
        ..Scene::default()
    }
}

/// A gather by certification with its names.
pub struct CertifiedPlan<'a> {
    pub input: &'a PlanInput,
    pub cost: LinkCost,
    pub certified: Certified,
    /// A lower bound for any gather, even if P0 knew all lengths; `None` if it takes too long to
    /// compute.
    pub bound: Option<Ticks>,
}

impl CertifiedPlan<'_> {
    fn heading(&self) -> String {
        format!("gather on {} in packets: certification", self.input.name)
    }

    pub fn write(&self, print: PrintArgs, out: &mut dyn Write) -> anyhow::Result<io::Result<()>> {
        let mut report = PlanReport::new(self.heading(), print).below_table(14);
        self.fields(&mut report);
        self.figures(&mut report);
        let least = ["largest", "packets", "lag", "after", "flits", "starts"];
        report.rows(1, &least, || self.table())?;
        report.scene(self.input.tree.len(), || self.scene())?;
        Ok(report.write(out))
    }

    fn fields<'a>(&'a self, report: &mut PlanReport<'a>) {
        let exact = |time| exact(self.cost, time);
        let certified = &self.certified;
        report.field("operation", "gather");
        report.field("algorithm", "certification");
        report.field("setup", exact(self.cost.setup));
        report.field("pes", self.input.tree.len());
        report.field("cap", certified.cap);
        report.field("control_time", exact(certified.control));
        report.field("certified", exact(certified.certified));
        report.field("time", exact(certified.time));
        report.field("bound", self.bound.map(exact));
        report.field("upper_bound", exact(self.upper_bound()));
        report.detail("parents", parents(&self.input.tree));
        report.detail("lengths", &self.input.flits);
        report.list("certificates", || {
            self.each_pe().map(|pe| self.certificate(pe))
        });
        let order = move |one: &Stream| json!({ "pe": one.pe.0, "after": exact(one.after) });
        report.list("orders", move || certified.streams.iter().map(order));
        let stream = move |one: &Stream| {
            let (start, end) = (exact(one.start), exact(one.end));
            json!({ "pe": one.pe.0, "start": start, "end": end })
        };
        report.list("streams", move || certified.streams.iter().map(stream));
    }

    fn upper_bound(&self) -> Ticks {
        let PlanInput { tree, flits, .. } = self.input;
        self.certified.upper_bound(tree, flits, self.cost)
    }

    fn certificate(&self, pe: PeId) -> Value {
        let certificate = &self.certified.certificates[pe.index()];
        json!({
            "pe": pe.0,
            "lag": exact(self.cost, certificate.lag),
            "packets": certificate.packets,
            "flits": certificate.flits,
            "largest": certificate.largest,
        })
    }

    /// Returns all PEs that certify.
    fn each_pe(&self) -> impl Iterator<Item = PeId> {
        self.input.tree.pes().skip(1)
    }

    fn figures(&self, report: &mut PlanReport<'_>) {
        let exact = |time| self.cost.exact(time).to_string();
        let certified = &self.certified;
        self.input.figures(report);
        let packets = certified.certificates[PeId::ROOT.index()].packets;
        let cap = counted(certified.cap, "flit", "flits");
        report.line("packets", format!("{packets}, of at most {cap}"));
        let setup = exact(self.cost.setup);
        report.line("set-up cost", format!("{setup}, {UNIT}"));
        let control = exact(certified.control);
        let goes = match certified.control {
            0 => "between two packets",
            _ => "a set-up and a flit",
        };
        let each = "for each token, certificate and order";
        report.line("control", format!("{control} {each}: {goes}"));
        let time = exact(certified.certified);
        let then = "then P0 has the last certificate";
        report.line("certified", format!("{time}: {then}"));
        report.line("time", exact(certified.time));
        if let Some(bound) = self.bound.map(exact) {
            let why = "no gather takes less, even if P0 knew all lengths";
            report.line("mirror bound", format!("{bound}: {why}"));
        }
        let formula = "2B + H (d k + BETA + b) + M, in place of paper 003's Lemma 22";
        let upper = exact(self.upper_bound());
        report.line("upper bound", format!("{upper}, {formula}"));
    }

    /// Returns a row for each PE: its certificate, its order, and the time at which its stream crosses
    /// the link to its parent.
    fn table(&self) -> (Table, String) {
        let exact = |time| self.cost.exact(time).to_string();
        let of_pe = |stream: &Stream| (stream.pe, *stream);
        let streams: BTreeMap<PeId, Stream> = self.certified.streams.iter().map(of_pe).collect();
        let mut table = table([
            "PE", "lag", "packets", "flits", "largest", "after", "starts", "ends",
        ]);
        let pes: Vec<PeId> = self.each_pe().collect();
        let certificate = |pe: PeId| &self.certified.certificates[pe.index()];
        let (shown, more) = notable(&pes, screen::detail(), |pe| {
            let end = streams.get(pe).map(|stream| stream.end);
            (end, certificate(*pe).flits)
        });
        for &pe in shown {
            let stream = streams
                .get(&pe)
                .map(|stream| [stream.after, stream.start, stream.end]);
            let times = stream.map(|times| times.map(exact));
            let [after, starts, ends] = times.unwrap_or_else(|| ["-"; 3].map(str::to_owned));
            let certificate = certificate(pe);
            table.add_row([
                called(pe),
                exact(certificate.lag),
                certificate.packets.to_string(),
                certificate.flits.to_string(),
                certificate.largest.to_string(),
                after,
                starts,
                ends,
            ]);
        }
        (table, more)
    }

    fn scene(&self) -> anyhow::Result<Scene> {
        let tree = &self.input.tree;
        let at = |time| self.cost.exact(time).to_f64();
        let mut scene = Scene {
            title: self.heading(),
            summary: format!(
                "{}, packets of at most {}, set-up {}",
                counted(tree.len() as u64, "PE", "PEs"),
                counted(self.certified.cap, "flit", "flits"),
                self.cost.exact(self.cost.setup),
            ),
            phases: vec![
                Moment::new(at(self.certified.certified), "certification"),
                Moment::new(at(self.certified.time), "transmission"),
            ],
            classes: tree.ids().map(called).collect(),
            what: "packets from a PE and those below it: a bar where they arrive",
            ..in_packets(self.input, self.cost, self.certified.time, self.bound)
        };
        for Stream { pe, start, end, .. } in &self.certified.streams {
            if let Some(to) = tree.parent(*pe) {
                let stream = (Some(pe.index()), pe.to_string());
                scene.add(stream, [*pe, to], [[*start, *end].map(at); 2])?;
            }
        }
        Ok(scene)
    }
}
