//! Launches of programs that are not PEs. Time is paused: a limit expires as soon as nothing else
//! is left to wait for.

use std::path::Path;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::job::test_tree::tree;
use crate::observe::console::Console;
use crate::site::guard::Guard;
use crate::site::placement::Placement;

/// Launches three shells that run `script` instead of a PE, and returns the error. The arguments of the
/// PE follow the script.
async fn launch(script: &str) -> String {
    let pes = [0, 1, 2].map(PeId);
    let plan = LaunchPlan {
        program: Path::new("/bin/sh"),
        pes: &pes,
        tree: &tree("star:3"),
        placement: &Placement::local(3),
        guard: &Guard::Secret,
        again: false,
        require_all: true,
        commands: false,
        logs: &["-c".to_owned(), script.to_owned()],
        timeouts: &Timeouts::default(),
    };
    let launched = Cluster::launch(plan, &Console::of_stderr(), &CancellationToken::new()).await;
    launched.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn error_names_pes_that_never_register() {
    let expected = "P0, P1, P2: did not register within 30 s";
    assert_eq!(launch("exec sleep 1000").await, expected);
}

#[tokio::test]
async fn error_names_a_pe_that_ends_early_with_its_last_lines() {
    let message = launch("echo no such thing >&2; exit 127").await;
    let (pe, rest) = message.split_at(2);
    assert!(["P0", "P1", "P2"].contains(&pe), "{message}");
    let expected = " ended with exit status 127 before it registered: no such thing";
    assert_eq!(rest, expected);
}
