//! Launches of programs that are not PEs. Time is paused: a limit expires as soon as nothing else
//! is left to wait for.

use std::path::Path;

use flitcast_node::limits::Timeouts;
use flitcast_proto::{PeId, Tree};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::launch::log_args::LogArgs;
use crate::observe::console::Console;
use crate::site::guard::Guard;
use crate::site::placement::Placement;

const PES: [PeId; 3] = [PeId(0), PeId(1), PeId(2)];

/// Returns a star with P0 as root.
fn tree(pes: usize) -> Tree {
    let parents = (0..pes).map(|i| (i > 0).then_some(PeId(0)));
    Tree::from_parents(parents.collect()).unwrap()
}

/// Launches three shells that run `script` instead of a PE; the arguments of the PE follow it.
async fn launch(script: &str) -> String {
    launch_at(Placement::local(3), "/bin/sh", &["-c", script]).await
}

/// Launches three processes with the prefix `run` before the program.
async fn launch_program(program: &str, run: &[&str]) -> String {
    let mut placement = Placement::local(3);
    for place in &mut placement.places {
        place.run = run.iter().map(ToString::to_string).collect();
    }
    launch_at(placement, program, &[]).await
}

/// Launches a program at all places, and returns the error.
async fn launch_at(placement: Placement, program: &str, args: &[&str]) -> String {
    let args = args.iter().map(ToString::to_string).collect();
    let pes = placement.places.len();
    let plan = LaunchPlan {
        program: Path::new(program),
        pes: &PES[..pes],
        tree: &tree(pes),
        placement: &placement,
        guard: &Guard::Secret,
        again: false,
        require_all: true,
        commands: false,
        logs: &LogArgs { args },
        timeouts: &Timeouts::default(),
    };
    let launched = Cluster::launch(plan, &Console::of_stderr(), &CancellationToken::new()).await;
    launched.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn who_never_registers_is_named() {
    let expected = "P0, P1, P2: did not register within 30 s";
    assert_eq!(launch("exec sleep 1000").await, expected);
}

#[tokio::test]
async fn who_dies_before_it_registers_is_named_with_its_last_words() {
    let message = launch("echo no such thing >&2; exit 127").await;
    let (pe, told) = message.split_at(2);
    assert!(["P0", "P1", "P2"].contains(&pe), "{message}");
    let expected = " ended with exit status 127 before it registered: no such thing";
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_a_place_puts_before_the_program_is_run() {
    // The shell prints the program and its arguments.
    let run = ["/bin/sh", "-c", "echo $0 $1 >&2"];
    let message = launch_program("/bin/true", &run).await;
    assert!(message.ends_with("registered: /bin/true node"), "{message}");
}

#[tokio::test]
async fn an_address_that_is_not_this_machines_is_told() {
    let placement = Placement {
        // An address reserved for documentation: no machine has it.
        coordinator: "192.0.2.1".parse().unwrap(),
        ..Placement::local(1)
    };
    let error = launch_at(placement, "/bin/true", &[]).await;
    let expected = "cannot listen on 192.0.2.1 for the PEs: ";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    for (program, run, missing) in [
        ("/no/such/flitcast", &[][..], "/no/such/flitcast"),
        ("/bin/true", &["/no/such/prefix"], "/no/such/prefix"),
    ] {
        let error = launch_program(program, run).await;
        let expected = format!("cannot start a process: {missing}: ");
        assert!(error.starts_with(&expected), "{error}");
    }
}
