//! The upper supervisor: it starts the lower one and hands it what it was told. If that one is
//! killed, it ends what is left of the command.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::End;

use super::super::lock::within;
use super::{Events, NAME, arguments, end_children, ended_with, order, tell};
use crate::limits::ENDING_OF_COMMANDS;
use crate::system::children::{PROGRAM, Started};
use crate::system::processes::named;

/// Has a command run by a supervisor below this one. When this returns, nothing of it is left.
///
/// # Errors
///
/// The operating system refuses something basic.
pub async fn hold(pe: PeId) -> io::Result<()> {
    let order = order()?;
    let mut events = Events::listen()?;
    let mut lower = Command::new(PROGRAM)
        .arg0(NAME)
        .args(arguments(pe))
        .arg("--lower")
        .stdin(Stdio::piped())
        // What is sent to a whole group, one of the two survives.
        .process_group(0)
        .spawn()?;
    let started = Started::of(&lower);
    let mut leash = lower.stdin.take();
    if let Some(leash) = &mut leash {
        // Who has ended already is heard of just below.
        let _ = leash.write_all(&order);
    }
    events.until_ended(started).await;
    drop(leash);
    if !within(ENDING_OF_COMMANDS, || started.has_ended()) {
        // It was stopped, say.
        started.kill();
    }
    let status = lower.wait()?;
    let left = end_children();
    if status.success() {
        // It has told all.
        return Ok(());
    }
    let mut why = ended_with(status);
    if !left.is_empty() {
        why += &format!(", but for {}, which survives SIGKILL", named(&left));
    }
    tell(&End::Failed(why))
}
