//! Gossip on a ring, an array, a mesh, a torus or a complete network, in whole steps of the
//! wormhole model: the plan, and its report as a table of its steps, JSON with every packet, or a picture.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use flitcast_plan::Algorithm;
use flitcast_plan::cost::Ports;
use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{
    Gossip, GossipAlgorithm, GossipNetwork, MAX_FLITS, NameError, Packet, Prices, Step, StepCost,
    Unfit, choose, free_run,
};
use flitcast_plan::on_links::of_gossip;
use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::args::{PlanGossipArgs, PrintArgs};
use super::input::unfit;
use super::report::{Numbers, PlanReport};
use super::simulate::against_packets;
use super::svg::{Axis, Moment, SETUP, Scene};
use flitcast_cluster::algorithms::plan_limits::PlanTooLarge;
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::job::prices::typed;
use flitcast_cluster::options::flits::lengths_in_flits;
use flitcast_cluster::options::ports::Ports as PortsArg;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::tree::SpanningArg;
use flitcast_cluster::options::values::gossip_network;
use flitcast_cluster::options::workload::Lengths;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{Table, decimal, exact, table};
use flitcast_cluster::text::pe_names::called;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::title::title;

pub fn run(args: &PlanGossipArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let plan = planned(args)?;
    let simulated = match args.print.simulate {
        true => {
            // The tree that a run would begin with.
            let tree = Arc::new(args.tree.topology(SpanningArg::Bfs)?.tree);
            against_packets(&plan.gossip, &plan.algorithm, &tree)?
        }
        false => String::new(),
    };
    let on_links = on_links(args, &plan)?;
    Ok(plan.write(args.print, on_links, &simulated, out)?)
}

/// Returns the time on the requested links. In a complete network, a PE has one port.
fn on_links(args: &PlanGossipArgs, plan: &GossipPlan) -> Result<Option<OnLinks>, PlanTooLarge> {
    let gossip = &plan.gossip;
    let ports = match gossip.arena {
        GossipNetwork::Grid(_) => Ports::PerEdge,
        GossipNetwork::Complete(_) => Ports::Single,
    };
    // A run has its own schedules for some, whose flits do not wait for the rest of a packet.
    let mut own = Algorithm::named("gossip").map(|one| one.name().parse::<GossipAlgorithm>());
    let are_whole = !own.any(|own| own.as_ref() == Ok(&plan.algorithm));
    let pes = gossip.arena.pes();
    let flits = gossip.blocks.lengths().iter().sum::<u64>();
    let flits = flits.saturating_mul(pes as u64 - 1);
    let links = &args.print.links;
    links.time(pes, ports, flits, |_| of_gossip(gossip, are_whole))
}

fn planned(args: &PlanGossipArgs) -> Result<GossipPlan, Faults> {
    let network = args.tree.network().unwrap_or_default();
    let mut faults = Faults(of_trees(args));
    let arena = faults.take(gossip_network(&network));
    let lengths = faults.take(lengths_in_flits(&args.lengths));
    let prices = typed(&args.prices).and_then(|typed| Ok((typed.prices()?, typed)));
    let prices = faults.take(prices);
    let requested = match args.algorithm.as_str() {
        "auto" => Some(None),
        name => faults.take(named(name, arena.as_ref())).map(Some),
    };
    if let Some(arena) = &arena {
        let sized = arena.check_size();
        faults.take(sized.map_err(|fault| anyhow!("--network {network}: {fault}")));
        if let Some(Some(requested)) = &requested {
            faults.take(requested.on(arena).map_err(|all| described(requested, all)));
        }
    }
    let lengths = match (&arena, lengths) {
        (Some(arena), Some(lengths)) => faults.take(dealt(&lengths, arena.pes())),
        _ => None,
    };
    let (Some(arena), Some(lengths), Some((prices, typed)), Some(requested), []) =
        (arena, lengths, prices, requested, &faults.0[..])
    else {
        return Err(faults);
    };
    let algorithm = requested.unwrap_or_else(|| choose(&arena, &lengths, &prices));
    let gossip = Gossip::new(arena, &lengths, &algorithm);
    Ok(GossipPlan {
        gossip: gossip.map_err(|all| described(&algorithm, all))?,
        network,
        algorithm,
        typed,
        prices,
    })
}

