//! Signals that request the end of a command, and the stop of a terminal's job (Ctrl-Z).

use std::process::ExitCode;

use anyhow::Context as _;
use flitcast_node::system::process::ignores;
use flitcast_node::system::processes::stop_with_descendants;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Exit statuses of commands that a signal ended are above it, as shells have them.
const SIGNALLED: u8 = 128;

/// A signal that requested the end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interruption(SignalKind);

impl Interruption {
    /// Returns the exit status of a command that this signal ended: 130 after Ctrl-C.
    pub fn exit_status(self) -> u8 {
        SIGNALLED.saturating_add(self.0.as_raw_value() as u8)
    }

    /// Returns the exit status, for `main`.
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(self.exit_status())
    }
}

/// The signals that request the end of a command: SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT. SIGHUP
/// and SIGQUIT stay ignored in a process that was started to ignore them, by `nohup` for example.
///
/// Once this is made, the first such signal waits until [`Interrupts::next`] takes it. A second
/// signal that arrives while the first one waits ends the process at once: a command cannot become
/// deaf to signals. A command makes this once.
#[derive(Debug)]
pub struct Interrupts {
    waiting: mpsc::Receiver<Interruption>,
}

impl Interrupts {
    pub fn new() -> anyhow::Result<Interrupts> {
        let (sender, waiting) = mpsc::channel(1);
        let both = [SignalKind::interrupt(), SignalKind::terminate()];
        for kind in both.into_iter().chain(if_not_ignored(HANGUP_AND_QUIT)) {
            let signal = listen(kind)?;
            tokio::spawn(pass_on(kind, signal, sender.clone()));
        }
        for kind in if_not_ignored([SignalKind::from_raw(SIGTSTP)]) {
            tokio::spawn(stop_with_job(listen(kind)?));
        }
        Ok(Interrupts { waiting })
    }

    /// Creates the interrupts of a run beside others, which ends when a token is cancelled.
    pub fn of(given_up: CancellationToken) -> Interrupts {
        let (sender, waiting) = mpsc::channel(1);
        tokio::spawn(async move {
            given_up.cancelled().await;
            // The run may be over.
            let _ = sender.try_send(Interruption(SignalKind::terminate()));
        });
        Interrupts { waiting }
    }

    pub async fn next(&mut self) -> Interruption {
        match self.waiting.recv().await {
            Some(interruption) => interruption,
            // Its senders live as long as the runtime.
            None => std::future::pending().await,
        }
    }

    /// Returns a signal that arrived before.
    pub fn earlier(&mut self) -> Option<Interruption> {
        self.waiting.try_recv().ok()
    }
}

/// Signals that a process handles unless it was started to ignore them.
pub const HANGUP_AND_QUIT: [SignalKind; 2] = [SignalKind::hangup(), SignalKind::quit()];

/// The number of SIGTSTP, which a terminal sends to its job for Ctrl-Z.
const SIGTSTP: i32 = 20;

pub const SIGCONT: i32 = 18;

/// Returns those signals that this process was not started to ignore.
pub fn if_not_ignored<const N: usize>(
    kinds: [SignalKind; N],
) -> impl Iterator<Item = SignalKind> + use<N> {
    let kinds = kinds.into_iter();
    kinds.filter(|kind| !ignores(kind.as_raw_value()))
}

fn listen(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("cannot listen to signals")
}

/// Passes a signal on each time it arrives; ends the process if another one still waits.
async fn pass_on(kind: SignalKind, mut signal: Signal, waiting: mpsc::Sender<Interruption>) {
    let interruption = Interruption(kind);
    while signal.recv().await.is_some() {
        if waiting.try_send(interruption).is_err() {
            std::process::exit(interruption.exit_status().into());
        }
    }
}

/// Stops this process and all its descendants when the terminal stops its job, and continues the
/// descendants when this process is continued. They are in process groups of their own, which a
/// terminal does not stop.
async fn stop_with_job(mut stop: Signal) {
    while stop.recv().await.is_some() {
        // A signal that arrived before does not count.
        let Ok(mut continued) = signal(SignalKind::from_raw(SIGCONT)) else {
            continue;
        };
        let stopped = stop_with_descendants();
        continued.recv().await;
        stopped.continue_all();
    }
}
