//! Plans that are lists of crossings: of a broadcast, a gossip, an exchange, and of a scatter from any
//! PE or by many ports.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use comfy_table::Table;
use flitcast_proto::cost;
use flitcast_proto::items::Leg;
use flitcast_proto::on_links::of_legs;
use flitcast_proto::ops::Operation;
use flitcast_proto::ops::plan::{
    ControlPlan, MessagePlan, legs_of, plan_scatter, plan_scatter_by_branch,
};
use flitcast_proto::schedule::scatter::farthest_first;
use flitcast_proto::{PeId, Tree};
use serde::{Serialize, Serializer};

use super::args::{PlanScatterArgs, PrintArgs};
use super::command::{PlanError, topology_and_lengths};
use super::json::Item;
use super::simulate::{Played, against_crossings};
use crate::job::on_links::{LinkArgs, OnLinks};
use crate::options::flits::deal_flits;
use crate::options::format::Format;
use crate::options::pes::source;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;
use crate::text::figures::{lines, table};
use crate::text::words::counted;
use crate::ways::plan_limits::TooMuch;

/// A plan that is a list of crossings, with its names.
#[derive(Debug, Default)]
pub struct StaticPlan {
    /// The name of the operation.
    pub operation: &'static str,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The ports of a PE; "shared" in a complete network.
    pub ports: &'static str,
    /// The name of the tree or network as typed.
    pub name: String,
    /// The connected PEs; `None` in a complete network.
    pub edges: Option<Vec<[PeId; 2]>>,
    /// The network's node of each PE, if a tree spans a network.
    pub nodes: Option<Vec<u32>>,
    /// The trees of a cover.
    pub trees: Vec<Tree>,
    /// The number of PEs.
    pub pes: usize,
    /// The nonnull messages.
    pub messages: Vec<PlannedMessage>,
    /// The crossings.
    pub crossings: Crossings,
    /// The control items by step, each with the index of its tree.
    pub control: Vec<(usize, ControlPlan)>,
    /// The step of the last arrival.
    pub time_steps: u64,
    /// A lower bound of the steps of any plan.
    pub bound_steps: u64,
    /// The largest number of flits that a PE keeps for others at the end of a step.
    pub kept_flits: u64,
    /// The state machines that run it in lock step.
    pub played: Played,
}

/// A message of a plan.
#[derive(Debug)]
pub struct PlannedMessage {
    /// The number of the message.
    pub id: u64,
    /// The source.
    pub source: PeId,
    /// The destinations.
    pub destinations: Vec<PeId>,
    /// The length.
    pub flits: u64,
}

/// The crossings of a plan.
#[derive(Debug)]
pub enum Crossings {
    /// All crossings.
    Listed(Vec<Leg>),
    /// Messages from the root of a tree that do not stop on the way. For a million PEs a list of their
    /// crossings would be too long.
    Ways(Arc<Tree>, Vec<MessagePlan>),
}

impl Default for Crossings {
    fn default() -> Crossings {
        Crossings::Listed(Vec::new())
    }
}

impl Crossings {
    /// Returns for each message the first and the last step in which any of it crosses an edge.
    fn steps(&self) -> BTreeMap<u64, [u64; 2]> {
        let mut steps: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        let mut take = |message: u64, [first, last]: [u64; 2]| {
            let known = steps.entry(message).or_insert([first, last]);
            *known = [known[0].min(first), known[1].max(last)];
        };
        match self {
            Crossings::Listed(legs) => {
                for leg in legs {
                    let last = leg.first_step + (leg.flits - 1) * leg.every;
                    take(leg.message.0, [leg.first_step, last]);
                }
            }
            Crossings::Ways(_, plans) => {
                for plan in plans {
                    take(plan.pe.0.into(), [plan.first_step, plan.arrival_step]);
                }
            }
        }
        steps
    }

    /// Returns all crossings in order.
    pub fn legs(&self) -> Box<dyn Iterator<Item = Leg> + '_> {
        match self {
            Crossings::Listed(legs) => Box::new(legs.iter().copied()),
            Crossings::Ways(tree, messages) => {
                Box::new(messages.iter().flat_map(|message| legs_of(tree, message)))
            }
        }
    }
}

