//! Runs the fuzz targets for some time; see `fuzz` in the library.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flitcast_tests::fuzz::{Finding, Fuzzer, TARGETS, Target, hex, write_seeds};

const USAGE: &str = "usage: fuzz [--target T] [--seconds S] [--seed N] [--print]

  --target T   this one only (all)
  --seconds S  so long for each (10)
  --seed N     where the generator starts (0)
  --print      print the inputs with new answers, as tests/corpus has them
  --seeds DIR  only write the inputs to begin with into a folder, each in a file";

/// Number of inputs between two checks of the time.
const BATCH: u32 = 1000;

/// The command line.
struct Args {
    target: Option<String>,
    seconds: u64,
    seed: u64,
    print: bool,
    seeds: Option<PathBuf>,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        target: None,
        seconds: 10,
        seed: 0,
        print: false,
        seeds: None,
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |value: String| {
            let number = value.parse();
            number.map_err(|_| format!("{word} needs a number, not `{value}`"))
        };
        match word.as_str() {
            "--target" => args.target = Some(value()?),
            "--seconds" => args.seconds = number(value()?)?,
            "--seed" => args.seed = number(value()?)?,
            "--print" => args.print = true,
            "--seeds" => args.seeds = Some(value()?.into()),
            _ => return Err(format!("`{word}` is not known here")),
        }
    }
    let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    match &args.target {
        Some(target) if !names.contains(&target.as_str()) => {
            let names = names.join(", ");
            Err(format!("`{target}` is no target; there are {names}"))
        }
        _ => Ok(args),
    }
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
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(fault) => {
            eprintln!("error: {fault}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A finding contains the message of the panic.
    std::panic::set_hook(Box::new(|_| {}));
    let name = args.target.as_deref();
    let chosen = |target: &&Target| name.is_none_or(|name| name == target.name);
    if let Some(folder) = &args.seeds {
        for target in TARGETS.iter().filter(chosen) {
            if let Err(error) = write_seeds(target, folder) {
                eprintln!("error: {}: {error}", folder.display());
                return ExitCode::from(2);
            }
        }
        return ExitCode::SUCCESS;
    }
    let mut clean = true;
    for target in TARGETS.iter().filter(chosen) {
        clean &= fuzz(target, &args);
    }
    let _ = std::io::stdout().flush();
    ExitCode::from(u8::from(!clean))
}
