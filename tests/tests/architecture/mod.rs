//! Permitted dependencies: `proto <- node <- cluster <- coordinator`, and the protocol needs neither sockets
//! nor clocks nor randomness. Further rules that compilers do not check: waits without a limit
//! (`waits`), clocks that can be set (`clocks`), cycles of imports (`circles`), system calls outside of
//! their folders (`system`), and odd comments (`words`).

mod circles;
mod clocks;
mod imports;
mod source;
mod system;
mod waits;
mod words;

use std::collections::BTreeSet;
use std::process::Command;

use flitcast_tests::run::run_program;
pub use source::rust_files;

/// Returns all packages that a package is built from, itself included, by name.
#[track_caller]
fn dependencies(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let options = "tree -e normal --prefix none --format {p} -p";
    let text = run_program(cargo.args(options.split(' ')).arg(package))
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

/// Cargo refuses cycles; these are the links that it would permit.
#[test]
fn dependencies_point_one_way() {
    let above_plan = ["flitcast-node", "flitcast-cluster", "tokio"];
    assert_without("flitcast-plan", &above_plan);
    let above_node = ["flitcast-plan", "flitcast-cluster", "clap"];
    assert_without("flitcast-node", &above_node);
    let below = dependencies("flitcast-coordinator");
    for package in ["proto", "plan", "node", "cluster"] {
        assert!(below.contains(&format!("flitcast-{package}")), "{below:?}");
    }
}

/// The level of the crate that is linked is also that of the optimisation of the whole program.
#[test]
fn the_published_program_is_optimised_for_speed() {
    let manifest = include_str!("../../../Cargo.toml").parse::<toml::Table>();
    let profiles = &manifest.expect("cargo reads it")["profile"];
    let dist = &profiles["dist"];
    let level = |package: &str| {
        let own = dist["package"].get(package);
        own.unwrap_or(dist)["opt-level"].as_integer()
    };
    let quick = [
        "flitcast-coordinator",
        "flitcast-node",
        "flitcast-plan",
        "flitcast-proto",
        "tokio",
        "twox-hash",
    ];
    for package in quick {
        assert_eq!(level(package), Some(3), "{package}");
    }
}
