//! Carries out what a round says is to be done ([`flitcast_proto::round`]), on whatever moves
//! bytes: a node's sockets and files (`io.rs`), or a simulated network.

mod error;

use std::ops::Range;

use flitcast_proto::items::Message;
use flitcast_proto::round::{Action, Observer, Round, RoundFault};
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::{PeId, Time};

pub use error::RoundError;

/// What a round is played on: connections to neighbours, the messages' bytes, a clock.
#[expect(async_fn_in_trait, reason = "whoever plays a round knows its type")]
pub trait RoundIo {
    /// Why it cannot go on.
    type Error;

    /// The time.
    fn now(&self) -> Time;

    /// Sends a frame that is no flit. Where the round sends and receives at once, it goes as soon
    /// as it can, and nobody waits for that: something may be under way.
    async fn send_control(&mut self, to: PeId, frame: &EdgeFrame) -> Result<(), Self::Error>;

    /// Sends the bytes `payload` of a message that starts here, behind the prefix that the round
    /// makes of them. Where the round sends and receives at once, it may be under way
    /// only, and [`RoundIo::listen`] tells when it has gone.
    async fn send_flit(
        &mut self,
        round: &mut Round<impl Observer>,
        to: PeId,
        message: Message,
        payload: Range<u64>,
    ) -> Result<Sent, Self::Error>;

    /// Sends the flit that was sent last to one more neighbour.
    async fn send_again(&mut self, to: PeId) -> Result<(), Self::Error>;

    /// Sends the frame of a message that is held, whose payload begins at `offset` there, to a
    /// neighbour, as [`RoundIo::send_flit`] does; behind that, no frame of it is needed whose payload
    /// ends at `later_from` or ahead of that.
    async fn send_held(
        &mut self,
        round: &Round<impl Observer>,
        to: PeId,
        message: Message,
        offset: u64,
        later_from: u64,
    ) -> Result<Sent, Self::Error>;

    /// Sends the frame in hand, of `from`, on to another neighbour.
    async fn forward(&mut self, from: PeId, to: PeId) -> Result<(), Self::Error>;

    /// Stores a part of the frame in hand as the next of a message. False, if these are not the
    /// bytes that were expected.
    async fn store(
        &mut self,
        from: PeId,
        message: Message,
        payload: Range<usize>,
    ) -> Result<bool, Self::Error>;

    /// Keeps the frame in hand as the next of a message.
    async fn hold(&mut self, from: PeId, message: Message) -> Result<(), Self::Error>;

    /// Makes room for the next frame of a neighbour.
    fn drop_frame(&mut self, from: PeId);

    /// If so many messages are being made visible that another one has to wait: one that is now.
    async fn make_room(&mut self) -> Result<Option<Message>, Self::Error>;

    /// Begins to make a message visible that was stored; true, if it is at once.
    fn commit(&mut self, message: Message) -> bool;

    /// Waits for something that the round wants to hear of.
    async fn listen(
        &mut self,
        round: &Round<impl Observer>,
        until: Option<Time>,
    ) -> Result<Heard, Self::Error>;

    /// The body of the frame of a neighbour that [`RoundIo::listen`] has told of.
    fn body(&mut self, from: PeId) -> &[u8];

    /// A port has turned from this neighbour's stream, or an own one, to what comes next.
    fn turned(&mut self, round: &Round<impl Observer>, last: Option<PeId>);

    /// Everything that was to be sent has gone. Where the round sends and receives at once, it
    /// may not have yet.
    async fn flush(&mut self) -> Result<(), Self::Error>;

    /// Whether something has failed beside what the round is busy with; asked when bytes have
    /// moved.
    fn look(&mut self, now: Time) -> Result<(), Self::Error>;

    /// What came breaks the protocol.
    fn refused(&mut self, fault: RoundFault) -> Self::Error;
}

/// How far something is that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It has gone.
    Whole,
    /// It is under way.
    Begun,
}

