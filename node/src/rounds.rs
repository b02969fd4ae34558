//! The rounds of one PE, one after the other, as its coordinator wants them.

use flitcast_proto::RoundId;
use flitcast_proto::round::{Observer, Round};
use flitcast_proto::wire::control::{FromPe, Report, ToPe};
use futures_util::future::try_join_all;
use tracing::Instrument as _;

use crate::round::{self, RoundIo};

/// What all rounds of a PE are played on.
#[expect(async_fn_in_trait, reason = "whoever plays rounds knows its type")]
pub trait RoundsIo: RoundIo {
    /// Who hears of them.
    type Observer: Observer;
    /// While one lives, the PE is seen to be at work.
    type Working;

    /// A round is about to begin: opens the first messages, so that none waits for its disk.
    async fn prepare(&mut self);

    /// This PE's part of a round. P0 begins now.
    fn begin(&mut self, id: RoundId) -> Round<Self::Observer>;

    /// The PE is at work.
    fn working(&self) -> Self::Working;

    /// Given up: what was complete is made visible all the same, and told so.
    async fn settle(&mut self, round: &mut Round<Self::Observer>);

    /// What is to be told of a round that is over, or was given up.
    fn report(&mut self, round: Round<Self::Observer>, complete: bool) -> Report;
}

/// The channel to the coordinator, while rounds are played.
#[expect(async_fn_in_trait, reason = "whoever plays rounds knows its type")]
pub trait Channel {
    /// Why the PE cannot go on.
    type Error;

    /// What the coordinator says next.
    async fn next_word(&mut self) -> Result<ToPe, Self::Error>;

    /// What it says next in a round, of whose progress P0 tells meanwhile.
    async fn next_word_in(&mut self, round: RoundId) -> Result<ToPe, Self::Error>;

    /// Has something said.
    async fn say(&mut self, word: FromPe) -> Result<(), Self::Error>;

    /// A word that has no place now.
    fn unexpected(&self, word: &ToPe, when: &'static str) -> Self::Error;

    /// What the coordinator is told of an error; `None` if it is the channel's own.
    fn fault(&self, round: RoundId, error: &Self::Error) -> Option<FromPe>;
}

/// Prepares for so many rounds and plays them, and stays until it is to leave. `under_way` says which
/// round it is at. A round is played on all of `lanes` at once: one, or one for each of several trees.
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
    channel.say(FromPe::Prepared).await?;
    for id in (1..=rounds).map(RoundId) {
        *under_way = id;
        if is_root {
            match channel.next_word().await? {
                ToPe::Trigger { round } if round == id => {}
                ToPe::Stop { .. } => return Ok(()),
                ToPe::Abort { .. } => break,
                other => return Err(channel.unexpected(&other, "between rounds")),
            }
        }
        // Ahead of the round, which would take longer for it.
        let span = tracing::error_span!("round", round = %id);
        let mut parts: Vec<Round<I::Observer>> = lanes.iter_mut().map(|io| io.begin(id)).collect();
        let mut complete = false;
        let playing = play(is_root, lanes, channel, id, &mut parts, &mut complete);
        let over = playing.instrument(span).await;
        let gave_up = !matches!(over, Ok(Over::Played));
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
            Ok(Over::Stopped) => return Ok(()),
            Ok(Over::Played | Over::Aborted) => {}
            Err(error) => match channel.fault(id, &error) {
                Some(fault) => channel.say(fault).await?,
                None => return Err(error),
            },
        }
        if let Some(report) = report {
            channel.say(FromPe::Report(report)).await?;
        }
        if gave_up {
            break;
        }
    }
    loop {
        match channel.next_word().await? {
            ToPe::Stop { .. } => return Ok(()),
            // Said to all, whether they had given up themselves or not.
            ToPe::Abort { .. } => {}
            other => return Err(channel.unexpected(&other, "after the last round")),
        }
    }
}

/// How a round ended, as far as this PE is concerned.
enum Over {
    /// It is over, and the coordinator wants to hear of it.
    Played,
    /// The coordinator gave it up.
    Aborted,
    /// The coordinator wants the PE to leave.
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
) -> Result<Over, C::Error>
where
    I: RoundsIo,
    C: Channel,
    C::Error: From<I::Error>,
{
    // The root has said itself that the round is over.
    let mut collect = is_root;
    let mut playing = std::pin::pin!(async {
        let _working = lanes.first().map(RoundsIo::working);
        let playing = parts.iter_mut().zip(lanes.iter_mut());
        try_join_all(playing.map(|(round, io)| round::play(round, io))).await
    });
    while !(*complete && collect) {
        tokio::select! {
            biased;
            played = &mut playing, if !*complete => {
                played?;
                *complete = true;
            }
            word = channel.next_word_in(id) => match word? {
                ToPe::Collect { round } if round == id => collect = true,
                ToPe::Stop { .. } => return Ok(Over::Stopped),
                ToPe::Abort { .. } => return Ok(Over::Aborted),
                other => return Err(channel.unexpected(&other, "in a round")),
            },
        }
    }
    Ok(Over::Played)
}
