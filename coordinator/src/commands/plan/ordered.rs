//! `flitcast plan scatter --order search`: the best order of messages found for unequal links, and the
//! bound.

use std::io::{self, Write};

use flitcast_proto::schedule::order_search::{self, Hop, MOST_HOPS, Ordered};
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use super::args::PlanScatterArgs;
use super::command::{PlanError, topology_and_lengths};
use crate::options::flits::deal_flits;
use crate::options::format::Format;
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::options::tree::SpanningArg;
use crate::site::topology::Topology;
use crate::text::units::Nanos;
use crate::text::words::{counted, names};

/// Payload of a flit on links with rates: the default of a run.
const FLIT_BYTES: u64 = 64 << 10;

/// Prints the plan, or returns all errors in the command line.
pub fn scatter(
    args: &PlanScatterArgs,
    nodes: u64,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let mut unfit = Vec::new();
    if args.plan.simulate {
        unfit.push("search does not go with --simulate: leave it out".to_owned());
    }
    if args.plan.links.link.is_some() {
        unfit.push("search has the links of the tree file: leave out --link".to_owned());
    }
    if args.plan.format == Format::Svg {
        unfit.push("what search finds is printed as a table or json, not drawn".to_owned());
    }
    let mut faults: Vec<PlanError> = unfit.into_iter().map(PlanError::Order).collect();
    let (topology, lengths) = match topology_and_lengths(&args.plan, SpanningArg::Bfs) {
        Ok(asked) => asked,
        Err(more) => return Err(faults.into_iter().chain(more).collect()),
    };
    let flits = deal_flits(&lengths, &topology.tree).map_err(PlanError::from);
    let hops = hops(&topology).map_err(PlanError::Order);
    let (flits, (hops, unit)) = match (flits, hops) {
        (Ok(flits), Ok(hops)) if faults.is_empty() => (flits, hops),
        (flits, hops) => {
            faults.extend(flits.err());
            faults.extend(hops.err());
            return Err(faults);
        }
    };
    let tree = &topology.tree;
    let Some(found) = order_search::search(tree, &flits, &hops, nodes) else {
        return Err(vec![PlanError::Order(format!(
            "search is for messages that cross {MOST_HOPS} links together at most, in less than \
             some decades: take fewer PEs, or fewer flits"
        ))]);
    };
    let report = Report {
        name: &topology.name,
        tree,
        flits: &flits,
        found,
        unit,
    };
    Ok(match args.plan.format {
        Format::Json => report.write_json(args.plan.summary, out),
        _ => out.write_all(report.text(args.plan.summary).as_bytes()),
    })
}

/// The unit of a tick.
#[derive(Clone, Copy)]
enum Unit {
    /// A step of the papers' model, if no file describes links.
    Step,
    Nanosecond,
}

/// Returns the links down to each PE, by index, or an error that names those without a rate.
fn hops(topology: &Topology) -> Result<(Vec<Hop>, Unit), String> {
    let everywhere = topology.settings.link.map(EdgeSpec::alike);
    let tree = &topology.tree;
    let down = |pe: PeId| -> LinkSpec {
        let link = topology.links.get(&pe).copied().or(everywhere);
        link.unwrap_or_default().down
    };
    let below = || tree.pes().filter(|&pe| tree.parent(pe).is_some());
    let step = Hop {
        flit: 1,
        latency: 0,
    };
    if below().all(|pe| down(pe) == LinkSpec::default()) {
        return Ok((vec![step; tree.len()], Unit::Step));
    }
    let unknown: Vec<PeId> = below().filter(|&pe| down(pe).rate.is_none()).collect();
    if !unknown.is_empty() {
        return Err(format!(
            "search compares links by their rates, and those to {} have none: give each a rate in \
             the file, or none of them",
            names(&unknown)
        ));
    }
    let hop = |pe: PeId| {
        let link = down(pe);
        let bits = u128::from(FLIT_BYTES) * 8 * 1_000_000_000;
        let nanos = |rate: u64| u64::try_from(bits.div_ceil(rate.into())).unwrap_or(u64::MAX);
        Hop {
            flit: link.rate.map_or(1, |rate| nanos(rate.0)),
            latency: link.latency.map_or(0, |latency| latency.0),
        }
    };
    let hops = tree.pes().map(|pe| match tree.parent(pe) {
        Some(_) => hop(pe),
        None => step,
    });
    Ok((hops.collect(), Unit::Nanosecond))
}

struct Report<'a> {
    name: &'a str,
    tree: &'a Tree,
    flits: &'a [u64],
    found: Ordered,
    unit: Unit,
}

#[derive(Serialize)]
struct Json<'a> {
    operation: &'static str,
    algorithm: &'static str,
    pes: usize,
    /// `steps` or `ns`, of all times.
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    flit_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<u32>>,
    time: u64,
    farthest_first_time: u64,
    bound: u64,
    proof: String,
}

impl Report<'_> {
    /// Returns `optimal`, or the distance from the bound.
    fn proof(&self) -> String {
        match self.found.time - self.found.bound {
            0 => "optimal".to_owned(),
            over => format!("gap {:.1}%", over as f64 * 100.0 / self.found.bound as f64),
        }
    }

    fn write_json(&self, summary: bool, out: &mut dyn Write) -> io::Result<()> {
        let found = &self.found;
        let (unit, flit_bytes) = match self.unit {
            Unit::Step => ("steps", None),
            Unit::Nanosecond => ("ns", Some(FLIT_BYTES)),
        };
        let json = Json {
            operation: "scatter",
            algorithm: "search",
            pes: self.tree.len(),
            unit,
            flit_bytes,
            lengths: (!summary).then_some(self.flits),
            order: (!summary).then(|| found.order.iter().map(|pe| pe.0).collect()),
            time: found.time,
            farthest_first_time: found.farthest_first,
            bound: found.bound,
            proof: self.proof(),
        };
        serde_json::to_writer(&mut *out, &json)?;
        out.write_all(b"\n")
    }

    fn text(&self, summary: bool) -> String {
        let found = &self.found;
        let time = |ticks: u64| match self.unit {
            Unit::Step => counted(ticks, "step", "steps"),
            Unit::Nanosecond => Nanos(ticks).to_string(),
        };
        let of = match self.unit {
            Unit::Step => "",
            Unit::Nanosecond => " of 64 KiB",
        };
        let order = match summary {
            true => String::new(),
            false => format!("  order           {}\n", names(&found.order)),
        };
        format!(
            "scatter on {} by search\n  PEs             {}\n  messages        {} nonnull, {}{of} \
             together\n{order}  time            {}\n  farthest first  {}\n  bound           {}: {}\n",
            self.name,
            self.tree.len(),
            found.order.len(),
            counted(self.flits.iter().sum(), "flit", "flits"),
            time(found.time),
            time(found.farthest_first),
            time(found.bound),
            self.proof(),
        )
    }
}
