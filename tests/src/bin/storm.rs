//! Runs many simulated clusters and reports the findings; see `storm` in the library.

use std::io::{self, Write};
use std::process::ExitCode;

use flitcast_tests::storm::{self, Fault, Figures, Outcome, Scenario, Tally};

const USAGE: &str = "usage: storm [--seeds N] [--first N] | storm --seed N [--trace]

  --seeds N   run so many seeds (200)
  --first N   the first of them (0)
  --seed N    run this one only, and say what it is
  --trace     print all that happens in it";

/// The command line.
struct Args {
    first: u64,
    seeds: u64,
    one: bool,
    trace: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        first: 0,
        seeds: 200,
        one: false,
        trace: false,
    };
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or(format!("{word} needs a number"))?;
            let number = value.parse();
            number.map_err(|_| format!("{word} needs a number, not `{value}`"))
        };
        match word.as_str() {
            "--seeds" => args.seeds = number()?,
            "--first" => args.first = number()?,
            "--seed" => (args.first, args.seeds, args.one) = (number()?, 1, true),
            "--trace" => args.trace = true,
            _ => return Err(format!("`{word}` is not known here")),
        }
    }
    match args.trace && !args.one {
        true => Err("--trace is for one --seed".to_owned()),
        false => Ok(args),
    }
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
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(fault) => {
            eprintln!("error: {fault}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut out = io::stdout().lock();
    let mut tally = Tally::default();
    for seed in args.first..args.first.saturating_add(args.seeds) {
        let run = || storm::run(seed, None, args.trace);
        let Ok(outcome) = std::panic::catch_unwind(run) else {
            tally.findings.push((seed, "it panics".to_owned()));
            continue;
        };
        tally.add(&outcome);
        if args.one && describe(&outcome, &mut out).is_err() {
            return ExitCode::FAILURE;
        }
    }
    let printed = match args.one {
        true => Ok(()),
        false => write!(out, "{tally}"),
    };
    ExitCode::from(u8::from(printed.is_err() || !tally.findings.is_empty()))
}
