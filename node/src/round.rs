//! Executes the actions of a round ([`flitcast_proto::round`]) on connections and files: a node's
//! sockets and files (`io.rs`), or a simulated network.

use std::ops::Range;
use std::path::PathBuf;

use flitcast_proto::items::{Message, Packing};
use flitcast_proto::round::{Action, Observer, Piece, ProtocolError, Round};
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{PeId, Time};
use thiserror::Error;

use crate::link::LinkError;
use crate::payload::PayloadError;

/// The environment of a round: connections to neighbours, the messages' bytes, a clock.
#[expect(async_fn_in_trait, reason = "whoever plays a round knows its type")]
pub trait RoundIo {
    type Error;

    fn now(&self) -> Time;

    /// Sends a control frame. If the round sends and receives at the same time, the frame goes as
    /// soon as possible, and this does not wait, because a transmission may be in progress.
    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), Self::Error>;

    /// Sends a piece of a message that starts here, after the prefix that the round creates for it. If the
    /// round sends and receives at the same time, the transmission may be in progress afterwards, and
    /// [`RoundIo::listen`] reports its end.
    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        piece: Piece,
        packing: Packing,
    ) -> Result<SendProgress, Self::Error>;

    /// Sends the last flit again, to one more neighbour.
    async fn send_again(&mut self, to: PeId) -> Result<(), Self::Error>;

    /// Sends the frame of a held message with this piece, as [`RoundIo::send_flit`] does. Frames whose
    /// payload ends at `later_from` or before are not needed any more.
    async fn send_held(
        &mut self,
        to: PeId,
        piece: Piece,
        later_from: u64,
        packing: Packing,
    ) -> Result<SendProgress, Self::Error>;

    /// Forwards the frame in hand of `from` to another neighbour.
    async fn forward(&mut self, from: PeId, to: PeId) -> Result<(), Self::Error>;

    /// Stores a part of the frame in hand as the next bytes of a message. Returns false if these
    /// differ from the expected bytes.
    async fn store(
        &mut self,
        from: PeId,
        message: Message,
        payload: Range<usize>,
    ) -> Result<bool, Self::Error>;

    /// Stores the frame in hand as the next one of a held message.
    async fn hold(&mut self, from: PeId, message: Message) -> Result<(), Self::Error>;

    /// Frees the frame of a neighbour, to make room for the next one.
    fn drop_frame(&mut self, from: PeId);

    /// Waits until a message becomes visible if as many messages as permitted are being made
    /// visible; returns that message.
    async fn make_room(&mut self) -> Result<Option<Committed>, Self::Error>;

    /// Starts to make a stored message visible; returns true if that is done at once.
    fn commit(&mut self, message: Message) -> bool;

    /// Waits for an event of the round, at most until `until`.
    async fn listen(
        &mut self,
        round: &Round<impl Observer>,
        until: Option<Time>,
    ) -> Result<RoundEvent, Self::Error>;

    /// Returns the body of the neighbour's frame that [`RoundIo::listen`] has reported.
    fn body(&mut self, from: PeId) -> &[u8];

    /// Reports that a message of this neighbour, or an own message, is complete at a port.
    fn stream_changed(&mut self, round: &Round<impl Observer>, last: Option<PeId>);

    /// Flushes sent data. If the round sends and receives at the same time, some may not be sent
    /// yet.
    async fn flush(&mut self) -> Result<(), Self::Error>;

    /// Checks for errors outside of the current action, after bytes have moved, and lets other tasks of
    /// the process run now and then.
    async fn look(&mut self, now: Time) -> Result<(), Self::Error>;

    /// Creates the error for a violation of the protocol.
    fn refused(&mut self, fault: ProtocolError) -> Self::Error;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendProgress {
    /// The transmission is complete.
    Whole,
    Begun,
}

/// A message that is durable and visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub message: Message,
    /// The digest of the written bytes, if they were written to files and the message is not one of
    /// several parts.
    pub digest: Option<Digest>,
}

/// An event that [`RoundIo::listen`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundEvent {
    /// A neighbour's frame has arrived.
    Frame(PeId),
    /// A message is durable and visible.
    Committed(Committed),
    /// A transmission in progress to a neighbour is complete.
    Through(PeId),
    /// The number of bytes of incomplete flits that have arrived, if the round waits for it.
    Arriving(u64),
    /// The time limit has passed.
    Due,
}

