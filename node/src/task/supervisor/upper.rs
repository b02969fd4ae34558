//! The upper supervisor: it starts the lower one and passes the order on. If the lower one is killed,
//! it ends the remaining processes of the command.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::End;

use super::super::lock::within;
use super::{
    Events, NAME, STOOD_STILL, arguments, end_children, ended_with, order, report_end, stands_still,
};
use crate::limits::ENDING_OF_COMMANDS;
use crate::system::children::{PROGRAM, Started};
use crate::system::processes::named;

/// Runs a command by a supervisor below this one. When this returns, none of its processes is left.
pub async fn hold(pe: PeId) -> io::Result<()> {
    let order = order()?;
    let mut events = Events::listen()?;
    let mut lower = Command::new(PROGRAM)
        .arg0(NAME)
        .args(arguments(pe))
        .arg("--lower")
        .stdin(Stdio::piped())
        // One of the two survives a signal to a whole group.
        .process_group(0)
        .spawn()?;
    let started = Started::of(&lower);
    let mut leash = lower.stdin.take();
    if let Some(leash) = &mut leash {
        // If it has ended already, the wait below finds that.
        let _ = leash.write_all(&order);
    }
    let stood_still = tokio::select! {
        _ = events.until_ended(started, None) => false,
        () = stands_still(Some(started)) => true,
    };
    drop(leash);
    if stood_still {
        started.kill();
    }
    if !within(ENDING_OF_COMMANDS, || started.has_ended()) {
        // It was stopped, for example.
        started.kill();
    }
    let status = lower.wait()?;
    let left = end_children();
    if status.success() {
        // It has written its report.
        return Ok(());
    }
    let mut why = match stood_still {
        true => STOOD_STILL.to_owned(),
        false => ended_with(status),
    };
    if !left.is_empty() {
        why += &format!(", but for {}, which survives SIGKILL", named(&left));
    }
    report_end(&End::Failed(why))
}
