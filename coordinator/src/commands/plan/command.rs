//! Checks the command line of `flitcast plan`, makes the plan and prints it.

use std::io::{self, Write};
use std::sync::Arc;

use flitcast_proto::cost::Ports::Single;
use flitcast_proto::network::cover::CoverError;
use flitcast_proto::ops::cover_plan::steps_of_gather_on_a_tree;
use flitcast_proto::ops::plan::{Plan, plan, plan_gather, plan_scatter};
use flitcast_proto::ops::{Direction, Operation};
use flitcast_proto::packets::fault::PacketsFault;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::scatter::farthest_first;
use flitcast_proto::sim;
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use super::args::{Order, PlanArgs, PlanGatherArgs, PlanOperation, PlanRoundArgs, PlanScatterArgs};
use super::gossip_on_network::GossipFault;
use super::scenes::check_pes;
use super::simulate::{AS_PLANNED, MAX_SIMULATED, against_plan};
use super::{broadcast, cover, exchange, gossip, json, ordered, packets, static_plan, svg};
use crate::job::exchange_flits::ExchangeFlitsError;
use crate::job::request::{RequestError, gather_operation};
use crate::options::args::{GatherAlgorithm, SyncArg};
use crate::options::flits::{FlitsError, deal_flits, lengths_in_flits};
use crate::options::format::Format;
use crate::options::names::typed;
use crate::options::order::{GivenOrder, OrderFault};
use crate::options::pes::NoSuchPe;
use crate::options::ports::{Ports, PortsOfAll};
use crate::options::tree::SpanningArg;
use crate::options::workload::Lengths;
use crate::site::topology::{Topology, TopologyError};
use crate::ways::plan_limits::TooMuch;
use crate::ways::way::operation_by;

/// Limit of cells of a table that a user could still read, or page through.
const MAX_CELLS: u64 = 2_000_000;

