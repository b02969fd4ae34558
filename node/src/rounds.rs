//! The rounds of one PE, in sequence, as the coordinator requests them.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::Poll;

use flitcast_proto::round::{Observer, Round};
use flitcast_proto::wire::control::{FromPe, Report, ToPe};
use flitcast_proto::{RoundId, Time};

use crate::round::{self, RoundIo};

/// The connections, files and counters with which a PE runs its rounds.
#[expect(async_fn_in_trait, reason = "whoever plays rounds knows its type")]
pub trait RoundsIo: RoundIo {
    type Observer: Observer;
    /// Guard that marks the PE as active until it is dropped.
    type Working;

    /// Opens the first messages of the next round, so that the round does not wait for the disk.
    async fn prepare(&mut self);

    /// Returns whether the coordinator triggers this PE.
    fn is_triggered(&self) -> bool;

    /// Begins this PE's part of a round; a triggered PE starts at this time, which may be in the
    /// future.
    fn begin(&mut self, id: RoundId, at: Time) -> Round<Self::Observer>;

    /// Marks the PE as active while the result lives.
    fn working(&self) -> Self::Working;

    /// Waits until the complete messages of a round that was given up are visible, and updates the
    /// round.
    async fn settle(&mut self, round: &mut Round<Self::Observer>);

    /// Returns the report of a round that has ended or was given up.
    fn report(&mut self, round: Round<Self::Observer>, complete: bool) -> Report;
}

/// The channel to the coordinator while rounds run.
#[expect(async_fn_in_trait, reason = "whoever plays rounds knows its type")]
pub trait Channel {
    /// Error after which the PE cannot continue.
    type Error;

    async fn next_command(&mut self) -> Result<ToPe, Self::Error>;

    /// Receives the next message of the coordinator during a round; meanwhile P0 reports progress.
    async fn next_command_in(&mut self, round: RoundId) -> Result<ToPe, Self::Error>;

    async fn send_reply(&mut self, reply: FromPe) -> Result<(), Self::Error>;

