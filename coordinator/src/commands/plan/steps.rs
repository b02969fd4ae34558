//! `flitcast plan scatter` from P0 and `gather`: plans in steps of messages that do not wait on their way, their report,
//! and its picture: each message on its whole way, and the control items.

use std::io::{self, Write};

use anyhow::{anyhow, bail, ensure};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::cover_plan::steps_of_gather_on_a_tree;
use flitcast_plan::algorithms::plan::{MessagePlan, Plan, plan, plan_gather, plan_scatter};
use flitcast_plan::cost::Ports::Single;
use flitcast_proto::PeId;
use flitcast_proto::ops::Direction;

use super::args::{Order, PlanGatherArgs, PlanScatterArgs, PrintArgs};
use super::input::PlanInput;
use super::report::{Numbers, PlanReport, control_item};
use super::simulate::against_plan;
use super::svg::{Band, Moment, Scene};
use crate::render::tree::parents;
use flitcast_cluster::algorithms::method::operation_by;
use flitcast_cluster::job::request::gather_operation;
use flitcast_cluster::options::order::gather_fault;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::sync::TokenArg;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{self, fitted};
use flitcast_cluster::text::pe_names::{self, called};
use flitcast_cluster::text::phrases::{counted, names as names_of};
use flitcast_cluster::text::screen::{self, Detail, columns};
use flitcast_cluster::text::title::title;

pub struct Planned {
    pub plan: Plan,
    /// The order in which P0 sends the messages of a scatter; in a gather, the given order in which it
    /// takes them, or none.
    pub order: Vec<PeId>,
    /// L_i by PE index; `[0]` is 0.
    pub flits: Vec<u64>,
    pub tree_name: String,
    pub algorithm: &'static str,
    pub sync: Option<&'static str>,
    /// With `--ports multi`: the steps with single ports.
    pub single_port_steps: Option<u64>,
    /// For a gather by many ports: the steps if P0 receives each branch on a separate port.
    pub port_each_steps: Option<u64>,
}

pub fn scatter(args: &PlanScatterArgs) -> Result<Planned, Faults> {
    let input = PlanInput::of(&args.plan, SpanningArg::Bfs)?;
    let order = args.order.as_ref().unwrap_or(&Order::FarthestFirst);
    let (order, algorithm) = input.in_order(order)?;
    let (tree, flits) = (input.tree, input.flits);
    Ok(Planned {
        plan: plan_scatter(&tree, &flits, &order),
        order,
        flits,
        tree_name: input.name,
        algorithm,
        sync: None,
        single_port_steps: None,
        port_each_steps: None,
    })
}

pub fn gather(args: &PlanGatherArgs) -> Result<Planned, Faults> {
    // With single ports a node of many children costs time while it synchronises.
    let spanning = match args.ports {
        Ports::Single => SpanningArg::Broadcast,
        Ports::Multi => SpanningArg::Bfs,
    };
    let input = PlanInput::of(&args.plan, spanning)?;
    let order = args.order.as_ref().map(|text| input.in_given_order(text));
    let order = order.transpose()?;
    let (name, tree, flits) = (input.name, input.tree, input.flits);
    let operation = match args.ports {
        Ports::Single => gather_operation(&tree, &name, args.algorithm.as_deref(), args.token)?,
        Ports::Multi => multi_port(args.algorithm.as_deref(), args.token)?,
    };
    let single_port = Algorithm::CERTIFICATION_PIPELINED;
    let by_name = |name: &str| operation_by(single_port.collective().name(), name);
    if let Some(algorithm) = &args.algorithm
        && by_name(algorithm).is_some_and(|one| !one.has_plan())
    {
        let why = "has no schedule to plan: see `flitcast compare`";
        return Err(anyhow!("--algorithm {algorithm} {why}").into());
    }
    let planned = |operation| match &order {
        Some(order) => plan_gather(&tree, operation, &flits, order)
            .map_err(|fault| anyhow!("--order: {}", gather_fault(fault))),
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
        order: order.unwrap_or_default(),
        flits,
        tree_name: name,
        algorithm: operation.name(),
        sync: operation.sync(),
        single_port_steps,
        port_each_steps,
    })
}

fn multi_port(algorithm: Option<&str>, token: Option<TokenArg>) -> anyhow::Result<Algorithm> {
    let parallel = Algorithm::CERTIFICATION_PARALLEL;
    let other = algorithm.filter(|algorithm| {
        let found = operation_by(parallel.collective().name(), algorithm);
        found.is_some_and(|one| one.has_plan() && one.name() != parallel.name())
    });
    let unfit = match (other, token) {
        (Some(other), _) => format!("--algorithm {other}"),
        (None, Some(_)) => "--token".to_owned(),
        (None, None) => return Ok(parallel),
    };
    bail!("--ports multi runs certification's synchronisation in parallel: leave out {unfit}")
}

/// Limit of cells of a table that a user could still read, or page through.
const MAX_CELLS: u64 = 2_000_000;
/// The indent of other tables, which this one does not have.
const INDENT: usize = 2;

