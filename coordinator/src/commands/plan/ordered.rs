//! `flitcast plan scatter --order search`: the best order of messages found for unequal links, and the
//! bound.

use std::io::{self, Write};

use anyhow::anyhow;
use flitcast_plan::schedule::order_search::{self, Hop, MOST_HOPS};
use flitcast_proto::PeId;

use super::args::PlanScatterArgs;
use super::input::topology_and_lengths;
use super::report::{PlanReport, proof};
use flitcast_cluster::options::flits::deal_flits;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::phrases::{counted, names};
use flitcast_cluster::text::units::Nanos;

/// Payload of a flit on links with rates: the default of a run.
const FLIT_BYTES: u64 = 64 << 10;

pub fn scatter(
    args: &PlanScatterArgs,
    nodes: u64,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Faults> {
    let mut unfit = Vec::new();
    if args.plan.print.simulate {
        unfit.push("search does not go with --simulate: leave it out".to_owned());
    }
    if args.plan.print.links.link.is_some() {
        unfit.push("search has the links of the tree file: leave out --link".to_owned());
    }
    if args.plan.print.format == Format::Svg {
        unfit.push("what search finds is printed as a table or json, not drawn".to_owned());
    }
    let mut faults = Faults::all(unfit.into_iter().map(of_order));
    let parsed = faults.take(topology_and_lengths(&args.plan, SpanningArg::Bfs));
    let Some((topology, lengths)) = parsed else {
        return Err(faults);
    };
    let flits = faults.take(deal_flits(&lengths, &topology.tree));
    let hops = faults.take(hops(&topology).map_err(of_order));
    let (Some(flits), Some((hops, unit)), []) = (flits, hops, &faults.0[..]) else {
        return Err(faults);
    };
    let tree = &topology.tree;
    let Some(found) = order_search::search(tree, &flits, &hops, nodes) else {
        let why = format!(
            "search is for messages that cross {MOST_HOPS} links together at most, in less than \
             some decades: take fewer PEs, or fewer flits"
        );
        return Err(of_order(why).into());
    };
    let print = args.plan.print;
    let (unit, flit_bytes, of) = match unit {
        Unit::Step => ("steps", None, ""),
        Unit::Nanosecond => ("ns", Some(FLIT_BYTES), " of 64 KiB"),
    };
    let proof = proof(found.time, found.bound);
    let heading = format!("scatter on {} by search", topology.name);
    let mut report = PlanReport::new(heading, print).below_table(16);
    report.field("operation", "scatter");
    report.field("algorithm", "search");
    report.field("pes", tree.len());
    report.field("unit", unit);
    report.optional("flit_bytes", flit_bytes);
    report.detail("lengths", &flits);
    report.list("order", || found.order.iter().map(|pe| pe.0));
    report.field("time", found.time);
    report.field("farthest_first_time", found.farthest_first);
    report.field("bound", found.bound);
    report.field("proof", &proof);
    let time = |ticks: u64| match flit_bytes {
        None => counted(ticks, "step", "steps"),
        Some(_) => Nanos(ticks).to_string(),
    };
    report.line("PEs", tree.len().to_string());
    let nonnull = found.order.len();
    let all = counted(flits.iter().sum(), "flit", "flits");
    let messages = format!("{nonnull} nonnull, {all}{of} together");
    report.line("messages", messages);
    if !print.summary {
        report.line("order", names(&found.order));
    }
    report.line("time", time(found.time));
    report.line("farthest first", time(found.farthest_first));
    report.line("bound", format!("{}: {proof}", time(found.bound)));
    Ok(report.write(out))
}

fn of_order(why: String) -> anyhow::Error {
    anyhow!("--order: {why}")
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
    let tree = &topology.tree;
    let down = |pe: PeId| topology.link_to(pe).unwrap_or_default().down;
    let below = || tree.pes().filter(|&pe| tree.parent(pe).is_some());
    let step = Hop {
        flit: 1,
        latency: 0,
    };
    if below().all(|pe| down(pe) == LinkSpec::default()) {
        return Ok((vec![step; tree.len()], Unit::Step));
    }
    let takes_no_time = |link: LinkSpec| link.rate.is_none() && link.setup.is_none();
    let unknown: Vec<PeId> = below().filter(|&pe| takes_no_time(down(pe))).collect();
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
            // Each flit is a packet.
            flit: link.rate.map_or(0, |rate| nanos(rate.0)) + link.setup.map_or(0, |setup| setup.0),
            latency: link.latency.map_or(0, |latency| latency.0),
        }
    };
    let hops = tree.pes().map(|pe| match tree.parent(pe) {
        Some(_) => hop(pe),
        None => step,
    });
    Ok((hops.collect(), Unit::Nanosecond))
}
