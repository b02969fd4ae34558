//! `flitcast plan scatter` and `gather` with `--setup`: in packets that cost something to start.

use std::io::{self, Write};
use std::str::FromStr;

use clap::Args;
use flitcast_proto::packets::fault::PacketsFault;
use flitcast_proto::packets::model::LinkCost;
use flitcast_proto::packets::search::{DEFAULT_NODES, MOST_NODES};
use flitcast_proto::packets::{self, Split, certification};

use super::args::{Order, PlanGatherArgs, PlanRoundArgs, PlanScatterArgs};
use super::command::{AskedPlan, PlanError};
use super::packets_certified::CertifiedReport;
use super::packets_report::PacketReport;
use crate::options::args::GatherAlgorithm;
use crate::options::names::typed;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// Arguments of what is sent in packets.
#[derive(Debug, Args)]
pub struct PacketArgs {
    /// Plan in packets: what starting one costs on each link, in the time of a flit, an integer
    /// or a fraction like 3/2.
    #[arg(long, value_name = "BETA")]
    pub setup: Option<LinkCost>,
    /// How messages are cut: auto; of one nonnull message COUNT even packets, or
    /// sizes:S1,S2,..; with --algorithm certification auto or cap:C, the largest packet
    /// [default: auto].
    #[arg(long, value_name = "PACKETS", requires = "setup")]
    pub packets: Option<Packets>,
    /// How many nodes a search for a better plan may look at, on trees where no plan is
    /// known to be the best; 0 is no search [default: 200000].
    #[arg(long, value_name = "NODES", requires = "setup",
        value_parser = clap::value_parser!(u64).range(..=MOST_NODES))]
    pub search: Option<u64>,
}

/// How messages are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packets {
    /// As well as we know.
    Auto,
    /// One message, as somebody wants it.
    Split(Split),
    /// Each message into even packets of at most so many flits.
    Cap(u64),
}

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Packets, String> {
        let unknown = || {
            format!(
                "`{text}` is no way to cut messages: auto, a COUNT of even packets, \
                 sizes:S1,S2,.. with the flits of each, or cap:C (C at least 1) with \
                 --algorithm certification"
            )
        };
        let number = |part: &str| part.trim().parse::<u64>().map_err(|_| unknown());
        match text.split_once(':') {
            None if text == "auto" => Ok(Packets::Auto),
            None => Ok(Packets::Split(Split::Count(number(text)?))),
            Some(("sizes", sizes)) => {
                let sizes = sizes.split(',').map(number).collect::<Result<_, _>>()?;
                Ok(Packets::Split(Split::Sizes(sizes)))
            }
            Some(("cap", cap)) => match number(cap)? {
                0 => Err(unknown()),
                cap => Ok(Packets::Cap(cap)),
            },
            Some(_) => Err(unknown()),
        }
    }
}