/// Returns the algorithm of that name; the error lists those of the network.
fn named(name: &str, arena: Option<&GossipNetwork>) -> anyhow::Result<GossipAlgorithm> {
    name.parse().map_err(|fault| match (fault, arena) {
        (NameError::Unknown(algorithm), Some(arena)) => {
            unfit(algorithm, Unfit::other_network(arena))
        }
        (fault, _) => anyhow!("--algorithm: {fault}"),
    })
}

/// Returns an error for each option that does not apply to a network.
fn of_trees(args: &PlanGossipArgs) -> Vec<anyhow::Error> {
    let ports = (args.ports == PortsArg::Multi).then_some("--ports");
    let given = args.tree.given_for_trees().chain(ports);
    let why = "is for trees: a gossip on a --network has no root, and a port for each edge";
    given.map(|option| anyhow!("{option} {why}")).collect()
}

/// Computes a length for each PE.
fn dealt(lengths: &Lengths, needed: usize) -> anyhow::Result<Vec<u64>> {
    if let Lengths::List(list) = lengths {
        ensure!(
            list.len() == needed,
            "--lengths: {} given, but {needed} needed: one for each PE from P0 to P{} (for the \
             same everywhere, write equal:LENGTH)",
            list.len(),
            needed - 1
        );
    }
    // Sums of longer blocks would be inexact; the sum of those dealt fits.
    let dealt = lengths.deal(needed).ok();
    let dealt = dealt.filter(|dealt| dealt.iter().sum::<u64>() <= MAX_FLITS);
    dealt
        .with_context(|| format!("--lengths: the blocks have more than {MAX_FLITS} flits together"))
}

/// Returns the reasons why an algorithm does not support a network as errors.
fn described(algorithm: &GossipAlgorithm, faults: Vec<impl Display>) -> Faults {
    Faults::all(faults.iter().map(|why| unfit(algorithm, why)))
}

/// Limit of rows of steps that a user would still read.
const MAX_ROWS: usize = 40;

struct GossipPlan {
    /// The network as typed.
    network: String,
    algorithm: GossipAlgorithm,
    /// The prices as typed.
    typed: PriceArgs,
    prices: Prices,
    gossip: Gossip,
}

/// Steps of a kind, in succession.
struct Row {
    first: usize,
    last: usize,
    packets: usize,
    cost: StepCost,
    largest: String,
}

impl GossipPlan {
    fn title(&self) -> String {
        title("gossip", &self.network, &self.algorithm.to_string())
    }

    fn exact(&self, time: u128) -> Fraction {
        Fraction::new(time, self.prices.unit.into())
    }