/// An error in the command line of a plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// An error that a run could have as well.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The tree is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The lengths are invalid, or do not fit the tree.
    #[error(transparent)]
    Flits(#[from] FlitsError),
    /// An option that only applies to a plan from P0 by single ports.
    #[error("{0} is for a scatter from P0 by single ports: leave it out, or --from and --ports")]
    FromElsewhere(&'static str),
    /// A gossip on a network that cannot be planned.
    #[error(transparent)]
    Gossip(#[from] GossipFault),
    /// The source does not exist.
    #[error(transparent)]
    NoSuchPe(#[from] NoSuchPe),
    /// An algorithm that does not support these PEs.
    #[error("--algorithm {algorithm}: {why}")]
    Unfit {
        /// The algorithm.
        algorithm: String,
        /// The reason.
        why: String,
    },
    /// More than can be planned.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// An option that only applies to plans in steps.
    #[error("--setup plans in packets: leave out {0}")]
    NotInPackets(String),
    /// Messages that cannot be cut into these packets.
    #[error("--packets: {0}")]
    Packets(String),
    /// Messages that are too long to plan in packets.
    #[error("--lengths: {0}")]
    LengthsInPackets(#[source] PacketsFault),
    /// A list of packets that is too long to read.
    #[error("a list of this plan would have {packets} packets on {links} links: use --summary")]
    TooManyPackets {
        /// The number of packets.
        packets: u64,
        /// The number of times that they cross a link.
        links: u64,
    },
    /// The lengths of an exchange are invalid.
    #[error(transparent)]
    Exchange(#[from] ExchangeFlitsError),
    /// A cover of a tree.
    #[error("--cover: trees that share no arc are those of a --network NETWORK (like torus:4x4)")]
    NothingToCover,
    /// The network has no cover.
    #[error("--cover: {0}")]
    Cover(#[from] CoverError),
    /// Something that a cover does not go with.
    #[error("{0} cannot be combined with --cover; remove it")]
    WithCover(&'static str),
    /// An order that is not one of the nonnull messages.
    #[error("--order: {0}")]
    Order(String),
    /// Many ports in a complete network.
    #[error(transparent)]
    PortsOfAll(#[from] PortsOfAll),
    /// `--ports multi` with an option that excludes it.
    #[error("--ports multi runs certification's synchronisation in parallel: leave out {0}")]
    Ports(String),
    /// A simulation that does not fit into memory.
    #[error("--simulate: {items} crossings of edges are too many; the limit is {MAX_SIMULATED}")]
    TooLong {
        /// The number of crossings.
        items: u64,
    },
    /// A plan that no state machines can run as it is.
    #[error("--simulate: {0}")]
    NotPlayed(String),
    /// A broken rule of the model, which is a bug in Flitcast.
    #[error("--simulate: {0}")]
    Simulation(#[from] sim::SimulationFault),
    /// A difference between the state machines and the plan, which is a bug in Flitcast.
    #[error("--simulate: the state machines did not do what was planned; please report this")]
    Differs,
    /// An algorithm, like all baselines, that has no schedule and is only simulated.
    #[error("--algorithm {0} has no schedule to plan: see `flitcast compare`")]
    NoSchedule(String),
    /// A drawing with too many PEs to see anything.
    #[error(
        "a drawing of {pes} PEs shows nothing, at most {} do: use --summary or --format json",
        svg::MAX_PES
    )]
    TooLargeToDraw {
        /// The number of PEs.
        pes: usize,
    },
    /// A drawing with too many crossings to see anything.
    #[error(
        "a drawing of more than {} crossings shows nothing: use --summary or --format json",
        svg::crossings::MAX_BANDS
    )]
    TooMuchToDraw,
    /// A table that is too large to read.
    #[error(
        "a table of this plan would have {cells} cells: use --summary, or --format json or svg"
    )]
    TooLarge {
        /// The number of cells.
        cells: u64,
    },
}

/// A plan with its names.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The order in which P0 sends the messages of a scatter; in a gather, the given order in which it
    /// takes them, or none.
    pub order: Vec<PeId>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
    /// The name of the tree as typed.
    pub tree_name: String,
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// How certification synchronises.
    pub sync: Option<&'static str>,
    /// With `--ports multi`: the steps with single ports.
    pub single_port_steps: Option<u64>,
    /// For a gather by many ports: the steps if P0 receives each branch on a separate port.
    pub port_each_steps: Option<u64>,
}

/// Prints the plan, or returns all errors in the command line.
pub fn run(args: PlanArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<PlanError>> {
    if let PlanOperation::Scatter(args) = &args.operation
        && let Some(cost) = args.packets.setup
    {
        return packets::scatter(args, cost, out);
    }
    if let PlanOperation::Gather(args) = &args.operation
        && let Some(cost) = args.packets.setup
    {
        return packets::gather(args, cost, out);
    }
    let (planned, args) = match args.operation {
        PlanOperation::Scatter(args) if args.plan.cover => {
            let plan = cover::scatter(&args)?;
            return plan.write(args.plan.print(), out);
        }
        PlanOperation::Gather(args) if args.plan.cover => {
            let plan = cover::gather(&args)?;
            return plan.write(args.plan.print(), out);
        }
        PlanOperation::Broadcast(args) if args.cover => {
            let plan = cover::broadcast(&args)?;
            return plan.write(args.print, out);
        }
        PlanOperation::Scatter(args) if args.from.is_some() || args.ports == Ports::Multi => {
            check_static(&args).map_err(|fault| vec![fault])?;
            let plan = static_plan::scatter(&args)?;
            return plan.write(args.plan.print(), out);
        }
        PlanOperation::Scatter(args) => match args.order {
            Some(Order::Search(nodes)) => return ordered::scatter(&args, nodes, out),
            _ => (scatter(&args)?, args.plan),
        },
        PlanOperation::Gather(args) => (gather(&args)?, args.plan),
        PlanOperation::Broadcast(args) => {
            let plan = broadcast::plan(&args)?;
            return plan.write(args.print, out);
        }
        PlanOperation::Gossip(args) => return gossip::run(&args, out),
        PlanOperation::Exchange(args) => return exchange::run(&args, out),
    };
    let simulated = match args.simulate {
        true => {
            against_plan(&planned).map_err(|fault| vec![fault])?;
            AS_PLANNED
        }
        false => "",
    };
    let plan = &planned.plan;
    let on_links = args
        .links
        .time(plan.tree.len(), Single, plan.crossing_count(), |timing| {
            plan.on_links(timing)
        });
    let on_links = on_links.map_err(|fault| vec![fault.into()])?;
    let links = on_links.map_or(String::new(), |on_links| on_links.text());
    let summary = || summary_of(&planned) + &links + simulated;
    Ok(match (args.format, args.summary) {
        (Format::Json, _) => json::write(&planned, on_links, args.summary, out),
        (Format::Svg, _) => {
            check_pes(planned.plan.tree.len()).map_err(|fault| vec![fault])?;
            let drawing = svg::svg(&planned.plan, &title(&planned));
            out.write_all(drawing.as_bytes())
        }
        (_, true) => out.write_all(summary().as_bytes()),
        (_, false) => {
            let table = table(&planned.plan).map_err(|fault| vec![fault])?;
            out.write_all(format!("{table}\n{}", summary()).as_bytes())
        }
    })
}

/// Checks the options that `--from` and `--ports multi` permit.
fn check_static(args: &PlanScatterArgs) -> Result<(), PlanError> {
    match args.order {
        None | Some(Order::FarthestFirst) => Ok(()),
        Some(_) => Err(PlanError::FromElsewhere("--order")),
    }
}

fn scatter(args: &PlanScatterArgs) -> Result<Planned, Vec<PlanError>> {
    let AskedPlan { name, tree, flits } = AskedPlan::of(&args.plan, SpanningArg::Bfs)?;
    let order = args.order.as_ref().unwrap_or(&Order::FarthestFirst);
    let (order, algorithm) = order_of(&tree, &flits, order).map_err(|e| vec![e])?;
    Ok(Planned {
        plan: plan_scatter(&tree, &flits, &order),
        order,
        flits,
        tree_name: name,
        algorithm,
        sync: None,
        single_port_steps: None,
        port_each_steps: None,
    })
}

fn gather(args: &PlanGatherArgs) -> Result<Planned, Vec<PlanError>> {
    // With single ports a node of many children costs time while it synchronises.
    let spanning = match args.ports {
        Ports::Single => SpanningArg::Broadcast,
        Ports::Multi => SpanningArg::Bfs,
    };
    let AskedPlan { name, tree, flits } = AskedPlan::of(&args.plan, spanning)?;
    let operation = match args.ports {
        Ports::Single => {
            gather_operation(&tree, &name, args.algorithm, args.sync).map_err(PlanError::from)
        }
        Ports::Multi => multi_port(args.algorithm, args.sync),
    };
    let operation = operation.map_err(|fault| vec![fault])?;
    let single_port = Operation::Certification(Sync::Pipelined);
    if let Some(algorithm) = args.algorithm.map(|algorithm| typed(&algorithm))
        && operation_by(single_port.name(), &algorithm).is_some_and(|one| !one.has_plan())
    {
        return Err(vec![PlanError::NoSchedule(algorithm)]);
    }
    let planned = |operation| match &args.order {
        Some(order) => in_order(&tree, operation, &flits, order).map_err(|fault| vec![fault]),
        None => Ok(plan(&tree, operation, &flits)),
    };
    let single_port_steps = match args.ports {
        Ports::Single => None,
        Ports::Multi => Some(planned(single_port)?.time_steps),
    };
    let port_each_steps =
        (args.ports == Ports::Multi).then(|| steps_of_gather_on_a_tree(&tree, &flits));
    Ok(Planned {
        plan: planned(operation)?,
        order: args
            .order
            .iter()
            .flat_map(GivenOrder::pes)
            .copied()
            .collect(),
        flits,
        tree_name: name,
        algorithm: operation.algorithm(),
        sync: operation.sync(),
        single_port_steps,
        port_each_steps,
    })
}

/// Returns the plan of a gather in a given order.
fn in_order(
    tree: &Arc<Tree>,
    operation: Operation,
    flits: &[u64],
    order: &GivenOrder,
) -> Result<Plan, PlanError> {
    check_order(order.faults(tree, Some(flits)))?;
    let planned = plan_gather(tree, operation, flits, order.pes());
    planned.map_err(|fault| PlanError::Order(OrderFault::from(fault).to_string()))
}

fn table(plan: &Plan) -> Result<String, PlanError> {
    let pes = plan.tree.len();
    let cells = plan.time_steps.saturating_mul(pes as u64);
    let cells = cells.max(plan.crossing_count());
    match cells > MAX_CELLS {
        true => Err(PlanError::TooLarge { cells }),
        false => Ok(flitcast_proto::trace::table(&plan.crossings(), pes)),
    }
}

/// The requested tree and lengths.
pub struct AskedPlan {
    /// The name of the tree as typed.
    pub name: String,
    /// The tree.
    pub tree: Arc<Tree>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
}

impl AskedPlan {
    /// Returns the tree and the lengths, or all errors in both.
    pub fn of(args: &PlanRoundArgs, spanning: SpanningArg) -> Result<AskedPlan, Vec<PlanError>> {
        let (topology, lengths) = topology_and_lengths(args, spanning)?;
        let tree = Arc::new(topology.tree);
        let flits = deal_flits(&lengths, &tree).map_err(|fault| vec![fault.into()])?;
        Ok(AskedPlan {
            name: topology.name,
            tree,
            flits,
        })
    }
}

/// Returns the tree or network and the lengths, or all errors in both.
pub fn topology_and_lengths(
    args: &PlanRoundArgs,
    spanning: SpanningArg,
) -> Result<(Topology, Lengths), Vec<PlanError>> {
    let lengths = lengths_in_flits(&args.lengths);
    match (args.tree.topology(spanning), lengths) {
        (Ok(topology), Ok(lengths)) => Ok((topology, lengths)),
        (topology, lengths) => {
            let faults = topology.err().unwrap_or_default().into_iter();
            let lengths = lengths.err().map(PlanError::from);
            Err(faults.map(PlanError::from).chain(lengths).collect())
        }
    }
}

/// The destinations of the nonnull messages in this order, and its name.
pub(super) fn order_of(
    tree: &Tree,
    flits: &[u64],
    order: &Order,
) -> Result<(Vec<PeId>, &'static str), PlanError> {
    let farthest = farthest_first(tree, flits);
    match order {
        // A search is planned elsewhere (`ordered`), on its own links.
        Order::FarthestFirst | Order::Search(_) => Ok((farthest, "fdf")),
        Order::NearestFirst => {
            let mut nearest = farthest;
            nearest.sort_by_key(|&pe| (tree.depth(pe), pe));
            Ok((nearest, "nearest-first"))
        }
        Order::Given(given) => {
            check_order(given.faults(tree, Some(flits)))?;
            Ok((given.pes().to_vec(), "given"))
        }
    }
}

/// Returns all errors in an order as one.
fn check_order(faults: Vec<OrderFault>) -> Result<(), PlanError> {
    match faults.is_empty() {
        true => Ok(()),
        false => {
            let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Err(PlanError::Order(told.join("; ")))
        }
    }
}

fn multi_port(
    algorithm: Option<GatherAlgorithm>,
    sync: Option<SyncArg>,
) -> Result<Operation, PlanError> {
    let parallel = Operation::Certification(Sync::Parallel);
    let algorithm = algorithm.map(|algorithm| typed(&algorithm));
    let other = algorithm.filter(|algorithm| {
        let asked = operation_by(parallel.name(), algorithm).filter(|one| one.has_plan());
        asked.is_some_and(|asked| asked.algorithm() != parallel.algorithm())
    });
    match (other, sync) {
        (Some(other), _) => Err(PlanError::Ports(format!("--algorithm {other}"))),
        (None, Some(_)) => Err(PlanError::Ports("--sync".to_owned())),
        (None, None) => Ok(parallel),
    }
}

/// Returns a title such as "gather on path:6 by certification, serial".
fn title(planned: &Planned) -> String {
    let Planned {
        plan,
        tree_name,
        algorithm,
        sync,
        ..
    } = planned;
    let operation = plan.operation.name();
    let sync = sync.map(|sync| format!(", {sync}")).unwrap_or_default();
    let is_given = plan.operation.direction() == Direction::Up && !planned.order.is_empty();
    let given = if is_given { ", in a given order" } else { "" };
    format!("{operation} on {tree_name} by {algorithm}{sync}{given}")
}

fn summary_of(planned: &Planned) -> String {
    let plan = &planned.plan;
    let total: u64 = planned.flits.iter().sum();
    let over = match plan.lower_bound_steps {
        0 => String::new(),
        bound => format!(" ({:.3} times it)", plan.time_steps as f64 / bound as f64),
    };
    let by_the_paper = match plan.operation.direction() == Direction::Down && plan.time_steps > 0 {
        true => format!(
            " ({} by the paper's count, which begins at step 0)",
            plan.time_steps + 1
        ),
        false => String::new(),
    };
    let mut out = format!(
        "{}\n  PEs          {}, depth {}\n  messages     {} nonnull, {total} flits together\n  time         {} steps{by_the_paper}\n  lower bound  {} steps{over}\n",
        title(planned),
        plan.tree.len(),
        plan.tree
            .pes()
            .map(|pe| plan.tree.depth(pe))
            .max()
            .unwrap_or(0),
        plan.messages.len(),
        plan.time_steps,
        plan.lower_bound_steps,
    );
    if let Some(bound) = plan.upper_bound() {
        let (steps, theorem, formula) = (bound.steps, bound.theorem, bound.formula);
        let by = match bound.printed {
            Some(printed) => format!("{theorem} prints {printed}, which does not hold"),
            None => theorem.to_owned(),
        };
        out.push_str(&format!("  upper bound  {steps} steps, {formula} ({by})\n"));
    }
    if let Some(last) = plan.control.last() {
        let items = plan.control.len();
        out.push_str(&format!(
            "  control      {items} items, the last in step {}\n",
            last.step
        ));
    }
    if let Some(single) = planned.single_port_steps {
        let gain = single.saturating_sub(plan.time_steps);
        out.push_str(&format!(
            "  many ports   {gain} steps less than {single} with single ports, pipelined\n"
        ));
    }
    if let Some(each) = planned.port_each_steps {
        out.push_str(&format!(
            "  a port each  {each} steps, if P0 receives from each child on a separate port, as `gather --ports multi` does\n"
        ));
    }
    out
}
