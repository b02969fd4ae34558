//! The PE's end of its channel to the coordinator: it sends and receives messages, and answers each
//! ping, even while the PE waits for something else.
//!
//! One task does this, on the thread that does all of the PE's work: while pings are answered, that
//! thread is not stuck.

use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::activity_monitor::ActivityMonitor;
use crate::channel::{ChannelError, ControlReader, ControlWriter};
use crate::config::NodeConfig;
use crate::counters::Tally;
use crate::error::NodeError;
use crate::limits::{FIRST_MESSAGE, QUEUED_MESSAGES, STANDSTILL_OF_COORDINATOR, Timeouts};
use crate::security::{Name, Security, Transport};
use crate::system::sockets;
use crate::timeout_stream::{IdleLimits, TimeoutStream, in_time};

/// The PE's connection to its coordinator.
#[derive(Debug)]
pub struct Coordinator {
    commands: mpsc::Receiver<Result<ToPe, ChannelError>>,
    queue: mpsc::Sender<FromPe>,
    correspondent: JoinHandle<()>,
    /// The state that pings report.
    pub pulse: Arc<ActivityMonitor>,
    pub has_received: bool,
    /// Whether the coordinator has reported the end of the job.
    pub is_over: bool,
    /// Whether the coordinator's end of the channel was closed, as the system does for a process
    /// that died; silence does not count.
    pub is_cut_off: bool,
}

impl Coordinator {
    pub async fn connect(config: &NodeConfig) -> Result<Coordinator, NodeError> {
        let (addr, timeouts) = (config.coordinator, &config.timeouts);
        let stream = dial(addr, &config.security, timeouts).await?;
        Ok(Coordinator::over(stream, timeouts, &config.tally))
    }

    /// Uses an established connection; the counters of its cluster are added to the tally.
    pub fn over(stream: Transport, timeouts: &Timeouts, tally: &Tally) -> Coordinator {
        let patience = IdleLimits {
            first: FIRST_MESSAGE.max(timeouts.silence),
            silence: STANDSTILL_OF_COORDINATOR,
            write: timeouts.write,
        };
        let stream = TimeoutStream::new(stream, patience);
        let pulse = Arc::new(ActivityMonitor::with(tally.new_cluster()));
        let (command_sender, commands) = mpsc::channel(QUEUED_MESSAGES);
        let (queue, queued) = mpsc::channel(QUEUED_MESSAGES);
        Coordinator {
            commands,
            queue,
            correspondent: tokio::spawn(correspond(stream, pulse.clone(), command_sender, queued)),
            pulse,
            has_received: false,
            is_over: false,
            is_cut_off: false,
        }
    }

    /// Queues a message for the coordinator.
    pub async fn send_reply(&mut self, reply: FromPe) -> Result<(), NodeError> {
        if self.queue.send(reply).await.is_ok() {
            return Ok(());
        }
        // The channel accepts no more messages; the last received one contains the reason.
        loop {
            self.next_command().await?;
        }
    }

    pub async fn next_command(&mut self) -> Result<ToPe, NodeError> {
        match self.commands.recv().await {
            Some(command) => {
                let command = command.map_err(|error| self.lost(error.into()))?;
                self.has_received = true;
                self.is_over |= matches!(command, ToPe::Stop { over: true });
                Ok(command)
            }
            None => Err(self.lost(NodeError::Abandoned)),
        }
    }

    fn lost(&mut self, error: NodeError) -> NodeError {
        self.is_cut_off = error.is_cut_off();
        error
    }

    /// Waits until all messages have been sent, or cannot be.
    pub async fn finish(self) {
        drop(self.queue);
        let _ = self.correspondent.await;
    }
}

/// Connects to the coordinator's address, and protects the connection.
pub async fn dial(
    addr: SocketAddr,
    security: &Security,
    timeouts: &Timeouts,
) -> Result<Transport, NodeError> {
    let failed = |error| NodeError::Coordinator(addr, error);
    let stream = in_time(timeouts.within(timeouts.connect), TcpStream::connect(addr)).await;
    let stream = stream.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    sockets::fail_with_host(&stream, timeouts.coordinator_gone()).map_err(failed)?;
    let secured = in_time(timeouts.handshake, security.call(stream, Name::Coordinator));
    secured.await.map_err(failed)
}

async fn correspond(
    stream: TimeoutStream<impl AsyncRead + AsyncWrite + Unpin>,
    pulse: Arc<ActivityMonitor>,
    command_sender: mpsc::Sender<Result<ToPe, ChannelError>>,
    mut queued: mpsc::Receiver<FromPe>,
) {
    let (read, write) = tokio::io::split(stream);
    let mut reader = ControlReader::new(read, ToPe::parse);
    let mut writer = ControlWriter::new(write, FromPe::put);
    // At most one answer waits: only its existence matters.
    let (answer, mut answers) = mpsc::channel(1);
    let reading = async {
        while let Some(command) = reader.next().await {
            match command {
                Ok(ToPe::Ping { look }) => {
                    let _ = answer.try_send(FromPe::Pong(pulse.pong(look)));
                }
                // The receiver is gone if the PE is about to leave.
                command => {
                    let is_last = command.is_err();
                    let _ = command_sender.send(command).await;
                    if is_last {
                        return;
                    }
                }
            }
        }
    };
    let writing = async {
        loop {
            let reply = tokio::select! {
                biased;
                Some(answer) = answers.recv() => answer,
                reply = queued.recv() => match reply {
                    Some(reply) => reply,
                    None => return Ok(()),
                },
            };
            writer.send(reply).await?;
        }
    };
    tokio::select! {
        () = reading => {}
        written = writing => if let Err(error) = written {
            let _ = command_sender.send(Err(error)).await;
        }
    }
}
