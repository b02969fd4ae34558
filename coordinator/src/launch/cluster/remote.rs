//! The process that plays a PE on another host: begun there, and what becomes of it. How a
//! host is reached is `ssh.rs`'s business.
//!
//! Here it is an `ssh`, and killing that is all that can be done at once: the PE ends because
//! its channel does, and then its ssh.
//!
//! There, the PE is a child of the script's shell, whose exit status says what signal killed it: of a
//! process that ssh itself had started, ssh says 255, as if the connection had broken. Killing the `ssh`
//! alone would leave the PE, so a cluster that is given up closes its channels first, and kills an `ssh`
//! that is still there two seconds later.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use flitcast_proto::PeId;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Heard;
use super::exit::Exit;
use super::process::Telling;
use crate::launch::ssh::{Begun, Hosts, RemoteCommand};

/// For a PE whose channel has ended to end as well, before its ssh is killed and nobody can
/// tell whether it did.
const CHANNEL_ENDS: Duration = Duration::from_secs(2);

/// Has a host play a PE, waits for it to end, or kills what is here of it, and passes on what
/// it says on stderr. From now on until it begins, or until it is heard of that it does not, it
/// counts as about to begin.
pub fn keep(
    pe: PeId,
    hosts: Arc<Hosts>,
    destination: String,
    task: RemoteCommand,
    telling: Telling,
    heard: mpsc::Sender<(PeId, Heard)>,
    kill: CancellationToken,
) -> impl Future<Output = ()> {
    let beginning = hosts.beginning();
    async move {
        let begun = tokio::select! {
            begun = hosts.begin(&destination, &task) => begun,
            () = kill.cancelled() => return,
        };
        // It holds an admission, which was told.
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

/// How it ends; `None` if even that cannot be known.
async fn ended(
    destination: String,
    begun: Begun,
    telling: Telling,
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
                // That its channel has ended is no news.
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
