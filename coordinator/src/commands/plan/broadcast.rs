//! `flitcast plan broadcast`: which flit crosses which edge when.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::str::FromStr;

use comfy_table::{Table, presets};
use flitcast_proto::items::Leg;
use flitcast_proto::network::NetworkSpec;
use flitcast_proto::ops::broadcast_plan::{self as broadcast, Broadcast};
use flitcast_proto::tree::{Rerooted, TreeSpec};
use flitcast_proto::{PeId, Tree};
use serde::{Serialize, Serializer};

use super::args::{PlanBroadcastArgs, Ports};
use super::command::PlanError;
use crate::options::format::Format;
use crate::options::tree::SpanningArg;
use crate::text::figures::lines;
use crate::text::words::counted;

/// Crossings that a plan may have which are worked out flit by flit.
const MOST_CROSSINGS: u64 = 20_000_000;

/// How to broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Whichever takes the fewest steps.
    Auto,
    /// Flit after flit as the token goes, on the given tree.
    Rounds,
    /// The most urgent child first, on the given tree.
    Urgent,
    /// The whole message to one child after the other, on the given tree.
    ChildByChild,
    /// Along all PEs, where all reach each other.
    Path,
    /// Over a tree of so many children for each PE, where all reach each other.
    Kary(u32),
    /// Over the trees of a hypercube, where all reach each other.
    Hypercube,
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Algorithm, String> {
        let arity = text.strip_prefix("kary:").map(str::parse);
        Ok(match (text, arity) {
            ("auto", _) => Algorithm::Auto,
            ("rounds", _) => Algorithm::Rounds,
            ("urgent", _) => Algorithm::Urgent,
            ("child-by-child", _) => Algorithm::ChildByChild,
            ("path", _) => Algorithm::Path,
            ("hypercube", _) => Algorithm::Hypercube,
            (_, Some(Ok(arity))) if arity > 0 => Algorithm::Kary(arity),
            _ => {
                return Err(format!(
                    "`{text}` is no way to broadcast: auto, rounds, urgent or child-by-child on a \
                     tree; auto, path, kary:K (K at least 1) or hypercube with --network complete:N"
                ));
            }
        })
    }
}

impl Algorithm {
    fn name(self) -> String {
        match self {
            Algorithm::Auto => "auto".to_owned(),
            Algorithm::Rounds => "rounds".to_owned(),
            Algorithm::Urgent => "urgent".to_owned(),
            Algorithm::ChildByChild => "child-by-child".to_owned(),
            Algorithm::Path => "path".to_owned(),
            Algorithm::Kary(arity) => format!("kary:{arity}"),
            Algorithm::Hypercube => "hypercube".to_owned(),
        }
    }

    fn is_for_trees(self) -> bool {
        use Algorithm::{ChildByChild, Rounds, Urgent};
        matches!(self, Rounds | Urgent | ChildByChild)
    }
}

/// A PE, typed as 3 or P3.
pub fn parse_pe(text: &str) -> Result<PeId, String> {
    let number = text.strip_prefix('P').unwrap_or(text).parse();
    let told = |_| format!("`{text}` is no PE: 3 or P3, say");
    number.map(PeId).map_err(told)
}

/// A plan, and how to speak of it.
struct Planned {
    plan: Broadcast,
    algorithm: Algorithm,
    ports: &'static str,
    name: String,
    /// Who is connected; `None` where everybody is.
    edges: Option<Vec<[PeId; 2]>>,
    pes: u32,
    source: PeId,
    flits: u64,
    bound_steps: u64,
}

/// Plans and prints; all that is wrong with the command line, if something is.
pub fn run(
    args: &PlanBroadcastArgs,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    let planned = plan(args)?;
    Ok(match args.format {
        Format::Json => planned.write_json(args.summary, out),
        _ => out.write_all(planned.text(args.summary).as_bytes()),
    })
}

