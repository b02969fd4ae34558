//! Runs many simulated clusters and reports the findings; see `storm` in the library.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use flitcast_tests::storm::{self, Fault, Figures, Outcome, Scenario, Tally};

/// Run simulated clusters with faults, and report violated guarantees
#[derive(Parser)]
struct Args {
    /// Number of seeds
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Run this seed only, and describe it
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// Print all events of that seed
    #[arg(long, requires = "seed")]
    trace: bool,
}

/// Prints the scenario of a seed, and its outcome.
fn describe(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    let scenario = &outcome.scenario;
    let Scenario {
        seed,
        operation,
        pacing,
        rounds,
        predicted_ns,
        ..
    } = &**scenario;
    let (pes, trees) = (scenario.tree.len(), scenario.lanes.len());
    writeln!(
        out,
        "seed {seed}: {operation:?}, {pacing:?}, {pes} PEs, {trees} trees, {rounds} rounds of {predicted_ns} ns"
    )?;
    for Fault { at_ns, kind } in &scenario.faults {
        writeln!(out, "  fault at {at_ns} ns: {kind:?}")?;
    }
    for cause in &outcome.given_up {
        writeln!(out, "  given up: {cause}")?;
    }
    let Figures {
        runs,
        rounds_finished: rounds,
        delivered,
        ..
    } = outcome.figures;
    writeln!(
        out,
        "  {runs} runs, {rounds} rounds ended well, {delivered} messages were delivered"
    )?;
    for finding in &outcome.findings {
        writeln!(out, "  finding: {finding}")?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (first, seeds) = args.seed.map_or((args.first, args.seeds), |seed| (seed, 1));
    let mut out = io::stdout().lock();
    let mut tally = Tally::default();
    for seed in first..first.saturating_add(seeds) {
        let run = || storm::run(seed, None, args.trace);
        let Ok(outcome) = std::panic::catch_unwind(run) else {
            tally.findings.push((seed, "it panics".to_owned()));
            continue;
        };
        tally.add(&outcome);
        if args.seed.is_some() && describe(&outcome, &mut out).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let printed = match args.seed {
        Some(_) => Ok(()),
        None => write!(out, "{tally}"),
    };
    ExitCode::from(u8::from(printed.is_err() || !tally.findings.is_empty()))
}
