//! The report of a gather by Transmission-Certification II: each PE's certificate, order and
//! transmission; and its picture: each PE's stream to its parent.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flitcast_plan::packets::certification::{Certified, Stream};
use flitcast_plan::packets::model::{LinkCost, Ticks};
use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::input::PlanInput;
use super::packets_report::{UNIT, exact, in_packets};
use super::report::{PlanReport, each};
use super::svg::{Moment, Scene};
use crate::render::rows::notable;
use crate::render::tree::parents;
use flitcast_cluster::text::figures::{Table, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen;

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

    /// Prints the gather in the requested format.
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
        report.detail("parents", Some(parents(&self.input.tree)));
        report.detail("lengths", Some(&self.input.flits));
        let certificate = |pe| self.certificate(pe);
        let certificates = each(move || self.each_pe().map(certificate));
        report.detail("certificates", Some(certificates));
        let order = move |one: &Stream| json!({ "pe": one.pe.0, "after": exact(one.after) });
        let orders = each(move || certified.streams.iter().map(order));
        report.detail("orders", Some(orders));
        let stream = move |one: &Stream| {
            let (start, end) = (exact(one.start), exact(one.end));
            json!({ "pe": one.pe.0, "start": start, "end": end })
        };
        let streams = each(move || certified.streams.iter().map(stream));
        report.detail("streams", Some(streams));
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