/// Returns the edges of a tree.
pub fn edges_of(tree: &Tree) -> Vec<[PeId; 2]> {
    let edges = tree.pes();
    edges
        .filter_map(|pe| Some([tree.parent(pe)?, pe]))
        .collect()
}

/// Plans a scatter from any PE, farthest destination first; with many ports, in each branch.
pub fn scatter(args: &PlanScatterArgs) -> Result<StaticPlan, Vec<PlanError>> {
    let (topology, lengths) = topology_and_lengths(&args.plan, SpanningArg::Bfs)?;
    let from = source(args.from, &topology.tree).map_err(|fault| vec![fault.into()])?;
    let tree = Arc::new(topology.tree.rerooted(from));
    let flits = deal_flits(&lengths, &tree).map_err(|fault| vec![fault.into()])?;
    let plans = match args.ports {
        Ports::Multi => plan_scatter_by_branch(&tree, &flits),
        Ports::Single => plan_scatter(&tree, &flits, &farthest_first(&tree, &flits)).messages,
    };
    let message = |plan: &MessagePlan| PlannedMessage {
        id: plan.pe.0.into(),
        source: from,
        destinations: vec![plan.pe],
        flits: plan.flits,
    };
    let time_steps = plans.iter().map(|plan| plan.arrival_step).max();
    let has_relay = plans.iter().any(|plan| tree.depth(plan.pe) > 1);
    let played = Played::by_ports(args.ports, || Played::ByAll {
        tree: tree.clone(),
        operation: Operation::Scatter,
        flits,
    });
    Ok(StaticPlan {
        operation: "scatter",
        algorithm: "fdf".to_owned(),
        ports: args.ports.name(),
        name: topology.name.clone(),
        edges: Some(edges_of(&topology.tree)),
        nodes: topology.nodes.clone(),
        pes: tree.len(),
        messages: plans.iter().map(message).collect(),
        time_steps: time_steps.unwrap_or(0),
        // Farthest first is optimal, in each branch as well.
        bound_steps: time_steps.unwrap_or(0),
        kept_flits: u64::from(has_relay),
        played,
        crossings: Crossings::Ways(tree, plans),
        trees: Vec::new(),
        control: Vec::new(),
    })
}

#[derive(Serialize)]
struct PlanReport<'a> {
    operation: &'static str,
    algorithm: &'a str,
    ports: &'static str,
    pes: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "edges")]
    edges: Option<&'a [[PeId; 2]]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    complete: bool,
    time_steps: u64,
    bound_steps: u64,
    proof: String,
    kept_flits: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_links: Option<OnLinks>,
    #[serde(skip_serializing_if = "<[Tree]>::is_empty", serialize_with = "parents")]
    trees: &'a [Tree],
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Vec<Message>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crossings")]
    crossings: Option<&'a Crossings>,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "control")]
    control: &'a [(usize, ControlPlan)],
}

#[derive(Serialize)]
struct Message {
    id: u64,
    source: u32,
    destinations: Vec<u32>,
    flits: u64,
    /// Additional values for a scatter or a gather.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    of_pe: Option<OfPe>,
}

/// Values that a plan of a scatter or a gather always has for the message of a PE.
#[derive(Serialize)]
struct OfPe {
    pe: u64,
    /// The step in which its first flit leaves its source.
    first_step: u64,
    /// The step in which its last flit reaches its destination.
    arrival_step: u64,
}