/// Plans and prints a scatter; all that is wrong with the command line, if something is.
pub fn scatter(
    args: &PlanScatterArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let mut unfit = unfit(&args.plan, args.ports);
    if args.order != Order::FarthestFirst {
        unfit.push("--order");
    }
    if args.from.is_some() {
        unfit.push("--from");
    }
    let mut faults = left_out(unfit);
    if let Some(Packets::Cap(_)) = args.packets.packets {
        faults.push(PlanError::Packets(
            "cap:C is for a gather by certification: auto, COUNT or sizes:S1,S2,..".to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Bfs, faults)?;
    let report = in_packets("scatter", &args.packets, &asked, cost)?;
    report.write(&args.plan, out)
}

/// Plans and prints a gather; all that is wrong with the command line, if something is.
pub fn gather(
    args: &PlanGatherArgs,
    cost: LinkCost,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let mut unfit = unfit(&args.plan, args.ports);
    if args.sync.is_some() {
        unfit.push("--sync");
    }
    match args.algorithm {
        Some(GatherAlgorithm::Certification) => certified(args, cost, unfit, out),
        other => mirrored(args, cost, other, left_out(unfit), out),
    }
}

/// A gather whose lengths P0 knows.
fn mirrored(
    args: &PlanGatherArgs,
    cost: LinkCost,
    unfit: Option<GatherAlgorithm>,
    mut faults: Vec<PlanError>,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    faults.extend(unfit.map(|algorithm| {
        PlanError::Unfit {
        algorithm: typed(&algorithm),
        why: "with --setup, a gather is planned by certification or, without --algorithm, as the \
              mirror of a scatter"
            .to_owned(),
    }
    }));
    if let Some(Packets::Cap(_)) = args.packets.packets {
        faults.push(PlanError::Packets(
            "cap:C belongs to --algorithm certification: auto, COUNT or sizes:S1,S2,.. without it"
                .to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Bfs, faults)?;
    let report = in_packets("gather", &args.packets, &asked, cost)?;
    report.write(&args.plan, out)
}

/// A gather whose lengths P0 does not know.
fn certified(
    args: &PlanGatherArgs,
    cost: LinkCost,
    mut unfit: Vec<&'static str>,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    if args.packets.search.is_some() {
        unfit.push("--search");
    }
    let mut faults = left_out(unfit);
    if let Some(Packets::Split(_)) = args.packets.packets {
        faults.push(PlanError::Packets(
            "certification has one cap for all messages: auto or cap:C".to_owned(),
        ));
    }
    let asked = asked(&args.plan, SpanningArg::Broadcast, faults)?;
    let (tree, flits) = (&asked.tree, &asked.flits);
    let certified = match args.packets.packets {
        Some(Packets::Cap(cap)) => certification::plan(tree, flits, cost, cap),
        _ => certification::plan_best_cap(tree, flits, cost),
    };
    let certified = certified.map_err(|fault| vec![told(fault)])?;
    // Of a tree on which no bound is worked out, none is told.
    let mirror = packets::plan(tree, flits, cost, 0).ok();
    let report = CertifiedReport {
        asked: &asked,
        cost,
        certified,
        bound: mirror.map(|mirror| mirror.bound),
    };
    report.write(&args.plan, out)
}

/// What belongs to plans in steps.
fn unfit(args: &PlanRoundArgs, ports: Ports) -> Vec<&'static str> {
    let mut unfit = Vec::new();
    if ports == Ports::Multi {
        unfit.push("--ports multi");
    }
    if args.simulate {
        unfit.push("--simulate");
    }
    unfit
}

fn left_out(unfit: Vec<&'static str>) -> Vec<PlanError> {
    match unfit.is_empty() {
        true => Vec::new(),
        false => vec![PlanError::NotInPackets(unfit.join(", "))],
    }
}

/// The tree and the lengths, unless something is wrong with them or has been before.
fn asked(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
    mut faults: Vec<PlanError>,
) -> Result<AskedPlan, Vec<PlanError>> {
    match AskedPlan::of(args, spanning) {
        Ok(asked) if faults.is_empty() => Ok(asked),
        Ok(_) => Err(faults),
        Err(more) => {
            faults.extend(more);
            Err(faults)
        }
    }
}

fn in_packets<'a>(
    operation: &'static str,
    args: &PacketArgs,
    asked: &'a AskedPlan,
    cost: LinkCost,
) -> Result<PacketReport<'a>, Vec<PlanError>> {
    let (tree, flits) = (&asked.tree, &asked.flits);
    let plan = match &args.packets {
        Some(Packets::Split(split)) => packets::plan_split(tree, flits, cost, split),
        _ => packets::plan(tree, flits, cost, args.search.unwrap_or(DEFAULT_NODES)),
    };
    let unplanned = packets::unplanned(tree, flits, cost);
    match (plan, unplanned) {
        (Ok(plan), Ok(unplanned)) => Ok(PacketReport {
            operation,
            asked,
            cost,
            plan,
            unplanned,
        }),
        (Err(fault), _) | (_, Err(fault)) => Err(vec![told(fault)]),
    }
}

/// A fault with the option that it is of.
fn told(fault: PacketsFault) -> PlanError {
    match fault {
        PacketsFault::Flits { .. } | PacketsFault::Hops { .. } => {
            PlanError::LengthsInPackets(fault)
        }
        _ => PlanError::Packets(fault.to_string()),
    }
}
