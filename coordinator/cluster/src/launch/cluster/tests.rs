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
async fn launch(script: &str) -> LaunchError {
    let logs = LogArgs {
        args: vec!["-c".to_owned(), script.to_owned()],
    };
    launch_program("/bin/sh", &logs, Vec::new()).await
}

/// Launches three processes with the prefix `run` before the program.
async fn launch_program(program: &str, logs: &LogArgs, run: Vec<String>) -> LaunchError {
    let mut placement = Placement::local(3);
    for place in &mut placement.places {
        place.run = run.clone();
    }
    let (timeouts, console) = (Timeouts::default(), Console::of_stderr());
    let program = Path::new(program);
    let plan = LaunchPlan {
        program,
        pes: &PES,
        tree: &tree(PES.len()),
        placement: &placement,
        guard: &Guard::Secret,
        again: false,
        require_all: true,
        commands: false,
        logs,
        timeouts: &timeouts,
    };
    let launched = Cluster::launch(plan, &console, &CancellationToken::new()).await;
    launched.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn who_never_registers_is_named() {
    let error = launch("exec sleep 1000").await;
    let expected = "P0, P1, P2: did not register within 30 s";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn who_dies_before_it_registers_is_named_with_its_last_words() {
    let error = launch("echo no such thing >&2; exit 127").await;
    let message = error.to_string();
    assert!(
        message.contains("ended with exit status 127 before it registered"),
        "{message}"
    );
    assert!(
        message.starts_with('P') && message.ends_with("registered: no such thing"),
        "{message}"
    );
}

#[tokio::test]
async fn what_a_place_puts_before_the_program_is_run() {
    let logs = LogArgs { args: Vec::new() };
    // The shell prints the program and its arguments.
    let run = ["/bin/sh", "-c", "echo $0 $1 >&2"].map(str::to_owned);
    let error = launch_program("/bin/true", &logs, run.to_vec()).await;
    let message = error.to_string();
    assert!(message.ends_with("registered: /bin/true node"), "{message}");
}

#[tokio::test]
async fn an_address_that_is_not_this_machines_is_told() {
    let placement = Placement {
        // An address reserved for documentation: no machine has it.
        coordinator: "192.0.2.1".parse().unwrap(),
        ..Placement::local(1)
    };
    let logs = LogArgs { args: Vec::new() };
    let plan = LaunchPlan {
        program: Path::new("/bin/true"),
        pes: &PES[..1],
        tree: &tree(1),
        placement: &placement,
        guard: &Guard::Secret,
        again: false,
        require_all: true,
        commands: false,
        logs: &logs,
        timeouts: &Timeouts::default(),
    };
    let launched = Cluster::launch(plan, &Console::of_stderr(), &CancellationToken::new()).await;
    let error = launched.unwrap_err();
    let expected = "cannot listen on 192.0.2.1 for the PEs: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let logs = LogArgs { args: Vec::new() };
    let error = launch_program("/no/such/flitcast", &logs, Vec::new()).await;
    let expected = "cannot start a process: /no/such/flitcast: ";
    assert!(error.to_string().starts_with(expected), "{error}");
    let run = vec!["/no/such/prefix".to_owned()];
    let error = launch_program("/bin/true", &logs, run).await;
    let expected = "cannot start a process: /no/such/prefix: ";
    assert!(error.to_string().starts_with(expected), "{error}");
}
