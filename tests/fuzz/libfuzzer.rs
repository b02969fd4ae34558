//! One of the targets of `flitcast_tests::fuzz`, fed by libFuzzer; `run` builds and starts it.

#![no_main]

use std::sync::LazyLock;

use flitcast_tests::fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

/// The target named by `FLITCAST_FUZZ`.
static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FLITCAST_FUZZ").unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("`{name}` is no target; there are {}", names.join(", "));
        std::process::exit(2)
    })
});

fuzz_target!(|input: &[u8]| {
    if let Err(what) = (TARGET.feed)(input) {
        panic!("{what}");
    }
});