/// Executes a round to its end. P0's must have been triggered.
pub async fn play<I: RoundIo>(
    round: &mut Round<impl Observer>,
    io: &mut I,
) -> Result<(), I::Error> {
    let mut now = io.now();
    loop {
        let action = round.poll(now);
        log(&action);
        match action {
            Action::SendControl { to, item } => {
                let round = round.id();
                let frame = EdgeFrame::Control { round, item };
                io.send_control(to, &frame).await?;
                now = io.now();
            }
            Action::SendFlit { to, piece, packing } => {
                let sent = io.send_flit(round, to, piece, packing).await?;
                now = moved(io).await?;
                if leaves(round, sent) {
                    continue;
                }
            }
            Action::SendAgain { to, .. } => {
                io.send_again(to).await?;
                now = moved(io).await?;
            }
            Action::SendHeld {
                to,
                piece,
                packing,
                later_from,
            } => {
                let sent = io.send_held(to, piece, later_from, packing).await?;
                now = io.now();
                if leaves(round, sent) {
                    continue;
                }
            }
            Action::Forward { from, to, .. } => {
                io.forward(from, to).await?;
                now = moved(io).await?;
            }
            Action::Store {
                from,
                message,
                payload,
                ..
            } => {
                if !io.store(from, message, payload).await? {
                    return Err(io.refused(round.unexpected_bytes(message)));
                }
                now = moved(io).await?;
            }
            // These take too little time to read the clock.
            Action::Hold { from, message } => io.hold(from, message).await?,
            Action::Drop { from } => io.drop_frame(from),
            Action::Turn { from } => io.stream_changed(round, from),
            Action::Commit { message } => now = commit(round, io, message).await?,
            Action::Wait { until } => {
                let event = io.listen(round, until).await?;
                now = io.now();
                handle_event(round, io, now, event)?;
                continue;
            }
            Action::Finished => return io.flush().await,
        }
        round.handle_done(now).map_err(|fault| io.refused(fault))?;
    }
}

/// Leaves a transmission in progress, and returns true, if it is not complete.
fn leaves(round: &mut Round<impl Observer>, sent: SendProgress) -> bool {
    if sent == SendProgress::Begun {
        round.handle_under_way();
    }
    sent == SendProgress::Begun
}

/// Starts to make a stored message visible, and returns the time after that.
async fn commit<I: RoundIo>(
    round: &mut Round<impl Observer>,
    io: &mut I,
    message: Message,
) -> Result<Time, I::Error> {
    while let Some(committed) = io.make_room().await? {
        round.handle_committed(io.now(), committed.message, committed.digest);
    }
    let is_visible = io.commit(message);
    let now = io.now();
    if is_visible {
        round.handle_delivered(now, message);
    }
    Ok(now)
}

/// Passes an event on to the round.
fn handle_event<I: RoundIo>(
    round: &mut Round<impl Observer>,
    io: &mut I,
    now: Time,
    event: RoundEvent,
) -> Result<(), I::Error> {
    let handled = match event {
        RoundEvent::Frame(from) => round.handle_frame(now, from, io.body(from)),
        RoundEvent::Committed(Committed { message, digest }) => {
            round.handle_committed(now, message, digest);
            Ok(())
        }
        RoundEvent::Through(to) => round.handle_through(now, to),
        RoundEvent::Arriving(bytes) => {
            round.handle_arriving(bytes);
            Ok(())
        }
        RoundEvent::Due => Ok(()),
    };
    handled.map_err(|fault| io.refused(fault))
}

/// Returns the time after bytes have moved.
async fn moved<I: RoundIo>(io: &mut I) -> Result<Time, I::Error> {
    let now = io.now();
    io.look(now).await?;
    Ok(now)
}

/// Returns what a waiting PE waits for, or `None` if it works; `depends` is whether it can only
/// continue after an event of another PE.
pub fn doing(round: &Round<impl Observer>, depends: bool) -> Option<Doing> {
    let middle_of = round.awaits_rest_from().map(Doing::Receiving);
    middle_of.or(depends.then_some(Doing::Listening))
}

/// Logs the begin of a message.
fn log(action: &Action) {
    tracing::trace!(?action);
    match action {
        Action::SendFlit { to, piece, .. } | Action::SendAgain { to, piece }
            if piece.offset == 0 =>
        {
            let message = piece.message;
            tracing::debug!(%to, of = %message.pe(), bytes = message.bytes, "send message");
        }
        Action::Forward { from, to, piece } if piece.offset == 0 => {
            let message = piece.message;
            tracing::debug!(%from, %to, of = %message.pe(), bytes = message.bytes, "relay message");
        }
        Action::Store {
            from,
            message,
            offset: 0,
            ..
        } => tracing::debug!(%from, of = %message.pe(), bytes = message.bytes, "take message"),
        _ => {}
    }
}

#[derive(Debug, Error)]
pub enum RoundError {
    /// A neighbour is gone, or has sent invalid data.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A violation of the protocol, or a damaged message.
    #[error(transparent)]
    Fault(#[from] ProtocolError),
    #[error("{source} (the message of {})", message.pe())]
    Payload {
        message: Message,
        source: PayloadError,
    },
    #[error("data to forward cannot be stored in {}: {source}", crate::system::lent::as_named(folder).display())]
    Held {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("the timer failed: {0}")]
    Alarm(#[from] std::io::Error),
}

impl RoundError {
    /// Returns the kind of the error for counters.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            RoundError::Link(_) => "neighbour",
            RoundError::Fault(fault) => fault.kind(),
            RoundError::Payload { .. } => "payload",
            RoundError::Held { .. } | RoundError::Alarm(_) => "system",
        }
    }

    /// Returns the neighbour at fault, if there is one.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            RoundError::Link(error) => Some(error.peer()),
            RoundError::Fault(fault) => fault.peer(),
            RoundError::Payload { .. } | RoundError::Held { .. } | RoundError::Alarm(_) => None,
        }
    }
}
