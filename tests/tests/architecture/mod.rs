//! Permitted dependencies: `proto <- node <- cluster <- coordinator`, and the protocol needs neither sockets
//! nor clocks nor randomness. Further rules that compilers do not check: waits without a limit
//! (`waits`), clocks that can be set (`clocks`), cycles of imports (`circles`), system calls outside of
//! their folders (`system`), odd comments (`words`), and figures that a test would write itself.

mod circles;
mod clocks;
mod imports;
mod source;
mod system;
mod waits;
mod words;

use std::collections::BTreeSet;
use std::process::Command;

use flitcast_tests::run::said;
pub use source::rust_files;

/// Returns all packages that a package is built from, itself included, by name.
#[track_caller]
fn dependencies(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let options = "tree -e normal --prefix none --format {p} -p";
    let text = said(cargo.args(options.split(' ')).arg(package))
        .ok()
        .stdout;
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(names.contains(package), "{text}");
    names
}

#[track_caller]
fn assert_without(package: &str, unwanted: &[&str]) {
    let all = dependencies(package);
    for name in unwanted {
        assert!(!all.contains(*name), "{package} depends on {name}: {all:?}");
    }
}

#[test]
fn the_protocol_does_no_io_and_has_no_clock_and_no_chance() {
    let unwanted = "tokio tokio-util mio socket2 async-std smol rustix nix libc rand rand_core getrandom \
                    fastrand chrono time tracing-subscriber";
    let unwanted: Vec<&str> = unwanted.split_whitespace().collect();
    assert_without("flitcast-proto", &unwanted);
    assert!(dependencies("flitcast-proto").contains("prost"));
    let node = dependencies("flitcast-node");
    assert!(node.contains("tokio"), "that is how it would show");
}

#[test]
fn dependencies_point_one_way() {
    let order =
        ["proto", "node", "cluster", "coordinator", "tests"].map(|name| format!("flitcast-{name}"));
    for (at, package) in order.iter().enumerate() {
        let all = dependencies(package);
        for (place, other) in order.iter().enumerate() {
            assert_eq!(all.contains(other), place <= at, "{package}: {all:?}");
        }
    }
    assert_without(
        "flitcast-node",
        &["flitcast-plan", "flitcast-cluster", "clap"],
    );
    let above = ["flitcast-node", "flitcast-cluster", "tokio"];
    assert_without("flitcast-plan", &above);
    assert!(dependencies("flitcast-cluster").contains("flitcast-plan"));
}

/// Only generated files may be written by their tests. Figures from a paper are expected values,
/// which no test writes.
#[test]
fn only_generated_code_is_written_by_its_test() {
    // In two parts, so that this file does not contain it.
    let variable = ["FLITCAST", "BLESS"].join("_");
    let crates = ["proto", "node", "coordinator", "tests"].into_iter();
    let mut all = crates.flat_map(rust_files).collect::<Vec<_>>();
    all.retain(|(_, text)| text.contains(&variable));
    let writers: Vec<_> = all.into_iter().map(|(path, _)| path).collect();
    assert_eq!(writers, [std::path::Path::new("proto/codegen/src/lib.rs")]);
}
