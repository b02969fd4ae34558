//! Fuzzing of every parser of external input for a short time; `tests/corpus` contains earlier
//! findings, which are tested again.
//!
//! `cargo run -p flitcast-tests --release --bin fuzz -- --seconds 3600` runs for an hour.

use flitcast_tests::fuzz::{Fuzzer, TARGETS, Target, corpus, hex};

/// Inputs for each target: less than a second in a debug build.
const INPUTS: u32 = 4_000;

fn fuzz(target: &'static Target) -> Fuzzer {
    let run = || {
        let mut fuzzer = Fuzzer::new(target, 1)?;
        for _ in 0..INPUTS {
            fuzzer.step()?;
        }
        Ok(fuzzer)
    };
    run().unwrap_or_else(|finding: flitcast_tests::fuzz::Finding| {
        let (name, what) = (target.name, finding.what);
        panic!("{name}: {what}\ninput: {}", hex(&finding.input))
    })
}

#[test]
fn any_input_is_decoded_or_refused() {
    for target in TARGETS {
        assert!(!corpus(target).is_empty(), "{}", target.name);
        let answers = fuzz(target).answers();
        assert!(answers > 3, "{}: {answers}", target.name);
    }
}

/// The examples are right, or the inputs made from them would all be refused early.
#[test]
fn the_examples_of_messages_are_decoded() {
    for target in TARGETS {
        let examples = (target.examples)();
        let answers = examples.iter().map(|input| (target.feed)(input).unwrap());
        let decoded = answers.filter(|answer| !answer.contains("cannot be decoded"));
        let (name, decoded) = (target.name, decoded.count());
        match name {
            "edge" | "flit" | "frames" | "sealed" | "entry" => {
                assert_eq!(decoded, examples.len(), "{name}");
            }
            "from-pe" | "to-pe" => assert!(decoded > 3, "{name}: {decoded}"),
            _ => {}
        }
    }
}