    fn write(
        &self,
        print: PrintArgs,
        on_links: Option<OnLinks>,
        simulated: &str,
        out: &mut dyn Write,
    ) -> anyhow::Result<io::Result<()>> {
        let (gossip, lengths) = (&self.gossip, self.gossip.blocks.lengths());
        let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
        let heading = format!(
            "{}: {}; {} in {}",
            self.title(),
            counted(lengths.len() as u64, "PE", "PEs"),
            counted(lengths.iter().sum(), "flit", "flits"),
            counted(nonnull as u64, "block", "blocks"),
        );
        let cost = gossip.cost();
        let (startups, distance, flits) = (cost.startups, cost.distance, cost.flits);
        let (time, bound) = (
            self.exact(self.prices.time(cost)),
            gossip.bound(&self.prices),
        );
        // If no PE waits for the end of a step; unknown on complete networks.
        let free_run = free_run(gossip, &self.prices).map(|time| self.exact(time));
        let proof = proof(time, bound);
        let mut report = PlanReport::new(heading, print);
        report.field("operation", "gossip");
        report.field("algorithm", self.algorithm.to_string());
        report.field("network", &self.network);
        report.field("model", "wormhole");
        report.field("pes", gossip.arena.pes());
        report.list("messages", || self.messages());
        report.list("steps", || gossip.steps().map(|step| self.step(&step)));
        let cost = [
            ("startups", startups),
            ("distance", distance),
            ("flits", flits),
        ];
        report.field("cost", Numbers(cost));
        report.field("time", exact(time));
        report.optional("free_run_time", free_run.map(exact));
        report.on_links(on_links);
        report.field("bound", exact(bound));
        report.field("proof", proof.clone());
        let cost = format!(
            "{}, distance {}, {}",
            counted(startups, "start-up", "start-ups"),
            counted(distance, "hop", "hops"),
            counted(flits, "flit", "flits"),
        );
        report.line("cost", cost);
        let sum = format!("{startups} t_s + {distance} t_d + {flits} t_l");
        let (time, prices) = (decimal(time), self.prices_as_text());
        report.line("time", format!("{time} = {sum} with {prices}"));
        if let Some(free_run) = free_run.map(decimal) {
            let why = "where nobody waits for a step to be over";
            report.line("free run", format!("{free_run}, {why}"));
        }
        report.line("bound", format!("{}: {proof}", decimal(bound)));
        report.simulated(simulated);
        if startups > 0 {
            let least = ["distance", "packets", "flits"];
            report.rows(2, &least, || self.steps_as_text())?;
        }
        report.scene(gossip.arena.pes(), || self.scene())?;
        Ok(report.write(out))
    }

    /// Returns the given prices, or their defaults.
    fn prices_as_text(&self) -> String {
        let PriceArgs { ts, td, tl, .. } = &self.typed;
        let [ts, td, tl] = [(ts, "1"), (td, "0"), (tl, "1")]
            .map(|(given, default)| given.as_deref().unwrap_or(default));
        let unit = self.typed.profile.as_ref().map_or("", |_| " us");
        format!("t_s = {ts}{unit}, t_d = {td}{unit}, t_l = {tl}{unit}")
    }

    /// Returns the blocks as JSON, without null blocks, which are not messages.
    fn messages(&self) -> impl Iterator<Item = Numbers<3>> {
        let lengths = (0..).zip(self.gossip.blocks.lengths());
        let nonnull = lengths.filter(|(_, flits)| **flits > 0);
        nonnull.map(|(pe, flits)| Numbers([("id", pe), ("source", pe), ("flits", *flits)]))
    }

    /// Returns a step as JSON. The packets of all steps need not be in memory at once.
    fn step(&self, step: &Step) -> Value {
        let Gossip { arena, blocks, .. } = &self.gossip;
        let packet = |packet: &Packet| {
            let path = packet.path(arena).into_iter().map(|pe| pe.0);
            let pieces = blocks.pieces(packet.class, &packet.flits);
            let pieces = pieces.map(
                |it| json!({ "message": it.message.0, "offset": it.offset, "flits": it.flits }),
            );
            json!({ "path": path.collect::<Vec<_>>(), "pieces": pieces.collect::<Vec<_>>() })
        };
        json!({ "packets": step.packets.iter().map(packet).collect::<Vec<_>>() })
    }

    /// Returns a row for each kind of step, and a line for those that are left out.
    fn steps_as_text(&self) -> (Table, String) {
        let mut rows: Vec<Row> = Vec::new();
        for (step, number) in self.gossip.steps().zip(1..) {
            let (packets, cost) = (step.packets.len(), step.cost(&self.gossip.arena));
            match rows.last_mut() {
                Some(row) if (row.packets, row.cost) == (packets, cost) => row.last = number,
                _ => rows.push(Row {
                    first: number,
                    last: number,
                    packets,
                    cost,
                    largest: self.largest(&step),
                }),
            }
        }
        let mut table = table(["step", "largest packet", "packets", "distance", "flits"]);
        for row in rows.iter().take(MAX_ROWS) {
            table.add_row([
                match row.last == row.first {
                    true => row.first.to_string(),
                    false => format!("{}-{}", row.first, row.last),
                },
                row.largest.clone(),
                row.packets.to_string(),
                row.cost.distance.to_string(),
                row.cost.flits.to_string(),
            ]);
        }
        let left_out = rows.get(MAX_ROWS).zip(rows.last());
        let more = left_out.map(|(next, end)| {
            let (first, last) = (next.first, end.last);
            format!("  steps {first} to {last} are left out: --format json has all\n")
        });
        (table, more.unwrap_or_default())
    }

