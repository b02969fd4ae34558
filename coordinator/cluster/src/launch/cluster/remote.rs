//! The process of a PE on another host: its start and its end. `ssh.rs` reaches the host.
//!
//! Locally, the process is an `ssh`. Killing it is all that can be done at once: the PE ends
//! because its channel does, and its ssh ends then.
//!
//! Remotely, the PE is a child of the script's shell, whose exit status contains the signal that
//! killed it. If ssh itself had started the PE, its exit status would be 255, as for a lost
//! connection. Killing only the `ssh` would leave the PE running. So a cluster that is cancelled
//! first closes its channels, and kills an `ssh` that still runs two seconds later.

use std::sync::Arc;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::process::LogForwarder;
use crate::launch::ssh::{Begun, Hosts, RemoteCommand};
use crate::tuning::CHANNEL_ENDS;

/// Starts the process of a PE on a host, passes on its stderr, and waits until it ends or its local
/// ssh is killed. From the call on, until it has started or failed, it counts as starting.
pub fn keep(
    hosts: Arc<Hosts>,
    destination: String,
    task: RemoteCommand,
    mut forwarder: LogForwarder,
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
        let exit = match begun {
            Err(fault) => Some(Exit::NotBegun(fault)),
            Ok(begun) => {
                drop(beginning);
                ended(destination, begun, &mut forwarder, kill).await
            }
        };
        if let Some(exit) = exit {
            forwarder.report_end(exit).await;
        }
    }
}

/// Waits for the end of the process and returns it; `None` if waiting failed.
async fn ended(
    destination: String,
    begun: Begun,
    forwarder: &mut LogForwarder,
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
                let draining = async {
                    while stderr.recv().await.is_some() {}
                    child.wait().await
                };
                if let Ok(status) = timeout(CHANNEL_ENDS, draining).await {
                    break status;
                }
                let _ = child.start_kill();
                break child.wait().await;
            }
            Some(line) = stderr.recv() => forwarder.pass_on(line),
            status = child.wait() => break status,
        }
    };
    forwarder.pass_on_rest(stderr).await;
    let status = status.ok()?;
    Some(Exit::of_ssh(destination, status))
}