fn plan(args: &PlanBroadcastArgs) -> Result<Planned, Vec<PlanError>> {
    let topology = args.tree.topology(SpanningArg::Broadcast);
    let topology = topology.map_err(|all| all.into_iter().map(PlanError::from).collect::<Vec<_>>());
    let topology = topology?;
    let tree = &topology.tree;
    let from = args.from.unwrap_or(PeId::ROOT);
    if !tree.contains(from) {
        let pes = tree.len();
        let fault = PlanError::NoSuchPe { from, pes };
        return Err(vec![fault]);
    }
    let network = args.tree.network.as_deref().map(str::parse::<NetworkSpec>);
    let network = network.and_then(Result::ok);
    let reach_all = matches!(network, Some(NetworkSpec::Complete { .. }));
    let is_cube = matches!(network, Some(NetworkSpec::Hypercube { .. }));
    let unfit = |why: &str| {
        let (algorithm, why) = (args.algorithm.name(), why.to_owned());
        vec![PlanError::Unfit { algorithm, why }]
    };
    let others = match args.algorithm {
        Algorithm::Hypercube if is_cube => return hypercube(args, from, tree.len()),
        Algorithm::Auto if reach_all => return complete(args, from, tree.len()),
        one if one.is_for_trees() || one == Algorithm::Auto => None,
        one if reach_all => Some(one),
        _ => {
            return Err(unfit(
                "it is for --network complete:N, where all PEs reach each other",
            ));
        }
    };
    if let Some(one) = others {
        return among_all(args, one, from, tree.len());
    }
    let rerooted = tree.rerooted(from);
    let (tree, flits) = (&rerooted.tree, args.size);
    let (algorithm, plan) = match (args.ports, args.algorithm) {
        (Ports::Multi, Algorithm::Auto | Algorithm::Rounds) => {
            (Algorithm::Rounds, broadcast::all_ports(tree, flits))
        }
        (Ports::Multi, _) => {
            return Err(unfit(
                "with --ports multi a PE sends to all its children at once",
            ));
        }
        (Ports::Single, one) => on_tree(tree, one, flits).map_err(|fault| vec![fault])?,
    };
    let bound_steps = match args.ports {
        Ports::Single => broadcast::least_steps(tree, flits),
        Ports::Multi => broadcast::least_steps_of_all_ports(tree, flits),
    };
    let edges = topology.tree.pes();
    let edges = edges.filter_map(|pe| Some([topology.tree.parent(pe)?, pe]));
    Ok(Planned {
        plan: renamed(plan, |pe| rerooted.before(pe)),
        algorithm,
        ports: match args.ports {
            Ports::Single => "single",
            Ports::Multi => "multi",
        },
        name: topology.name.clone(),
        edges: Some(edges.collect()),
        pes: tree.len() as u32,
        source: from,
        flits,
        bound_steps,
    })
}

/// By this algorithm, or by the one of ours that takes fewer steps.
fn on_tree(tree: &Tree, asked: Algorithm, flits: u64) -> Result<(Algorithm, Broadcast), PlanError> {
    let crossings = flits.saturating_mul(tree.len() as u64);
    if asked == Algorithm::ChildByChild {
        return Ok((asked, broadcast::child_by_child(tree, flits)));
    }
    let rounds = broadcast::rounds(tree, flits);
    let is_best = rounds.time_steps == broadcast::least_steps(tree, flits);
    match asked {
        Algorithm::Urgent if crossings > MOST_CROSSINGS => Err(PlanError::TooManyCrossings {
            crossings,
            most: MOST_CROSSINGS,
        }),
        Algorithm::Auto if !is_best && crossings <= MOST_CROSSINGS => {
            let urgent = broadcast::urgent(tree, flits);
            Ok(match urgent.time_steps < rounds.time_steps {
                true => (Algorithm::Urgent, urgent),
                false => (Algorithm::Rounds, rounds),
            })
        }
        Algorithm::Urgent => Ok((asked, broadcast::urgent(tree, flits))),
        _ => Ok((Algorithm::Rounds, rounds)),
    }
}