    /// Returns the error that a message is unexpected at this time.
    fn unexpected(&self, command: &ToPe, when: &'static str) -> Self::Error;

    /// Returns the message that reports an error to the coordinator; `None` for an error of the
    /// channel itself.
    fn fault(&self, round: RoundId, error: &Self::Error) -> Option<FromPe>;
}

/// Prepares and runs `rounds` rounds, then waits until the PE must leave. Stores the id of the
/// current round in `under_way`. A round runs on all `lanes` at once, one for each tree.
pub async fn play_rounds<I, C>(
    is_root: bool,
    rounds: u64,
    lanes: &mut [I],
    channel: &mut C,
    under_way: &mut RoundId,
) -> Result<(), C::Error>
where
    I: RoundsIo,
    C: Channel,
    C::Error: From<I::Error>,
{
    prepare(lanes).await;
    channel.send_reply(FromPe::Prepared).await?;
    for id in (1..=rounds).map(RoundId) {
        *under_way = id;
        let mut begins_at = Time(0);
        // Created before the round, which would take longer otherwise.
        let span = tracing::error_span!("round", round = %id);
        if let Some(io) = lanes.first().filter(|io| io.is_triggered()) {
            match triggered(io, id, channel).await? {
                ControlFlow::Continue(at) => begins_at = at,
                ControlFlow::Break(RoundEnd::Stopped) => return Ok(()),
                ControlFlow::Break(_) => break,
            }
        }
        let span = span.entered();
        let mut parts: Vec<Round<I::Observer>> = {
            let begun = lanes.iter_mut().map(|io| io.begin(id, begins_at));
            begun.collect()
        };
        let mut complete = false;
        let over = play(is_root, lanes, channel, id, &mut parts, &mut complete).await;
        drop(span);
        let gave_up = !matches!(over, Ok(RoundEnd::Played));
        if gave_up {
            for (io, round) in lanes.iter_mut().zip(&mut parts) {
                io.settle(round).await;
            }
        }
        let reports = lanes.iter_mut().zip(parts);
        let reports = reports.map(|(io, round)| io.report(round, complete));
        let report = reports.reduce(Report::with_part);
        if !gave_up && id.0 < rounds {
            prepare(lanes).await;
        }
        match over {
            Ok(RoundEnd::Stopped) => return Ok(()),
            Ok(RoundEnd::Played | RoundEnd::Aborted) => {}
            Err(error) => match channel.fault(id, &error) {
                Some(fault) => channel.send_reply(fault).await?,
                None => return Err(error),
            },
        }
        if let Some(report) = report {
            channel.send_reply(FromPe::Report(report)).await?;
        }
        if gave_up {
            break;
        }
    }
    loop {
        match channel.next_command().await? {
            ToPe::Stop { .. } => return Ok(()),
            // Sent to all PEs, even to one that has given up by itself.
            ToPe::Abort { .. } | ToPe::Collect { .. } => {}
            other => return Err(channel.unexpected(&other, "after the last round")),
        }
    }
}

/// Waits until the coordinator triggers a round, and reads the clock for it before. Returns the time
/// at which the round begins, or the round's end.
async fn triggered<C: Channel>(
    io: &impl RoundsIo,
    id: RoundId,
    channel: &mut C,
) -> Result<ControlFlow<RoundEnd, Time>, C::Error> {
    loop {
        return Ok(match channel.next_command().await? {
            ToPe::ReadClock => {
                let at_ns = io.now().0;
                channel.send_reply(FromPe::ClockRead { at_ns }).await?;
                continue;
            }
            ToPe::Trigger { round, at_ns } if round == id => match at_ns {
                0 => ControlFlow::Continue(io.now()),
                at_ns => ControlFlow::Continue(Time(at_ns)),
            },
            ToPe::Stop { .. } => ControlFlow::Break(RoundEnd::Stopped),
            ToPe::Abort { .. } => ControlFlow::Break(RoundEnd::Aborted),
            other => return Err(channel.unexpected(&other, "between rounds")),
        });
    }
}

/// The end of a round at this PE.
enum RoundEnd {
    /// The round is over and must be reported.
    Played,
    /// The coordinator gave the round up.
    Aborted,
    /// The coordinator requests that the PE leaves.
    Stopped,
}

async fn prepare<I: RoundsIo>(lanes: &mut [I]) {
    for io in lanes {
        io.prepare().await;
    }
}

async fn play<I, C>(
    is_root: bool,
    lanes: &mut [I],
    channel: &mut C,
    id: RoundId,
    parts: &mut [Round<I::Observer>],
    complete: &mut bool,
) -> Result<RoundEnd, C::Error>
where
    I: RoundsIo,
    C: Channel,
    C::Error: From<I::Error>,
{
    // The root itself has reported the end of the round.
    let mut collect = is_root;
    let mut playing = std::pin::pin!(async {
        let _working = lanes.first().map(RoundsIo::working);
        let playing = parts.iter_mut().zip(lanes.iter_mut());
        all_of(playing.map(|(round, io)| Box::pin(round::play(round, io)))).await
    });
    while !(*complete && collect) {
        tokio::select! {
            biased;
            played = &mut playing, if !*complete => {
                played?;
                *complete = true;
            }
            command = channel.next_command_in(id) => match command? {
                ToPe::Collect { round } if round == id => collect = true,
                ToPe::Stop { .. } => return Ok(RoundEnd::Stopped),
                ToPe::Abort { .. } => return Ok(RoundEnd::Aborted),
                other => return Err(channel.unexpected(&other, "in a round")),
            },
        }
    }
    Ok(RoundEnd::Played)
}

/// Waits for all futures, or for the first error.
async fn all_of<E>(
    futures: impl Iterator<Item = impl Future<Output = Result<(), E>> + Unpin>,
) -> Result<(), E> {
    let mut pending: Vec<_> = futures.collect();
    poll_fn(|cx| {
        let mut place = 0;
        while let Some(future) = pending.get_mut(place) {
            match Pin::new(future).poll(cx) {
                Poll::Ready(Ok(())) => drop(pending.swap_remove(place)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => place += 1,
            }
        }
        match pending.is_empty() {
            true => Poll::Ready(Ok(())),
            false => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use flitcast_proto::PeId;

    use super::*;
    use crate::error::NodeError;
    use crate::io::NodeIo;

    /// A coordinator that sends these messages.
    struct Sends(VecDeque<ToPe>);

    impl Channel for Sends {
        type Error = NodeError;

        async fn next_command(&mut self) -> Result<ToPe, NodeError> {
            self.0.pop_front().ok_or(NodeError::Abandoned)
        }

        async fn next_command_in(&mut self, _round: RoundId) -> Result<ToPe, NodeError> {
            self.next_command().await
        }

        async fn send_reply(&mut self, _reply: FromPe) -> Result<(), NodeError> {
            Ok(())
        }

        fn unexpected(&self, command: &ToPe, when: &'static str) -> NodeError {
            NodeError::unexpected(command, when)
        }

        fn fault(&self, round: RoundId, error: &NodeError) -> Option<FromPe> {
            Some(error.report(PeId::ROOT, round))
        }
    }

    /// A PE that has given up ignores messages that the coordinator sent before it was notified.
    #[tokio::test]
    async fn a_pe_that_has_given_up_waits_until_it_is_to_leave() {
        let round = RoundId(1);
        let abort = ToPe::Abort {
            round,
            reason: String::new(),
        };
        for late in [ToPe::Collect { round }, abort] {
            // A trigger is not for this PE, which therefore gives up.
            let sent = [
                ToPe::Trigger { round, at_ns: 0 },
                late,
                ToPe::Stop { over: false },
            ];
            let mut channel = Sends(sent.into());
            let mut lanes: [NodeIo<'_>; 0] = [];
            let left = play_rounds(false, 2, &mut lanes, &mut channel, &mut RoundId(0)).await;
            assert!(left.is_ok(), "{left:?}");
            assert!(channel.0.is_empty());
        }
    }
}
