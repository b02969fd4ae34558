//! The supervisors that stand between a PE and the command that it runs, so that nothing of
//! the command outlives the PE, however that ends.
//!
//! There are two, processes of their own (`flitcast leash`), one below the other: the upper one
//! starts the lower one, and that the command (`stage.rs`). Whose parent ends by whatever
//! cause reads the end of its standard input, and ends what is below it. Whose child ends
//! adopts whom that leaves behind, whether they have left its group, its session or their
//! parents, and ends these. So either may be killed: the other one ends it all. Neither the
//! name nor the command line of the two has the program's name in it: `pkill flitcast` ends
//! PEs, and these then their commands. If both are killed at once, the command's own process
//! goes with them by its parent-death signal, and what else is left is found by `lock.rs`.
//!
//! What they say on standard output is one line, which the lower one says if it can: how the
//! command ended.

mod lower;
mod stage;
mod upper;

use std::io::{self, Read as _, Write as _};
use std::process::ExitStatus;
use std::thread;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, Run, ToPe};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, frame_length};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::lock::within;
use crate::limits::DYING;
use crate::system::children::{self, Started};
use crate::system::processes::Process;

pub use lower::Lower;
pub use stage::Stage;
pub use upper::hold;

/// What the system calls them, and what their command line begins with.
pub const NAME: &str = "leash";

/// What a supervisor is told by its surroundings.
enum Event {
    /// Who started it is gone, or wants the command to end.
    Told,
    /// The process that it has started has ended.
    Ended,
}

/// What happens around a supervisor; what is told on its standard input has been read.
struct Events {
    say: mpsc::Sender<Event>,
    heard: mpsc::Receiver<Event>,
}

impl Events {
    /// Begins to listen, and to adopt whom descendants leave behind.
    fn listen() -> io::Result<Events> {
        children::be_called(NAME);
        children::adopt_orphans()?;
        let (say, heard) = mpsc::channel(1);
        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let (mut signal, say) = (signal(kind)?, say.clone());
            tokio::spawn(async move {
                signal.recv().await;
                let _ = say.send(Event::Told).await;
            });
        }
        let told = say.clone();
        thread::spawn(move || {
            let mut ignored = [0; 64];
            while matches!(io::stdin().read(&mut ignored), Ok(1..)) {}
            let _ = told.blocking_send(Event::Told);
        });
        Ok(Events { say, heard })
    }

    /// Waits until a process has ended, which stays to be reaped: until then its number is
    /// nobody else's. Whether it did before somebody wanted its end.
    async fn until_ended(&mut self, process: Started) -> bool {
        let say = self.say.clone();
        thread::spawn(move || {
            process.wait();
            let _ = say.blocking_send(Event::Ended);
        });
        matches!(self.heard.recv().await, Some(Event::Ended))
    }
}

/// Ends all whose parent is this process, and then those whose parents they were; who is left
/// all the same. Nobody that has been started here is to be waited for any more.
fn end_children() -> Vec<Process> {
    let all_gone = within(DYING, || {
        let is_left = children::are_left();
        if is_left {
            Process::children().iter().for_each(Process::kill);
        }
        !is_left
    });
    match all_gone {
        true => Vec::new(),
        false => Process::children(),
    }
}

/// What a supervisor is told at first: a frame on standard input, which goes on behind it. A
/// command line could be read by all, and found by what the command is called.
///
/// # Errors
///
/// Who started it is gone.
pub fn order() -> io::Result<Vec<u8>> {
    // Not one byte more than the frame is read.
    let mut input = io::stdin().lock();
    let mut prefix = [0; LENGTH_BYTES];
    input.read_exact(&mut prefix)?;
    let length = frame_length(prefix, MAX_CONTROL_FRAME).map_err(io::Error::other)?;
    let mut frame = vec![0; LENGTH_BYTES + length];
    frame[..LENGTH_BYTES].copy_from_slice(&prefix);
    input.read_exact(&mut frame[LENGTH_BYTES..])?;
    Ok(frame)
}

/// The frame that tells a supervisor what to run.
pub fn put(run: &Run) -> Vec<u8> {
    let mut frame = Vec::new();
    ToPe::Run(run.clone()).put(&mut frame);
    frame
}

fn parse(frame: &[u8]) -> io::Result<Run> {
    let body = frame.get(LENGTH_BYTES..).unwrap_or_default();
    match ToPe::parse(body).map_err(io::Error::other)? {
        ToPe::Run(run) => Ok(run),
        other => Err(io::Error::other(crate::text::clipped(&other))),
    }
}

/// The arguments of a supervisor.
pub fn arguments(pe: PeId) -> [String; 3] {
    [NAME.to_owned(), "--pe".to_owned(), pe.0.to_string()]
}

/// Says that a command was ended because its supervisor had ended so.
pub fn ended_with(supervisor: ExitStatus) -> String {
    format!("the supervisor of the command ended ({supervisor}), and the command with it")
}

fn tell(end: &End) -> io::Result<()> {
    let line = match end {
        End::Exited(code) => format!("exited {code}\n"),
        End::Signalled(signal) => format!("signalled {signal}\n"),
        End::Failed(why) => format!("failed {}\n", why.replace('\n', " ")),
    };
    // At once, for it to be there whole or not at all.
    let mut out = io::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Reads the line that a supervisor has told.
pub fn told(said: &str) -> Option<End> {
    let (how, rest) = said.strip_suffix('\n')?.split_once(' ')?;
    match how {
        "exited" => Some(End::Exited(rest.parse().ok()?)),
        "signalled" => Some(End::Signalled(rest.parse().ok()?)),
        "failed" => Some(End::Failed(rest.to_owned())),
        _ => None,
    }
}
