//! The process of a PE on another host: its start and its end. `ssh.rs` reaches the host.
//!
//! Locally, the process is an `ssh`. Killing it is all that can be done at once: the PE ends
//! because its channel does, and its ssh ends then.
//!
//! Remotely, the PE is a child of the script's shell, whose exit status contains the signal that
//! killed it. If ssh itself had started the PE, its exit status would be 255, as for a lost
//! connection. Killing only the `ssh` would leave the PE running. So a cluster that is cancelled
//! first closes its channels, and kills an `ssh` that still runs two seconds later.

use std::collections::VecDeque;
use std::sync::Arc;

use flitcast_proto::PeId;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::member::Heard;
use super::process::LogForwarder;
use crate::launch::ssh::{Begun, Hosts, RemoteCommand};
use crate::tuning::CHANNEL_ENDS;

/// Starts the process of a PE on a host, passes on its stderr, and waits until it ends or its local
/// ssh is killed. From the call on, until it has started or failed, it counts as starting.
pub fn keep(
    pe: PeId,
    hosts: Arc<Hosts>,
    destination: String,
    task: RemoteCommand,
    telling: LogForwarder,
    heard: mpsc::Sender<(PeId, Heard)>,
    kill: CancellationToken,
) -> impl Future<Output = ()> {
    let beginning = hosts.beginning();
    async move {
        let begun = tokio::select! {
            begun = hosts.begin(&destination, &task) => begun,
            () = kill.cancelled() => return,
        };
        // The task contains an admission, which has been sent.
        drop((task, hosts));
        match begun {
            Err(fault) => {
                let said = Heard::Exited(Exit::NotBegun(fault), Vec::new());
                let _ = heard.send((pe, said)).await;
            }
            Ok(begun) => {
                drop(beginning);
                let mut last_words = VecDeque::new();
                if let Some(exit) = ended(destination, begun, telling, &mut last_words, kill).await
                {
                    let said = Heard::Exited(exit, last_words.into());
                    let _ = heard.send((pe, said)).await;
                }
            }
        }
    }
}

/// Waits for the end of the process and returns it; `None` if waiting failed.
async fn ended(
    destination: String,
    begun: Begun,
    telling: LogForwarder,
    last_words: &mut VecDeque<String>,
    kill: CancellationToken,
) -> Option<Exit> {
    let Begun {
        mut child,
        mut stderr,
        ..
    } = begun;
    let status = loop {
        tokio::select! {
            biased;
            () = kill.cancelled() => {
                // The end of the channel is expected here and not reported.
                let unheard = async {
                    while stderr.recv().await.is_some() {}
                    child.wait().await
                };
                if let Ok(status) = timeout(CHANNEL_ENDS, unheard).await {
                    break status;
                }
                let _ = child.start_kill();
                break child.wait().await;
            }
            Some(line) = stderr.recv() => telling.pass_on(line, last_words),
            status = child.wait() => break status,
        }
    };
    telling.pass_on_rest(stderr, last_words).await;
    let status = status.ok()?;
    Some(Exit::of_ssh(destination, status))
}
