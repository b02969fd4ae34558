//! Prints a gather by Transmission-Certification II: each PE's certificate, order and transmission.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::packets::certification::{Certified, Stream};
use flitcast_proto::packets::model::{LinkCost, Ticks};
use serde_json::{Value, json};

use super::args::PlanRoundArgs;
use super::command::{AskedPlan, PlanError};
use super::packets_report::{MOST_ROWS, exact, parents};
use crate::options::format::Format;
use crate::text::figures::{lines, table};
use crate::text::words::counted;

/// A gather by certification with its names.
pub struct CertifiedReport<'a> {
    /// The tree and the lengths.
    pub asked: &'a AskedPlan,
    /// The cost of links.
    pub cost: LinkCost,
    /// The gather.
    pub certified: Certified,
    /// A lower bound for any gather, even if P0 knew all lengths; `None` if it takes too long to
    /// compute.
    pub bound: Option<Ticks>,
}

impl CertifiedReport<'_> {
    /// Prints the gather in the requested format.
    ///
    /// # Errors
    ///
    /// Returns an error if it is too large to draw.
    pub fn write(
        &self,
        args: &PlanRoundArgs,
        out: &mut dyn Write,
    ) -> Result<io::Result<()>, Vec<PlanError>> {
        Ok(match args.format {
            Format::Json => writeln!(out, "{}", self.json(args.summary)),
            Format::Svg => {
                let scene = self.scene().map_err(|fault| vec![fault])?;
                out.write_all(scene.svg().as_bytes())
            }
            _ => out.write_all(self.text(args.summary).as_bytes()),
        })
    }

    fn json(&self, summary: bool) -> Value {
        let exact = |time| exact(self.cost, time);
        let mut report = json!({
            "operation": "gather",
            "algorithm": "certification",
            "setup": exact(self.cost.setup),
            "pes": self.asked.tree.len(),
            "cap": self.certified.cap,
            "control_time": exact(self.certified.control),
            "certified": exact(self.certified.certified),
            "time": exact(self.certified.time),
            "bound": self.bound.map(exact),
        });
        if summary {
            return report;
        }
        let certificate = |pe: PeId| {
            let certificate = &self.certified.certificates[pe.index()];
            json!({
                "pe": pe.0,
                "lag": exact(certificate.lag),
                "packets": certificate.packets,
                "flits": certificate.flits,
                "largest": certificate.largest,
            })
        };
        let order = |one: &Stream| json!({ "pe": one.pe.0, "after": exact(one.after) });
        let stream = |one: &Stream| {
            let (start, end) = (exact(one.start), exact(one.end));
            json!({ "pe": one.pe.0, "start": start, "end": end })
        };
        let streams = self.certified.streams.iter();
        report["parents"] = json!(parents(self.asked));
        report["lengths"] = json!(self.asked.flits);
        report["certificates"] = self.each_pe().map(certificate).collect();
        report["orders"] = streams.clone().map(order).collect();
        report["streams"] = streams.map(stream).collect();
        report
    }

    /// Returns all PEs that certify.
    fn each_pe(&self) -> impl Iterator<Item = PeId> {
        self.asked.tree.pes().skip(1)
    }

    fn text(&self, summary: bool) -> String {
        let exact = |time| self.cost.exact(time).to_string();
        let AskedPlan { name, tree, flits } = self.asked;
        let mut out = String::new();
        if !summary {
            out.push_str(&lines(self.table(), 1));
            let rows = tree.count() - 1;
            if rows > MOST_ROWS {
                let more = counted((rows - MOST_ROWS) as u64, "more PE", "more PEs");
                out.push_str(&format!("  and {more}: --format json lists them all\n"));
            }
            out.push('\n');
        }
        let depth = tree.pes().map(|pe| tree.depth(pe)).max();
        out.push_str(&format!(
            "gather on {name} in packets: certification\n  \
             PEs           {}, depth {}\n  \
             messages      {} nonnull, {} flits together\n  \
             packets       {}, of at most {}\n  \
             set-up cost   {}, in the time of a flit on a link, as all times\n  \
             control       {} for each token, certificate and order: {}\n  \
             certified     {}: then P0 has the last certificate\n  \
             time          {}\n",
            tree.len(),
            depth.unwrap_or(0),
            flits.iter().filter(|&&flits| flits > 0).count(),
            flits.iter().sum::<u64>(),
            self.certified.certificates[PeId::ROOT.index()].packets,
            counted(self.certified.cap, "flit", "flits"),
            exact(self.cost.setup),
            exact(self.certified.control),
            match self.certified.control {
                0 => "between two packets",
                _ => "a set-up and a flit",
            },
            exact(self.certified.certified),
            exact(self.certified.time),
        ));
        if let Some(bound) = self.bound {
            out.push_str(&format!(
                "  mirror bound  {}: no gather takes less, even if P0 knew all lengths\n",
                exact(bound),
            ));
        }
        out
    }

    /// Returns a row for each PE: its certificate, its order, and the time at which its stream crosses
    /// the link to its parent.
    fn table(&self) -> comfy_table::Table {
        let exact = |time| self.cost.exact(time).to_string();
        let of_pe = |stream: &Stream| (stream.pe, *stream);
        let streams: BTreeMap<PeId, Stream> = self.certified.streams.iter().map(of_pe).collect();
        let mut table = table([
            "PE", "lag", "packets", "flits", "largest", "after", "starts", "ends",
        ]);
        for pe in self.each_pe().take(MOST_ROWS) {
            let certificate = &self.certified.certificates[pe.index()];
            let stream = streams
                .get(&pe)
                .map(|stream| [stream.after, stream.start, stream.end]);
            let times = stream.map(|times| times.map(exact));
            let [after, starts, ends] = times.unwrap_or_else(|| ["-"; 3].map(str::to_owned));
            table.add_row([
                pe.to_string(),
                exact(certificate.lag),
                certificate.packets.to_string(),
                certificate.flits.to_string(),
                certificate.largest.to_string(),
                after,
                starts,
                ends,
            ]);
        }
        table
    }
}
