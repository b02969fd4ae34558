//! A PE that the coordinator has not started: one in a container, in a Slurm job, or started by a user.
//! It calls the coordinator until that listens, authenticates itself, and receives the settings that a
//! launched PE has from the start. After that it is like the others.
//!
//! Its certificate names the PE. On plain connections there is no authentication.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Join, ToPe, Welcome};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_WELCOME, frame_length};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::coordinator::{Coordinator, dial};
use crate::counters::Tally;
use crate::error::NodeError;
use crate::handshake_limiter::listen;
use crate::health::Activity;
use crate::limits::{self, Timeouts};
use crate::permissions::{FileAccess, Permissions};
use crate::security::{Identity, Name, Security, SecurityError, Transport};
use crate::session::{serve, until};
use crate::timeout_stream::in_time;

#[derive(Clone, Debug)]
pub struct JoinConfig {
    pub pe: PeId,
    /// The address at which the coordinator listens, now or later: `HOST:PORT`.
    pub coordinator: String,
    /// The address to listen on; `None` for the one in the cluster file.
    pub listen: Option<SocketAddr>,
    /// The credentials, read again for each join: they may have been issued again, or others revoked.
    pub credentials: Credentials,
    /// Time to try to reach the coordinator; unused for a PE that stays.
    pub wait: Duration,
    /// Whether the PE joins the next cluster when one has ended, until it is stopped.
    pub stays: bool,
    /// Notified by the daemon when a command listens, so that the PE tries again at once.
    pub called: Arc<Notify>,
    /// The counters of all clusters that the PE joins.
    pub tally: Tally,
    /// Whether it runs commands for a coordinator with a certificate.
    pub commands: bool,
    /// The files that it reads and writes for a coordinator with a certificate.
    pub files: FileAccess,
}

#[derive(Clone, Debug)]
pub enum Credentials {
    /// None; none are required of the coordinator either.
    None,
    /// Credentials issued by the PE's daemon.
    Issued(Identity),
    Folder(PathBuf),
}

impl Credentials {
    /// Returns how connections of a PE are protected with these credentials.
    ///
    /// # Errors
    ///
    /// Returns an error if the credentials in the folder are invalid now.
    pub fn security(&self, pe: PeId) -> Result<Security, SecurityError> {
        match self {
            Credentials::None => Ok(Security::Plain),
            Credentials::Issued(identity) => Ok(Security::Tls(identity.clone())),
            Credentials::Folder(folder) => Identity::load(folder, Name::Pe(pe)).map(Security::Tls),
        }
    }
}

/// Returns whether another attempt makes sense, because the coordinator does not listen yet or any
/// more.
fn can_retry(error: &NodeError) -> bool {
    match error {
        NodeError::Coordinator(_, error) => error.kind() != io::ErrorKind::InvalidData,
        NodeError::Lookup(..) => true,
        other => other.is_cut_off(),
    }
}

/// Joins a cluster and serves it until the coordinator ends it. A PE that stays joins the next one,
/// until `shutdown` is cancelled. Boxed as the future of [`crate::run`].
///
/// # Errors
///
/// Returns an error if no coordinator listens, if the PE is rejected, or if it ends early. A PE that
/// stays logs any error and tries again.
pub fn join(
    config: JoinConfig,
    state: Activity,
    shutdown: CancellationToken,
) -> Pin<Box<dyn Future<Output = Result<(), NodeError>>>> {
    Box::pin(async move { until(shutdown, config.pe, serve_clusters(&config, &state)).await })
}

async fn serve_clusters(config: &JoinConfig, state: &Activity) -> Result<(), NodeError> {
    let JoinConfig {
        pe, coordinator, ..
    } = config;
    let own = config.listen.map(bind).transpose()?;
    let deadline = Instant::now() + config.wait;
    let mut pause = limits::FIRST_PAUSE;
    let mut last_complaint = String::new();
    loop {
        state.set(format!("{pe} waits for the coordinator at {coordinator}"));
        let served = match enter(config).await {
            Ok((channel, node, welcome)) => {
                state.set(format!("{pe} has joined at {}", node.coordinator));
                tracing::info!(coordinator = %node.coordinator, "joined");
                (pause, last_complaint) = (limits::FIRST_PAUSE, String::new());
                play(&node, own.as_ref(), &welcome, channel).await
            }
            Err(last) if can_retry(&last) => {
                tracing::debug!(%last, "cannot join yet");
                if !config.stays && Instant::now() + pause >= deadline {
                    let wait = config.wait.as_secs_f64();
                    return Err(NodeError::NotJoined(format!(
                        "{pe} could not join at {coordinator} within {wait} s: {last}; is a command \
                         listening there, with [launch] kind = \"join\" in its cluster file? --wait \
                         waits longer, --stay as long as it takes"
                    )));
                }
                pause = rest(pause, &config.called).await;
                continue;
            }
            Err(error) => {
                let why = match error {
                    NodeError::Coordinator(_, error) => error.to_string(),
                    NodeError::Refused(_, reason) => reason,
                    other => other.to_string(),
                };
                Err(NodeError::NotJoined(format!(
                    "{pe} may not join at {coordinator}: {why}"
                )))
            }
        };
        match served {
            served if !config.stays => return served,
            Ok(()) => {}
            Err(error) => {
                // Once: the reason may be the same for hours.
                let complaint = error.to_string();
                if complaint != last_complaint {
                    tracing::warn!("{complaint}; trying again");
                    last_complaint = complaint;
                }
            }
        }
        pause = rest(pause, &config.called).await;
    }
}