impl Planned {
    /// Prints the plan in the requested format, after the simulation if that is requested.
    pub fn write(&self, print: PrintArgs, out: &mut dyn Write) -> anyhow::Result<io::Result<()>> {
        let simulated = match print.simulate {
            true => against_plan(&self.plan, &self.flits, &self.order)?,
            false => String::new(),
        };
        let plan = &self.plan;
        let (pes, crossings) = (plan.tree.len(), plan.crossing_count());
        let on_links = |timing: &_| plan.on_links(timing);
        let on_links = print.links.time(pes, Single, crossings, on_links)?;
        let mut report = PlanReport::new(self.title(), print).below_table(13);
        self.times(&mut report);
        let total: u64 = self.flits.iter().sum();
        report.total("pes", pes);
        report.total("nonnull_messages", plan.messages.len());
        report.total("flits", total);
        report.total("control_items", plan.control.len());
        report.on_links(on_links);
        report.list("messages", || plan.messages.iter().map(message));
        report.list("control", || {
            plan.control.iter().map(|it| control_item(None, it))
        });
        self.figures(&mut report, total);
        report.simulated(&simulated);
        report.table(|| table(plan))?;
        report.scene(pes, || Ok(scene(plan, self.title())))?;
        Ok(report.write(out))
    }

    /// Adds the fields of JSON up to the times.
    fn times<'a>(&'a self, report: &mut PlanReport<'a>) {
        let plan = &self.plan;
        report.field("operation", plan.operation.collective().name());
        report.field("algorithm", self.algorithm);
        report.field("sync", self.sync);
        report.detail("parents", parents(&plan.tree));
        report.detail("lengths", &self.flits);
        // The order in which messages leave the source of a scatter; in a gather, the given order in
        // which P0 takes them.
        if !self.order.is_empty() {
            report.list("order", || self.order.iter().map(|pe| pe.0));
        }
        report.field("time_steps", plan.time_steps);
        report.field("lower_bound_steps", plan.lower_bound_steps);
        if let Some(bound) = plan.upper_bound() {
            report.field("upper_bound_steps", bound.steps);
            report.field("upper_bound_theorem", bound.theorem);
            report.field("upper_bound_formula", bound.formula);
            report.optional("upper_bound_printed", bound.printed);
        }
        report.optional("single_port_time_steps", self.single_port_steps);
        report.optional("port_each_time_steps", self.port_each_steps);
    }

    /// Returns a title such as "gather on path:6 by certification, serial".
    fn title(&self) -> String {
        let operation = self.plan.operation;
        let sync = self.sync.map(|sync| format!(", {sync}"));
        let is_given =
            operation.collective().direction() == Direction::Up && !self.order.is_empty();
        let name = operation.collective().name();
        let title = title(name, &self.tree_name, self.algorithm);
        let order = if is_given { ", in a given order" } else { "" };
        title + &sync.unwrap_or_default() + order
    }

    fn figures(&self, report: &mut PlanReport<'_>, total: u64) {
        let plan = &self.plan;
        report.size(&plan.tree, plan.messages.len(), total);
        let steps = plan.time_steps;
        if let names @ [_, ..] = &pe_names::all()[..] {
            let ids = plan.tree.ids().take(names.len());
            report.line("names", names_of(&ids.map(called).collect::<Vec<_>>()));
        }
        let is_scatter = plan.operation.collective().direction() == Direction::Down;
        let by_the_paper = match steps + 1 {
            count if is_scatter && steps > 0 => {
                format!(" ({count} by the paper's count, which begins at step 0)")
            }
            _ => String::new(),
        };
        let in_steps = |steps: u64| counted(steps, "step", "steps");
        report.line("time", in_steps(steps) + &by_the_paper);
        let over = match plan.lower_bound_steps {
            0 => String::new(),
            bound => format!(" ({:.3} times it)", steps as f64 / bound as f64),
        };
        report.line("lower bound", in_steps(plan.lower_bound_steps) + &over);
        if let Some(bound) = plan.upper_bound() {
            let (steps, theorem, formula) = (bound.steps, bound.theorem, bound.formula);
            let by = match bound.printed {
                Some(printed) => format!("{theorem} prints {printed}, which does not hold"),
                None => theorem.to_owned(),
            };
            let steps = in_steps(steps);
            report.line("upper bound", format!("{steps}, {formula} ({by})"));
        }
        if let Some(last) = plan.control.last() {
            let (items, step) = (plan.control.len(), last.step);
            report.line("control", format!("{items} items, the last in step {step}"));
        }
        if let Some(single) = self.single_port_steps {
            let gain = in_steps(single.saturating_sub(steps));
            let than = format!("{gain} less than {single} with single ports, pipelined");
            report.line("many ports", than);
        }
        if let Some(each) = self.port_each_steps {
            let ports =
                "if P0 receives from each child on a separate port, as `gather --ports multi` does";
            report.line("a port each", format!("{}, {ports}", in_steps(each)));
        }
    }
}

fn message(message: &MessagePlan) -> Numbers<4> {
    Numbers([
        ("pe", message.pe.0.into()),
        ("flits", message.flits),
        ("first_step", message.first_step),
        ("arrival_step", message.arrival_step),
    ])
}