/// A control item on one of several trees.
#[derive(Serialize)]
struct OfTree {
    tree: usize,
    #[serde(flatten)]
    item: Item,
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

fn parents<S: Serializer>(trees: &&[Tree], to: S) -> Result<S::Ok, S::Error> {
    let parents = |tree: &Tree| {
        let parents = tree.pes().map(|pe| tree.parent(pe).map(|parent| parent.0));
        parents.collect::<Vec<_>>()
    };
    to.collect_seq(trees.iter().map(parents))
}

fn crossings<S: Serializer>(all: &Option<&Crossings>, to: S) -> Result<S::Ok, S::Error> {
    let legs = all.iter().flat_map(|all| all.legs());
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

fn control<S: Serializer>(control: &&[(usize, ControlPlan)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(control.iter().map(|(tree, item)| OfTree {
        tree: *tree,
        item: item.into(),
    }))
}

impl StaticPlan {
    /// Prints the plan in the requested format, after the simulation if that is requested.
    ///
    /// # Errors
    ///
    /// Returns an error if the simulation differs, or if the plan is too large to draw.
    pub fn write(
        &self,
        asked: PrintArgs,
        out: &mut dyn Write,
    ) -> Result<io::Result<()>, Vec<PlanError>> {
        let PrintArgs {
            format,
            simulate,
            summary,
            links,
        } = asked;
        let simulated = match simulate {
            true => against_crossings(self).map_err(|fault| vec![fault])?,
            false => String::new(),
        };
        let on_links = self.on_links(&links).map_err(|fault| vec![fault.into()])?;
        let simulated = on_links.map_or(String::new(), |it| it.text()) + &simulated;
        Ok(match format {
            Format::Json => self.write_json(summary, on_links, out),
            Format::Svg => {
                let scene = self.scene().map_err(|fault| vec![fault])?;
                out.write_all(scene.svg().as_bytes())
            }
            _ => out.write_all((self.text(summary) + &simulated).as_bytes()),
        })
    }

    /// Returns `optimal`, or the distance from the bound.
    fn proof(&self) -> String {
        match self.time_steps - self.bound_steps {
            0 => "optimal".to_owned(),
            over => format!("gap {:.1}%", over as f64 * 100.0 / self.bound_steps as f64),
        }
    }

    /// Returns the time on the requested links.
    fn on_links(&self, links: &LinkArgs) -> Result<Option<OnLinks>, TooMuch> {
        let ports = match self.ports {
            "multi" => cost::Ports::PerEdge,
            _ => cost::Ports::Single,
        };
        let flits = self.crossings.legs().map(|leg| leg.flits);
        let flits = flits.fold(0, u64::saturating_add);
        links.time(self.pes, ports, flits, |_| {
            let control = self.control.iter().map(|(_, item)| item.sent());
            let legs: Vec<Leg> = self.crossings.legs().collect();
            of_legs(&legs, false).into_iter().chain(control).collect()
        })
    }

    fn write_json(
        &self,
        summary: bool,
        on_links: Option<OnLinks>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let report = PlanReport {
            operation: self.operation,
            algorithm: &self.algorithm,
            ports: self.ports,
            pes: self.pes,
            edges: self.edges.as_deref().filter(|_| !summary),
            nodes: self.nodes.as_deref().filter(|_| !summary),
            complete: self.edges.is_none(),
            time_steps: self.time_steps,
            bound_steps: self.bound_steps,
            proof: self.proof(),
            kept_flits: self.kept_flits,
            on_links,
            trees: if summary { &[] } else { &self.trees },
            messages: (!summary).then(|| self.told_messages()),
            control_items: (summary && !self.control.is_empty()).then_some(self.control.len()),
            crossings: (!summary).then_some(&self.crossings),
            control: if summary { &[] } else { &self.control },
        };
        serde_json::to_writer(&mut *out, &report)?;
        out.write_all(b"\n")
    }

    fn told_messages(&self) -> Vec<Message> {
        let is_of_pes = matches!(self.operation, "scatter" | "gather");
        let steps = match is_of_pes {
            true => self.crossings.steps(),
            false => BTreeMap::new(),
        };
        let told = |message: &PlannedMessage| Message {
            id: message.id,
            source: message.source.0,
            destinations: message.destinations.iter().map(|pe| pe.0).collect(),
            flits: message.flits,
            of_pe: steps.get(&message.id).map(|&[first, arrival]| OfPe {
                pe: message.id,
                first_step: first,
                arrival_step: arrival,
            }),
        };
        self.messages.iter().map(told).collect()
    }

    /// Returns the source of all messages, if they have the same one.
    pub fn source(&self) -> Option<PeId> {
        let sources = self.messages.iter().map(|message| message.source);
        let first = sources.clone().next()?;
        sources
            .clone()
            .all(|source| source == first)
            .then_some(first)
    }

    fn text(&self, summary: bool) -> String {
        let flits = self.messages.iter().map(|message| message.flits).sum();
        let source = self.source();
        let mut out = format!(
            "{} {}: {}, {}, {} ports; {} in {}{}\n\n",
            self.operation,
            self.name,
            counted(self.pes as u64, "PE", "PEs"),
            self.algorithm,
            self.ports,
            counted(flits, "flit", "flits"),
            counted(self.messages.len() as u64, "message", "messages"),
            source.map_or(String::new(), |source| format!(" from {source}")),
        );
        if !summary {
            out.push_str(&match source {
                Some(_) => lines(self.arrivals(), 2),
                None => lines(self.traffic(), 1),
            });
            out.push('\n');
        }
        if !self.trees.is_empty() {
            let pes = self.trees.iter().flat_map(|tree| {
                let depths = tree.pes().map(|pe| tree.depth(pe));
                depths.collect::<Vec<_>>()
            });
            let (trees, depth) = (self.trees.len(), pes.max().unwrap_or(0));
            out.push_str(&format!("  trees        {trees}, depth {depth}\n"));
        }
        if let Some((_, last)) = self.control.last() {
            let items = self.control.len();
            out.push_str(&format!(
                "  control      {items} items, the last in step {}\n",
                last.step
            ));
        }
        out.push_str(&format!(
            "  time         {}\n  bound        {}: {}\n  kept         at most {} in a PE\n",
            counted(self.time_steps, "step", "steps"),
            counted(self.bound_steps, "step", "steps"),
            self.proof(),
            counted(self.kept_flits, "flit", "flits"),
        ));
        out
    }

    /// Returns a row for each PE: its sender, and the steps in which the first and the last flit for
    /// the PE arrive.
    fn arrivals(&self) -> Table {
        let mut table = table(["PE", "from", "first flit", "last flit"]);
        let is_for = |leg: &Leg| self.messages.len() <= 1 || leg.message == leg.to.into();
        let mut came: BTreeMap<PeId, (Vec<PeId>, u64, u64)> = BTreeMap::new();
        for leg in self.crossings.legs().filter(is_for) {
            let (from, first, end) = came.entry(leg.to).or_insert((vec![], u64::MAX, 0));
            if !from.contains(&leg.from) {
                from.push(leg.from);
            }
            *first = leg.first_step.min(*first);
            *end = last_step(&leg).max(*end);
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

    /// Returns a row for each PE: the traffic on its ports, with that for other PEs, and its first and
    /// last step.
    fn traffic(&self) -> Table {
        let mut table = table(["PE", "sends", "gets", "first step", "last step"]);
        // Flits out and in, the first step and the last one.
        let mut ports = vec![(0, 0, u64::MAX, 0); self.pes];
        for leg in self.crossings.legs() {
            ports[leg.from.index()].0 += leg.flits;
            ports[leg.to.index()].1 += leg.flits;
            for pe in [leg.from, leg.to] {
                let (_, _, first, last) = &mut ports[pe.index()];
                *first = leg.first_step.min(*first);
                *last = last_step(&leg).max(*last);
            }
        }
        for (pe, (sends, gets, first, last)) in (0..).map(PeId).zip(ports) {
            let step = |step: u64| match sends + gets {
                0 => "-".to_owned(),
                _ => step.to_string(),
            };
            table.add_row([
                pe.to_string(),
                sends.to_string(),
                gets.to_string(),
                step(first),
                step(last),
            ]);
        }
        table
    }
}

/// Returns the step in which the last flit of a leg crosses.
fn last_step(leg: &Leg) -> u64 {
    leg.first_step + (leg.flits - 1) * leg.every
}