/// Waits for `pause`, or until it is called; returns the next pause.
async fn rest(pause: Duration, called: &Notify) -> Duration {
    match timeout(pause, called.notified()).await {
        Ok(()) => limits::FIRST_PAUSE,
        Err(_) => (2 * pause).min(limits::LONGEST_PAUSE),
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, NodeError> {
    listen(address).map_err(|error| NodeError::Listen(address, error))
}

/// Serves a cluster that it has joined.
async fn play(
    node: &NodeConfig,
    own: Option<&TcpListener>,
    welcome: &Welcome,
    mut channel: Coordinator,
) -> Result<(), NodeError> {
    let listener;
    let listener = match own {
        Some(own) => own,
        None => {
            let address: IpAddr = welcome.listen.parse().map_err(|_| {
                let shown = format!("{:?}", welcome.listen).chars().take(160).collect();
                NodeError::Unexpected(shown, "for the address to listen on")
            })?;
            listener = bind((address, 0).into())?;
            &listener
        }
    };
    let served = serve(node, listener, &mut channel).await;
    channel.finish().await;
    served
}

/// Calls the coordinator once, and sends the join request.
async fn enter(config: &JoinConfig) -> Result<(Coordinator, NodeConfig, Welcome), NodeError> {
    let pe = config.pe;
    let security = config.credentials.security(pe)?;
    let allowed = Permissions::joined(pe, &security, config.files.clone(), config.commands);
    // The defaults, until the PE receives the cluster's.
    let timeouts = Timeouts::default();
    let (addr, mut stream) = call(config, &security, &timeouts).await?;
    let failed = |error| NodeError::Coordinator(addr, error);
    let answer = in_time(
        timeouts.handshake,
        request_to_join(config, &allowed, &mut stream),
    )
    .await;
    let welcome = match answer.map_err(failed)? {
        ToPe::Welcome(welcome) => welcome,
        ToPe::Refusal { reason } => return Err(NodeError::Refused(addr, reason)),
        other => return Err(NodeError::unexpected(&other, "to one who wants to join")),
    };
    let node = NodeConfig {
        pe,
        coordinator: addr,
        cluster: welcome.cluster,
        secret: welcome.secret,
        security,
        timeouts: welcome.timeouts,
        tally: config.tally.clone(),
        allowed,
    };
    let channel = Coordinator::over(stream, &node.timeouts, &node.tally);
    Ok((channel, node, welcome))
}

/// Connects to the first of the coordinator's addresses that accepts.
async fn call(
    config: &JoinConfig,
    security: &Security,
    timeouts: &Timeouts,
) -> Result<(SocketAddr, Transport), NodeError> {
    let name = &config.coordinator;
    let lookup = |error| NodeError::Lookup(name.clone(), error);
    let found = in_time(limits::LOOKUP, lookup_host(name)).await;
    let found = found.map_err(lookup)?;
    let mut last = lookup(io::Error::other("there is no such host"));
    for addr in found {
        match dial(addr, security, timeouts).await {
            Ok(stream) => return Ok((addr, stream)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sends the join request, and receives the answer.
async fn request_to_join(
    config: &JoinConfig,
    allowed: &Permissions,
    stream: &mut Transport,
) -> io::Result<ToPe> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut frame = Vec::new();
    let join = Join {
        pe: config.pe,
        stays: config.stays,
        commands: allowed.commands.is_ok(),
    };
    FromPe::Join(join).put(&mut frame);
    stream.write_all(&frame).await?;
    stream.flush().await?;
    let mut prefix = [0; LENGTH_BYTES];
    stream.read_exact(&mut prefix).await?;
    // A TLS alert, or a handshake.
    if matches!(prefix, [0x15 | 0x16, 3, ..]) {
        let why = "it wants certificates: give --credentials DIR instead of --insecure, or give its command --insecure";
        return Err(invalid(why.to_owned()));
    }
    let length = frame_length(prefix, MAX_WELCOME).map_err(|e| invalid(e.to_string()))?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    ToPe::parse(&body).map_err(|e| invalid(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_notified_pe_tries_again_at_once() {
        let called = Notify::new();
        let began = Instant::now();
        let mut pause = limits::FIRST_PAUSE;
        while pause < limits::LONGEST_PAUSE {
            pause = rest(pause, &called).await;
        }
        let waited = began.elapsed();
        assert!(waited >= limits::LONGEST_PAUSE);
        // Even one that was sent before the wait.
        called.notify_one();
        assert_eq!(rest(pause, &called).await, limits::FIRST_PAUSE);
        assert_eq!(began.elapsed(), waited);
    }
}