/// Returns the table. If its lines would have more than `width` characters, the columns of the PEs that have
/// least to do are left out.
fn in_columns(rows: &[Vec<String>], width: Option<usize>) -> String {
    let mut table = figures::table(&rows[0]);
    rows[1..].iter().for_each(|row| table.add_row(row));
    // P0 is a part of each message's way.
    let mut least: Vec<usize> = (2..rows[0].len()).collect();
    least.sort_by_cached_key(|column| rows.iter().filter(|row| !row[*column].is_empty()).count());
    let least: Vec<&str> = least.iter().map(|column| &*rows[0][*column]).collect();
    let shown = fitted(table, usize::MAX, &least, width.map(|width| width + INDENT));
    let lines = shown.lines().map(|line| line[INDENT..].to_owned() + "\n");
    let shown: String = lines.collect();
    let heading = shown.lines().next().unwrap_or_default();
    match heading.split_whitespace().count() < rows[0].len() {
        true => shown + "  PEs with less to do are left out: -v shows all\n",
        false => shown,
    }
}

fn table(plan: &Plan) -> anyhow::Result<String> {
    let pes = plan.tree.len();
    let cells = plan.time_steps.saturating_mul(pes as u64);
    let cells = cells.max(plan.crossing_count());
    ensure!(
        cells <= MAX_CELLS,
        "a table of this plan would have {cells} cells: use --summary, or --format json or svg"
    );
    let rows = flitcast_plan::trace::table(&plan.crossings(), pes);
    let width = columns().filter(|_| screen::detail() != Detail::Full);
    Ok(in_columns(&rows, width))
}

/// Returns the scene of a plan. Column t shows row t of the papers' figures: an item that crosses in step t is in
/// column t at its receiver, and in column t-1 at its sender.
fn scene(plan: &Plan, title: String) -> Scene {
    let flits = plan.messages.iter().map(|message| message.flits).sum();
    let mut summary = counted(plan.tree.len() as u64, "PE", "PEs");
    summary += &match plan.messages.len() {
        0 => ", nothing to send".to_owned(),
        messages => format!(
            ", {}, {}",
            counted(messages as u64, "message", "messages"),
            counted(flits, "flit", "flits"),
        ),
    };
    if !plan.control.is_empty() {
        let items = counted(plan.control.len() as u64, "control item", "control items");
        summary = format!("{summary}, {items}");
    }
    let control = plan.control.iter().map(|item| item.step).max().unwrap_or(0);
    let mut by_arrival: Vec<&MessagePlan> = plan.messages.iter().collect();
    by_arrival.sort_by_key(|message| (message.arrival_step, message.pe));
    let class = |message: &&MessagePlan| {
        let MessagePlan { pe, flits, .. } = message;
        let (first, last) = (message.first_step, message.arrival_step);
        let flits = counted(*flits, "flit", "flits");
        format!("M{}: {flits}, steps {first} to {last}", pe.0)
    };
    let band = |(class, message): (usize, &&MessagePlan)| {
        let (pe, begin) = (message.pe, message.first_step as f64 - 1.0);
        let end = begin + message.flits as f64;
        let hops = f64::from(plan.tree.depth(pe));
        let [from, to] = match plan.operation.collective().direction() {
            Direction::Up => [pe, PeId::ROOT],
            Direction::Down | Direction::Across => [PeId::ROOT, pe],
        };
        Band {
            class: Some(class),
            name: format!("M{}", pe.0),
            from,
            to,
            out: [begin, end],
            into: [begin + hops, end + hops],
        }
    };
    Scene {
        title,
        summary,
        pes: plan.tree.len(),
        tree: Some((*plan.tree).clone()),
        time: Moment::step(plan.time_steps),
        bound: Some(Moment::step(plan.lower_bound_steps)),
        shown: control as f64,
        classes: by_arrival.iter().map(class).collect(),
        what: "message Mi: bars at the PEs it passes, slanted where it crosses",
        bands: by_arrival.iter().enumerate().map(band).collect(),
        has_sources: true,
        control: plan.control.clone(),
        ..Scene::default()
    }
}

#[cfg(test)]
mod tests {
    use super::in_columns;

    #[test]
    fn a_narrow_table_has_the_columns_of_the_busiest_pes() {
        let table = "Step  P0  P1   P2  P3\n   1           a   b\n   2      c d  e   f\n";
        let rows = [
            ["Step", "P0", "P1", "P2", "P3"],
            ["   1", "", "", "a", "b"],
            ["   2", "", "c d", "e", "f"],
        ];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(in_columns(&rows, None), table);
        assert_eq!(in_columns(&rows, Some(21)), table);
        let two = "Step  P0  P2  P3\n   1      a   b\n   2      e   f\n";
        let more = "  PEs with less to do are left out: -v shows all\n";
        assert_eq!(in_columns(&rows, Some(18)), two.to_owned() + more);
        let none = "Step  P0\n   1\n   2\n";
        assert_eq!(in_columns(&rows, Some(3)), none.to_owned() + more);
    }
}
