//! The connection between the coordinator and one PE: messages in both directions, and a ping every
//! heartbeat. If a PE answers no ping for the silence limit, the connection fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flitcast_node::channel::{ChannelError, ControlReader, ControlWriter};
use flitcast_node::security::Transport;
use flitcast_node::timeout_stream::TimeoutStream;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, FromPe, ToPe};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::member::PeEvent;
use crate::text::printable::{in_one_line, indented};

pub type ChannelReader = ControlReader<FromPe, ReadHalf<TimeoutStream<Transport>>>;
pub type ChannelWriter = ControlWriter<ToPe, WriteHalf<TimeoutStream<Transport>>>;

/// Splits a stream into the reader and the writer of a channel.
pub fn open(stream: TimeoutStream<Transport>) -> (ChannelReader, ChannelWriter) {
    let (read, write) = tokio::io::split(stream);
    let reader = ControlReader::new(read, FromPe::parse);
    (reader, ControlWriter::new(write, ToPe::put))
}

/// Sends queued messages and passes on received ones, until the channel ends.
pub async fn converse(
    pe: PeId,
    reader: ChannelReader,
    writer: ChannelWriter,
    queue: mpsc::Receiver<ToPe>,
    event_sender: mpsc::Sender<(PeId, PeEvent)>,
    heartbeat: Duration,
    look: Arc<AtomicBool>,
) {
    let mut reading = std::pin::pin!(read(pe, reader, &event_sender));
    let end = tokio::select! {
        end = &mut reading => end,
        written = write(writer, queue, heartbeat, &look) => match written {
            Err(error) => Some(error),
            // The queue is closed; the PE may still send messages.
            Ok(()) => reading.await,
        },
    };
    let _ = event_sender.send((pe, PeEvent::ChannelEnded(end))).await;
}

/// Escapes the texts of a PE for people, which are repeated in errors and logs: no text of a peer
/// can begin a line there.
fn without_lines(mut reply: FromPe) -> FromPe {
    match &mut reply {
        FromPe::Fault { reason, .. } => *reason = indented(&*reason),
        FromPe::Ran(ran) => {
            if let End::Failed(why) = &mut ran.end {
                *why = indented(&*why);
            }
            for line in ran.last_lines.iter_mut().chain(&mut ran.not_taken) {
                *line = in_one_line(&*line);
            }
        }
        FromPe::ShardsListed { fault, .. } => *fault = indented(&*fault),
        FromPe::ResultsPlaced { faults } => {
            for fault in faults {
                *fault = in_one_line(&*fault);
            }
        }
        FromPe::Cleared { left } => *left = in_one_line(&*left),
        _ => {}
    }
    reply
}

async fn read(
    pe: PeId,
    mut reader: ChannelReader,
    event_sender: &mpsc::Sender<(PeId, PeEvent)>,
) -> Option<ChannelError> {
    loop {
        match reader.next().await? {
            Ok(reply) => {
                let event = PeEvent::Reply(without_lines(reply));
                event_sender.send((pe, event)).await.ok()?;
            }
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
        let command = tokio::select! {
            biased;
            command = queue.recv() => match command {
                Some(command) => command,
                None => return Ok(()),
            },
            _ = beat.tick() => ToPe::Ping { look: look.load(Relaxed) },
        };
        writer.send(command).await?;
    }
}
