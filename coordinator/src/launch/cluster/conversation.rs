//! What is said between the coordinator and one PE: words of either, and a ping every
//! heartbeat. A PE that answers none falls silent, and that ends the conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flitcast_node::channel::{ChannelError, CoordinatorCodec};
use flitcast_node::lively::Lively;
use flitcast_node::security::Transport;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::ToPe;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::codec::{FramedRead, FramedWrite};

use super::Heard;

/// What comes from a PE.
pub type ChannelReader = FramedRead<ReadHalf<Lively<Transport>>, CoordinatorCodec>;
/// What goes to a PE.
pub type ChannelWriter = FramedWrite<WriteHalf<Lively<Transport>>, CoordinatorCodec>;

/// Both directions of a channel.
pub fn open(stream: Lively<Transport>) -> (ChannelReader, ChannelWriter) {
    let (read, write) = tokio::io::split(stream);
    (
        FramedRead::new(read, CoordinatorCodec::default()),
        FramedWrite::new(write, CoordinatorCodec::default()),
    )
}

/// Says what is queued, and passes on what is heard, until the channel ends.
pub async fn converse(
    pe: PeId,
    reader: ChannelReader,
    writer: ChannelWriter,
    queue: mpsc::Receiver<ToPe>,
    heard: mpsc::Sender<(PeId, Heard)>,
    heartbeat: Duration,
    look: Arc<AtomicBool>,
) {
    let mut reading = std::pin::pin!(read(pe, reader, &heard));
    let end = tokio::select! {
        end = &mut reading => end,
        written = write(writer, queue, heartbeat, &look) => match written {
            Err(error) => Some(error),
            // Nobody is left to say anything; the PE may still.
            Ok(()) => reading.await,
        },
    };
    let _ = heard.send((pe, Heard::ChannelEnded(end))).await;
}

async fn read(
    pe: PeId,
    mut reader: ChannelReader,
    heard: &mpsc::Sender<(PeId, Heard)>,
) -> Option<ChannelError> {
    loop {
        match reader.next().await? {
            Ok(word) => heard.send((pe, Heard::Word(word))).await.ok()?,
            Err(error) => return Some(error),
        }
    }
}

async fn write(
    mut writer: ChannelWriter,
    mut queue: mpsc::Receiver<ToPe>,
    heartbeat: Duration,
    look: &AtomicBool,
) -> Result<(), ChannelError> {
    let mut beat = interval(heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let word = tokio::select! {
            biased;
            word = queue.recv() => match word {
                Some(word) => word,
                None => return Ok(()),
            },
            _ = beat.tick() => ToPe::Ping { look: look.load(Relaxed) },
        };
        writer.send(word).await?;
    }
}