/// Where all reach each other: by whichever takes the fewest steps.
fn complete(args: &PlanBroadcastArgs, from: PeId, pes: usize) -> Result<Planned, Vec<PlanError>> {
    let arities = (2..=4).map(Algorithm::Kary);
    let all = [Algorithm::Path].into_iter().chain(arities);
    let all = all.chain([Algorithm::Hypercube]);
    let planned = all.filter_map(|one| among_all(args, one, from, pes).ok());
    let best = planned.min_by_key(|planned| planned.plan.time_steps);
    best.map_or_else(|| among_all(args, Algorithm::Path, from, pes), Ok)
}

/// Where all reach each other, by one of the algorithms that lay a tree of their own.
fn among_all(
    args: &PlanBroadcastArgs,
    algorithm: Algorithm,
    from: PeId,
    pes: usize,
) -> Result<Planned, Vec<PlanError>> {
    let spec = match algorithm {
        Algorithm::Hypercube => return hypercube(args, from, pes),
        Algorithm::Kary(arity) => format!("kary:{arity}:{pes}"),
        _ => format!("path:{pes}"),
    };
    let unfit = |why: String| {
        let algorithm = algorithm.name();
        vec![PlanError::Unfit { algorithm, why }]
    };
    let tree = spec
        .parse::<TreeSpec>()
        .map_err(|fault| unfit(fault.to_string()))?;
    let tree = tree.build().map_err(|fault| unfit(fault.to_string()))?;
    let plan = broadcast::rounds(&tree, args.size);
    let before = |pe| Rerooted::behind(from, pe);
    Ok(shared(args, algorithm, from, pes, renamed(plan, before)))
}

fn hypercube(args: &PlanBroadcastArgs, from: PeId, pes: usize) -> Result<Planned, Vec<PlanError>> {
    let algorithm = Algorithm::Hypercube;
    if !pes.is_power_of_two() {
        let (algorithm, why) = (algorithm.name(), format!("{pes} is no power of 2"));
        return Err(vec![PlanError::Unfit { algorithm, why }]);
    }
    let crossings = args.size.saturating_mul(pes as u64);
    if crossings > MOST_CROSSINGS {
        let most = MOST_CROSSINGS;
        return Err(vec![PlanError::TooManyCrossings { crossings, most }]);
    }
    let plan = broadcast::hypercube(pes.ilog2(), args.size);
    let before = |pe: PeId| PeId(pe.0 ^ from.0);
    Ok(shared(args, algorithm, from, pes, renamed(plan, before)))
}

/// A plan among PEs that all reach each other, each by one port.
fn shared(
    args: &PlanBroadcastArgs,
    algorithm: Algorithm,
    source: PeId,
    pes: usize,
    plan: Broadcast,
) -> Planned {
    Planned {
        plan,
        algorithm,
        ports: "shared",
        name: args.tree.network.clone().unwrap_or_default(),
        edges: None,
        pes: pes as u32,
        source,
        flits: args.size,
        bound_steps: broadcast::least_steps_of_complete(pes, args.size),
    }
}

fn renamed(mut plan: Broadcast, before: impl Fn(PeId) -> PeId) -> Broadcast {
    for leg in &mut plan.legs {
        (leg.from, leg.to) = (before(leg.from), before(leg.to));
    }
    plan.legs
        .sort_by_key(|leg| (leg.first_step, leg.from, leg.to));
    plan
}

#[derive(Serialize)]
struct PlanReport<'a> {
    operation: &'static str,
    algorithm: String,
    ports: &'static str,
    pes: u32,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "edges")]
    edges: Option<&'a [[PeId; 2]]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    time_steps: u64,
    bound_steps: u64,
    proof: String,
    kept_flits: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "messages")]
    messages: Option<&'a Planned>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crossings")]
    crossings: Option<&'a [Leg]>,
}

#[derive(Serialize)]
struct Message {
    id: u64,
    source: u32,
    destinations: Vec<u32>,
    flits: u64,
}