/// What somebody who listens may hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A neighbour's frame is there.
    Frame(PeId),
    /// A message is durable and visible.
    Committed(Message),
    /// What was under way to a neighbour has gone.
    Through(PeId),
    /// So many bytes of flits that are not whole are here, which the round waits for.
    Arriving(u64),
    /// It is as late as it was to be.
    Due,
}

/// Plays a round to its end. P0's must have been triggered.
pub async fn play<I: RoundIo>(
    round: &mut Round<impl Observer>,
    io: &mut I,
) -> Result<(), I::Error> {
    let mut now = io.now();
    loop {
        let action = round.poll(now);
        tracing::trace!(?action);
        tell_begin(&action);
        match action {
            Action::SendControl { to, item } => {
                let round = round.id();
                let frame = EdgeFrame::Control { round, item };
                io.send_control(to, &frame).await?;
                now = io.now();
            }
            Action::SendFlit {
                to,
                message,
                offset,
                bytes,
            } => {
                let payload = offset..offset + bytes;
                let sent = io.send_flit(round, to, message, payload).await?;
                now = moved(io)?;
                if sent == Sent::Begun {
                    round.handle_under_way();
                    continue;
                }
            }
            Action::SendAgain { to, .. } => {
                io.send_again(to).await?;
                now = moved(io)?;
            }
            Action::SendHeld {
                to,
                message,
                offset,
                later_from,
                ..
            } => {
                let sent = io.send_held(round, to, message, offset, later_from);
                let sent = sent.await?;
                now = io.now();
                if sent == Sent::Begun {
                    round.handle_under_way();
                    continue;
                }
            }
            Action::Forward { from, to, .. } => {
                io.forward(from, to).await?;
                now = moved(io)?;
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
                now = moved(io)?;
            }
            // These take no time that is worth asking for.
            Action::Hold { from, message } => io.hold(from, message).await?,
            Action::Drop { from } => io.drop_frame(from),
            Action::Turn { from } => io.turned(round, from),
            Action::Commit { message } => {
                while let Some(committed) = io.make_room().await? {
                    round.handle_committed(io.now(), committed);
                }
                let is_visible = io.commit(message);
                now = io.now();
                if is_visible {
                    round.handle_delivered(now, message);
                }
            }
            Action::Wait { until } => {
                let heard = io.listen(round, until).await?;
                now = io.now();
                match heard {
                    Heard::Frame(from) => {
                        let handled = round.handle_frame(now, from, io.body(from));
                        handled.map_err(|fault| io.refused(fault))?;
                    }
                    Heard::Committed(message) => round.handle_committed(now, message),
                    Heard::Through(to) => {
                        let done = round.handle_through(now, to);
                        done.map_err(|fault| io.refused(fault))?;
                    }
                    Heard::Arriving(bytes) => round.handle_arriving(bytes),
                    Heard::Due => {}
                }
                continue;
            }
            Action::Finished => return io.flush().await,
        }
        let done = round.handle_done(now);
        done.map_err(|fault| io.refused(fault))?;
    }
}

/// The time, bytes having moved.
fn moved<I: RoundIo>(io: &mut I) -> Result<Time, I::Error> {
    let now = io.now();
    io.look(now)?;
    Ok(now)
}

/// What a PE is doing that waits; `depends` says whether it can only go on when others do
/// something. `None`, if it is at work.
pub fn doing(round: &Round<impl Observer>, depends: bool) -> Option<Doing> {
    let middle_of = round.awaits_rest_from().map(Doing::Receiving);
    middle_of.or(depends.then_some(Doing::Listening))
}

/// Messages are told of when they begin.
fn tell_begin(action: &Action) {
    match action {
        Action::SendFlit {
            to,
            message,
            offset: 0,
            ..
        }
        | Action::SendAgain {
            to,
            message,
            offset: 0,
            ..
        } => tracing::debug!(%to, of = %message.pe(), bytes = message.bytes, "send message"),
        Action::Forward {
            from,
            to,
            message,
            offset: 0,
            ..
        } => {
            tracing::debug!(%from, %to, of = %message.pe(), bytes = message.bytes, "relay message")
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
