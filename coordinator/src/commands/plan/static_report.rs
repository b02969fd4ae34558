//! The report of a plan that is a list of crossings, and its picture.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flitcast_plan::cost;
use flitcast_plan::on_links::of_hops;
use flitcast_proto::items::ScheduledHop;
use flitcast_proto::{PeId, Tree};
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::report::{Numbers, PlanReport, control_item, proof};
use super::simulate::against_crossings;
use super::static_plan::{PlannedMessage, StaticPlan, last_step};
use super::svg::{Axis, MAX_BANDS, Moment, Scene};
use crate::render::rows::notable;
use crate::render::tree::parents;
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::on_links::{LinkArgs, OnLinks};
use flitcast_cluster::text::figures::{Table, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen;
use flitcast_cluster::text::title::title;

impl StaticPlan {
    /// Prints the plan in the requested format, after the simulation if that is requested.
    pub fn write(&self, print: PrintArgs, out: &mut dyn Write) -> anyhow::Result<io::Result<()>> {
        let simulated = match print.simulate {
            true => against_crossings(self)?,
            false => String::new(),
        };
        let on_links = self.on_links(&print.links)?;
        let mut report = PlanReport::new(self.heading(), print);
        self.fields(&mut report, on_links);
        self.figures(&mut report);
        report.simulated(&simulated);
        match self.source() {
            Some(_) => report.rows(2, &["first flit", "from"], || self.arrivals()),
            None => report.rows(1, &["first step", "gets", "sends"], || self.traffic()),
        }?;
        report.scene(self.pes, || self.scene())?;
        Ok(report.write(out))
    }

    /// Returns the time on the requested links.
    fn on_links(&self, links: &LinkArgs) -> Result<Option<OnLinks>, PlanTooLarge> {
        let ports = match self.ports {
            "multi" => cost::Ports::PerEdge,
            _ => cost::Ports::Single,
        };
        let flits = self.crossings.hops().map(|hop| hop.flits);
        let flits = flits.fold(0, u64::saturating_add);
        links.time(self.pes, ports, flits, |_| {
            let control = self.control.iter().map(|(_, item)| item.sent());
            let hops: Vec<ScheduledHop> = self.crossings.hops().collect();
            of_hops(&hops, false).into_iter().chain(control).collect()
        })
    }

    fn title(&self) -> String {
        let trees = counted(self.trees.len() as u64, "tree", "trees");
        let over = format!("{} over {trees}", self.name);
        let (name, by) = match self.operation {
            _ if self.trees.is_empty() => (&self.name, &*self.algorithm),
            // There is one algorithm for several trees.
            "broadcast" => (&over, ""),
            _ => (&over, &*self.algorithm),
        };
        title(self.operation, name, by)
    }

    fn heading(&self) -> String {
        let flits = self.messages.iter().map(|message| message.flits).sum();
        let source = self.source().map(|source| format!(" from {source}"));
        format!(
            "{}: {}, {} ports; {} in {}{}",
            self.title(),
            counted(self.pes as u64, "PE", "PEs"),
            self.ports,
            counted(flits, "flit", "flits"),
            counted(self.messages.len() as u64, "message", "messages"),
            source.unwrap_or_default(),
        )
    }

    fn fields<'a>(&'a self, report: &mut PlanReport<'a>, on_links: Option<OnLinks>) {
        report.field("operation", self.operation);
        report.field("algorithm", &self.algorithm);
        report.field("ports", self.ports);
        report.field("pes", self.pes);
        if let Some(edges) = &self.edges {
            report.list("edges", || edges.iter().map(|edge| edge.map(|pe| pe.0)));
        }
        if let Some(nodes) = &self.nodes {
            report.detail("nodes", nodes);
        }
        report.optional("complete", self.edges.is_none().then_some(true));
        report.field("time_steps", self.time_steps);
        report.field("bound_steps", self.bound_steps);
        report.field("proof", proof(self.time_steps, self.bound_steps));
        report.field("kept_flits", self.kept_flits);
        report.on_links(on_links);
        if !self.trees.is_empty() {
            report.list("trees", || self.trees.iter().map(parents));
        }
        report.list("messages", || self.messages_json());
        let has_control = !self.control.is_empty();
        if has_control {
            report.total("control_items", self.control.len());
        }
        report.list("crossings", || self.crossings.hops().map(crossing));
        if has_control {
            let item = |(tree, item): &(usize, _)| control_item(Some(*tree), item);
            report.list("control", move || self.control.iter().map(item));
        }
    }

    /// Returns the messages as JSON, those of a scatter or a gather with their steps.
    fn messages_json(&self) -> impl Iterator<Item = Value> {
        let steps = match self.operation {
            "scatter" | "gather" => self.crossings.steps(),
            _ => BTreeMap::new(),
        };
        self.messages.iter().map(move |message: &PlannedMessage| {
            let destinations = message.destinations.iter().map(|pe| pe.0);
            let mut object = json!({
                "id": message.id,
                "source": message.source.0,
                "destinations": destinations.collect::<Vec<_>>(),
                "flits": message.flits,
            });
            if let Some([first, arrival]) = steps.get(&message.id) {
                object["pe"] = message.id.into();
                object["first_step"] = (*first).into();
                object["arrival_step"] = (*arrival).into();
            }
            object
        })
    }

    fn figures(&self, report: &mut PlanReport<'_>) {
        if !self.trees.is_empty() {
            let depth = |tree: &Tree| tree.pes().map(|pe| tree.depth(pe)).max();
            let depth = self.trees.iter().filter_map(depth).max().unwrap_or(0);
            report.line("trees", format!("{}, depth {depth}", self.trees.len()));
        }
        if let Some((_, last)) = self.control.last() {
            let (items, step) = (self.control.len(), last.step);
            report.line("control", format!("{items} items, the last in step {step}"));
        }
        report.line("time", counted(self.time_steps, "step", "steps"));
        let bound = counted(self.bound_steps, "step", "steps");
        let proof = proof(self.time_steps, self.bound_steps);
        report.line("bound", format!("{bound}: {proof}"));
        let kept = counted(self.kept_flits, "flit", "flits");
        report.line("kept", format!("at most {kept} in a PE"));
    }

    /// Returns a row for each PE: its sender, and the steps in which the first and the last flit for
    /// the PE arrive.
    fn arrivals(&self) -> (Table, String) {
        let mut table = table(["PE", "from", "first flit", "last flit"]);
        let is_for = |hop: &ScheduledHop| self.messages.len() <= 1 || hop.message == hop.to.into();
        let mut arrivals: BTreeMap<PeId, (Vec<PeId>, u64, u64)> = BTreeMap::new();
        for hop in self.crossings.hops().filter(is_for) {
            let (from, first, end) = arrivals.entry(hop.to).or_insert((vec![], u64::MAX, 0));
            if !from.contains(&hop.from) {
                from.push(hop.from);
            }
            *first = hop.first_step.min(*first);
            *end = last_step(&hop).max(*end);
        }
        let arrivals: Vec<_> = arrivals.into_iter().collect();
        let (shown, more) = notable(&arrivals, screen::detail(), |(_, (_, first, last))| {
            (Some(*last), *first)
        });
        for (pe, (from, first, last)) in shown {
            let from: Vec<String> = from.iter().map(|pe| called(*pe)).collect();
            table.add_row([
                called(*pe),
                from.join(" "),
                first.to_string(),
                last.to_string(),
            ]);
        }
        (table, more)
    }

    /// Returns a row for each PE: the traffic on its ports, with that for other PEs, and its first and
    /// last step.
    fn traffic(&self) -> (Table, String) {
        let mut table = table(["PE", "sends", "gets", "first step", "last step"]);
        // Flits out and in, the first step and the last one.
        let pes = (0..self.pes as u32).map(PeId);
        let mut ports: Vec<_> = pes.map(|pe| (pe, 0, 0, u64::MAX, 0)).collect();
        for hop in self.crossings.hops() {
            ports[hop.from.index()].1 += hop.flits;
            ports[hop.to.index()].2 += hop.flits;
            for pe in [hop.from, hop.to] {
                let (_, _, _, first, last) = &mut ports[pe.index()];
                *first = hop.first_step.min(*first);
                *last = last_step(&hop).max(*last);
            }
        }
        let (shown, more) = notable(&ports, screen::detail(), |(_, sends, gets, _, last)| {
            (Some(*last), sends + gets)
        });
        for (pe, sends, gets, first, last) in shown {
            let step = |step: &u64| match sends + gets {
                0 => "-".to_owned(),
                _ => step.to_string(),
            };
            table.add_row([
                called(*pe),
                sends.to_string(),
                gets.to_string(),
                step(first),
                step(last),
            ]);
        }
        (table, more)
    }

    fn scene(&self) -> anyhow::Result<Scene> {
        let flits: u64 = self.messages.iter().map(|message| message.flits).sum();
        let (what, classes) = self.colours(flits);
        let mut scene = Scene {
            title: self.title(),
            summary: format!(
                "{}, {} ports, {}, {}",
                counted(self.pes as u64, "PE", "PEs"),
                self.ports,
                counted(self.messages.len() as u64, "message", "messages"),
                counted(flits, "flit", "flits"),
            ),
            pes: self.pes,
            tree: self.tree(),
            time: Moment::step(self.time_steps),
            bound: Some(Moment::step(self.bound_steps)),
            is_multi_port: self.ports == "multi",
            classes,
            what,
            ..Scene::default()
        };
        self.add_bands(&mut scene)?;
        if self.operation == "gather" {
            let begins = scene.bands.iter().map(|band| band.out[0]);
            let begin = begins.min_by(f64::total_cmp).unwrap_or(0.0);
            let end = Axis::Steps.behind(self.time_steps as f64);
            scene.phases = vec![
                Moment::new(begin, "synchronization"),
                Moment::new(end, "transmission"),
            ];
        }
        Ok(scene)
    }

    /// Adds a band for each run of flits over an edge.
    fn add_bands(&self, scene: &mut Scene) -> anyhow::Result<()> {
        let trees = (0..).zip(&self.trees).flat_map(|(number, tree)| {
            let arc = move |pe| Some(((tree.parent(pe)?, pe), number));
            tree.pes().filter_map(arc)
        });
        let tree_of: BTreeMap<(PeId, PeId), usize> = trees.collect();
        let messages = self.messages.iter().zip(0..);
        let messages = messages.map(|(message, place)| (message.id, (message, place)));
        let messages: BTreeMap<u64, (&PlannedMessage, usize)> = messages.collect();
        for hop in self.crossings.hops() {
            let Some(&(message, place)) = messages.get(&hop.message.0) else {
                continue;
            };
            for run in runs(hop, self.operation == "broadcast") {
                let flit = || (run.offset + 1).to_string();
                let (class, name) = match self.operation {
                    "broadcast" if self.trees.is_empty() => (run.offset as usize, flit()),
                    "broadcast" => {
                        let tree = tree_of.get(&(run.from, run.to));
                        (tree.copied().unwrap_or(0), flit())
                    }
                    "gossip" | "exchange" => (message.source.index(), self.name_of(message)),
                    _ => (place, self.name_of(message)),
                };
                let begin = run.first_step as f64;
                let end = begin + run.flits as f64;
                let spans = [[begin - 1.0, end - 1.0], [begin, end]];
                scene.add((Some(class), name), [run.from, run.to], spans)?;
            }
        }
        Ok(())
    }

    /// Returns the legend of a band, and the names of the colours: of flits, trees, sources or
    /// messages.
    fn colours(&self, flits: u64) -> (&'static str, Vec<String>) {
        let numbered =
            |what: &str, last: u64| (1..=last).map(|it| format!("{what} {it}")).collect();
        let sources = || (0..self.pes as u32).map(|pe| called(PeId(pe))).collect();
        match self.operation {
            // Each has a band, unless there is no other PE.
            "broadcast" if self.trees.is_empty() => (
                "flit of the message: slanted where it crosses, a bar where it arrives",
                numbered("flit", flits.min(MAX_BANDS as u64)),
            ),
            "broadcast" => (
                "flits on one tree: slanted where they cross, a bar where they arrive",
                numbered("tree", self.trees.len() as u64),
            ),
            "exchange" => (
                "i→j or i: flits from Pi, slanted where they cross, a bar where they arrive",
                sources(),
            ),
            "gossip" => (
                "flits of one source: slanted where they cross, a bar where they arrive",
                sources(),
            ),
            _ => (
                "message Mi: slanted where it crosses, a bar where it arrives",
                self.messages.iter().map(|one| self.name_of(one)).collect(),
            ),
        }
    }

    fn name_of(&self, message: &PlannedMessage) -> String {
        match (self.operation, &message.destinations[..]) {
            ("exchange", [to]) => format!("{}→{}", message.source.0, to.0),
            ("gossip", _) => message.source.to_string(),
            _ => format!("M{}", message.id),
        }
    }

    /// Returns the tree that all crossings are over: that of the edges, else the one in which each PE
    /// receives everything from one other.
    fn tree(&self) -> Option<Tree> {
        let root = self.source().unwrap_or(PeId::ROOT);
        let mut parents = vec![None; self.pes];
        match &self.edges {
            Some(edges) if edges.len() + 1 == self.pes && self.trees.is_empty() => {
                for [parent, child] in edges {
                    parents[child.index()] = Some(*parent);
                }
                let tree = Tree::from_parents(parents).ok()?;
                Some(tree.rerooted(root))
            }
            _ => {
                for hop in self.crossings.hops() {
                    let parent = &mut parents[hop.to.index()];
                    if *parent.get_or_insert(hop.from) != hop.from {
                        return None;
                    }
                }
                let tree = Tree::with_absent(root, parents).ok()?;
                (tree.count() == self.pes).then_some(tree)
            }
        }
    }
}

fn crossing(hop: ScheduledHop) -> Numbers<7> {
    Numbers([
        ("message", hop.message.0),
        ("offset", hop.offset),
        ("flits", hop.flits),
        ("from", hop.from.0.into()),
        ("to", hop.to.0.into()),
        ("first_step", hop.first_step),
        ("every", hop.every),
    ])
}

/// Returns the flits that cross without a gap as one hop; with `singly`, each flit.
fn runs(hop: ScheduledHop, singly: bool) -> impl Iterator<Item = ScheduledHop> {
    let (runs, flits) = match hop.every == 1 && !singly {
        true => (1, hop.flits),
        false => (hop.flits, 1),
    };
    (0..runs).map(move |run| ScheduledHop {
        offset: hop.offset + run,
        flits,
        first_step: hop.first_step + run * hop.every,
        ..hop
    })
}
