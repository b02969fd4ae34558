//! Runs the fuzz targets for some time; see `fuzz` in the library.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use clap::builder::PossibleValuesParser;
use flitcast_tests::fuzz::{Finding, Fuzzer, TARGETS, Target, hex, write_seeds};

/// Number of inputs between two checks of the time.
const BATCH: u32 = 1000;

/// Feed every parser changed inputs, and report violated properties
#[derive(Parser)]
struct Args {
    /// Target; all by default
    #[arg(long, value_parser = PossibleValuesParser::new(TARGETS.iter().map(|target| target.name)))]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seed of the generator
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print the inputs with new answers, as tests/corpus has them
    #[arg(long)]
    print: bool,
    /// Only write the first inputs to a folder, each in a file
    #[arg(long, value_name = "DIR")]
    seeds: Option<PathBuf>,
}

/// Fuzzes a target and returns whether nothing was found.
fn fuzz(target: &'static Target, args: &Args) -> bool {
    let began = Instant::now();
    let mut inputs = 0;
    let mut run = || {
        let mut fuzzer = Fuzzer::new(target, args.seed)?;
        while began.elapsed() < Duration::from_secs(args.seconds) {
            for _ in 0..BATCH {
                inputs += 1;
                if fuzzer.step()? && args.print {
                    println!("{}", fuzzer.kept().last().map_or(String::new(), |i| hex(i)));
                }
            }
        }
        Ok(fuzzer.answers())
    };
    let result = run();
    let seconds = began.elapsed().as_secs();
    eprint!("{:<14}{inputs:>12} inputs in {seconds} s", target.name);
    match &result {
        Ok(answers) => eprintln!(", {answers} different answers, no finding"),
        Err(Finding { input, what }) => {
            eprintln!("\n  finding: {what}\n  input: {}", hex(input));
        }
    }
    result.is_ok()
}

fn main() -> ExitCode {
    let args = Args::parse();
    // A finding contains the message of the panic.
    std::panic::set_hook(Box::new(|_| {}));
    let name = args.target.as_deref();
    let chosen = |target: &&Target| name.is_none_or(|name| name == target.name);
    let mut clean = true;
    for target in TARGETS.iter().filter(chosen) {
        clean &= match &args.seeds {
            None => fuzz(target, &args),
            Some(folder) => write_seeds(target, folder)
                .inspect_err(|error| eprintln!("error: {}: {error}", folder.display()))
                .is_ok(),
        };
    }
    ExitCode::from(u8::from(!clean))
}