    /// Returns the first of the largest packets, such as `P4 to P7 with P3..P5`.
    fn largest(&self, step: &Step) -> String {
        let size = |packet: &&Packet| packet.flits.len();
        let Some(packet) = step.packets.iter().rev().max_by_key(size) else {
            return String::new();
        };
        let pieces = self.gossip.blocks.pieces(packet.class, &packet.flits);
        let blocks: Vec<PeId> = pieces.map(|piece| piece.message.pe()).collect();
        let blocks = match blocks[..] {
            [only] => format!("the block of {only}"),
            _ => counted(blocks.len() as u64, "block", "blocks"),
        };
        format!("{} to {}, of {blocks}", packet.from, packet.to)
    }

    /// Returns the scene: of each packet its set-up, and the blocks or pieces of blocks that it
    /// carries.
    fn scene(&self) -> anyhow::Result<Scene> {
        let (gossip, prices, cost) = (&self.gossip, &self.prices, self.gossip.cost());
        let pes = gossip.arena.pes();
        let at = |time| self.exact(time).to_f64();
        let flits_take = |flits: u64| u128::from(prices.flit) * u128::from(flits);
        let moment = |time: Fraction| Moment::new(time.to_f64(), decimal(time));
        let flits = gossip.blocks.lengths().iter().sum();
        let mut scene = Scene {
            title: self.title(),
            summary: format!(
                "{}, {}, {}, {}",
                counted(pes as u64, "PE", "PEs"),
                counted(flits, "flit", "flits"),
                counted(cost.startups, "step", "steps"),
                self.prices_as_text(),
            ),
            pes,
            axis: Axis::Time,
            time: moment(self.exact(prices.time(cost))),
            bound: Some(moment(gossip.bound(prices))),
            is_multi_port: gossip.arena.grid().is_some(),
            classes: (0..pes as u32).map(|pe| called(PeId(pe))).collect(),
            what: "flits of one block: a bar where they arrive",
            ..Scene::default()
        };
        let mut now = 0;
        for step in gossip.steps() {
            // In a complete network the packets of a PE follow each other.
            let (mut sent, mut received) = (vec![0; pes], vec![0; pes]);
            for packet in &step.packets {
                let hops = u128::from(packet.hops.unsigned_abs());
                let ready = now + u128::from(prices.startup) + u128::from(prices.hop) * hops;
                let (from, to) = (packet.from, packet.to);
                let ends = [&mut sent[from.index()], &mut received[to.index()]];
                let mut ends = ends.map(|before: &mut u128| {
                    let begin = ready + if scene.is_multi_port { 0 } else { *before };
                    *before += flits_take(packet.flits.len());
                    begin
                });
                if ready > now {
                    let span = [at(now), at(ready)];
                    scene.add(SETUP, [from, to], [span, [span[1]; 2]])?;
                }
                for piece in gossip.blocks.pieces(packet.class, &packet.flits) {
                    let pe = piece.message.pe();
                    let takes = flits_take(piece.flits);
                    let spans = ends.map(|begin| [at(begin), at(begin + takes)]);
                    ends = ends.map(|begin| begin + takes);
                    scene.add((Some(pe.index()), pe.to_string()), [from, to], spans)?;
                }
            }
            now += prices.time(std::iter::once(step.cost(&gossip.arena)).collect());
            let name = format!("step {}", scene.phases.len() + 1);
            scene.phases.push(Moment::new(at(now), name));
        }
        Ok(scene)
    }
}

/// Returns `optimal`, or the distance of a time from the bound.
fn proof(time: Fraction, bound: Fraction) -> String {
    match time == bound {
        true => "optimal".to_owned(),
        false => {
            let over = time.to_f64() / bound.to_f64() - 1.0;
            format!("gap {:.1}%", over * 100.0)
        }
    }
}