#[derive(Serialize)]
struct Crossing {
    message: u64,
    offset: u64,
    flits: u64,
    from: u32,
    to: u32,
    first_step: u64,
    every: u64,
}

fn edges<S: Serializer>(edges: &Option<&[[PeId; 2]]>, to: S) -> Result<S::Ok, S::Error> {
    let edges = edges.iter().flat_map(|edges| edges.iter());
    to.collect_seq(edges.map(|edge| edge.map(|pe| pe.0)))
}

fn messages<S: Serializer>(planned: &Option<&Planned>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(planned.iter().map(|planned| {
        Message {
            id: 0,
            source: planned.source.0,
            destinations: (0..planned.pes)
                .filter(|pe| *pe != planned.source.0)
                .collect(),
            flits: planned.flits,
        }
    }))
}

fn crossings<S: Serializer>(legs: &Option<&[Leg]>, to: S) -> Result<S::Ok, S::Error> {
    let legs = legs.iter().flat_map(|legs| legs.iter());
    to.collect_seq(legs.map(|leg| Crossing {
        message: leg.message.0,
        offset: leg.offset,
        flits: leg.flits,
        from: leg.from.0,
        to: leg.to.0,
        first_step: leg.first_step,
        every: leg.every,
    }))
}

impl Planned {
    /// `optimal`, or how far from the bound.
    fn proof(&self) -> String {
        let over = self.plan.time_steps - self.bound_steps;
        match over {
            0 => "optimal".to_owned(),
            _ => format!("gap {:.1}%", over as f64 * 100.0 / self.bound_steps as f64),
        }
    }

    fn write_json(&self, summary: bool, out: &mut dyn Write) -> io::Result<()> {
        let report = PlanReport {
            operation: "broadcast",
            algorithm: self.algorithm.name(),
            ports: self.ports,
            pes: self.pes,
            edges: self.edges.as_deref().filter(|_| !summary),
            complete: self.edges.is_none(),
            time_steps: self.plan.time_steps,
            bound_steps: self.bound_steps,
            proof: self.proof(),
            kept_flits: self.plan.kept_flits,
            messages: (!summary).then_some(self),
            crossings: (!summary).then_some(&self.plan.legs),
        };
        serde_json::to_writer(&mut *out, &report)?;
        out.write_all(b"\n")
    }

    fn text(&self, summary: bool) -> String {
        let mut out = format!(
            "broadcast {}: {} PEs, {}, {} ports; {} from {}\n\n",
            self.name,
            self.pes,
            self.algorithm.name(),
            self.ports,
            counted(self.flits, "flit", "flits"),
            self.source
        );
        if !summary {
            out.push_str(&lines(self.table(), 2));
            out.push('\n');
        }
        out.push_str(&format!(
            "  time         {} steps\n  bound        {} steps: {}\n  kept         at most {} in a PE\n",
            self.plan.time_steps,
            self.bound_steps,
            self.proof(),
            counted(self.plan.kept_flits, "flit", "flits"),
        ));
        out
    }

    /// A row for each PE: who sends it the message, and when its first and last flit come.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["PE", "from", "first flit", "last flit"]);
        let mut came: BTreeMap<PeId, (Vec<PeId>, u64, u64)> = BTreeMap::new();
        for leg in &self.plan.legs {
            let last = leg.first_step + (leg.flits - 1) * leg.every;
            let (from, first, end) = came.entry(leg.to).or_insert((vec![], u64::MAX, 0));
            if !from.contains(&leg.from) {
                from.push(leg.from);
            }
            *first = leg.first_step.min(*first);
            *end = last.max(*end);
        }
        for (pe, (from, first, last)) in came {
            let from: Vec<String> = from.iter().map(PeId::to_string).collect();
            table.add_row([
                pe.to_string(),
                from.join(" "),
                first.to_string(),
                last.to_string(),
            ]);
        }
        table
    }
}
