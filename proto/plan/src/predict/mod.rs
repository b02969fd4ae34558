//! The duration of a round on measured links and hosts, predicted with the state machines of real
//! rounds in virtual time.
//!
//! Each action of a [`Round`] costs what [`Model`] defines, and frames have sizes but no bytes. The
//! prediction does not depend on the algorithm.

mod compression;
mod cores;
mod file_tasks;
mod files;
mod predicted_pe;
mod prediction;
mod prediction_state;
mod resources;
mod wires;

use std::sync::{Arc, atomic::AtomicBool};

use flitcast_proto::Tree;
use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::round::ProtocolError;
use prediction_state::PredictionState;

use crate::cost::Model;

pub use compression::compressed_share;
pub use prediction::Prediction;

/// Minimum number of pieces of the longest messages, each a whole number of flits, if they have as
/// many flits.
const PIECES: u64 = 1024;
/// Number of pieces for each hop of the deepest tree. A relay forwards whole pieces, so each hop
/// but the first adds a piece: a quarter of a percent with this number.
const PIECES_A_HOP: u64 = 400;
/// Maximum number of crossings of pieces over all edges, to limit the time of a prediction. With
/// many messages each has fewer pieces, which matters less because a port forwards more messages.
const CROSSINGS: u64 = 500_000;

/// Returns the maximum number of pieces of a message. Predicted times are late by at most a piece
/// for each edge on a message's way.
pub fn most_pieces(tree: &Tree, schedules: &[PeSchedule]) -> u64 {
    let takes = schedules.iter().flat_map(|schedule| &schedule.receives);
    let crossings: u64 = takes.map(|message| hops(tree, message)).sum();
    let most = (CROSSINGS / crossings.max(1)).max(1);
    (PIECES_A_HOP * u64::from(tree.height()))
        .max(PIECES)
        .min(most)
}

/// Returns the maximum number of edges from the source of a message to one of its destinations.
pub fn hops(tree: &Tree, message: &Message) -> u64 {
    let depth = |pe| u64::from(tree.depth(pe));
    match message.destination.one() {
        Some(pe) => depth(pe) + depth(message.source),
        None => 1,
    }
}

/// Predicts the round of these schedules, one for each PE.
pub fn predict(
    tree: &Arc<Tree>,
    schedules: &[PeSchedule],
    model: &Model,
) -> Result<Prediction, ProtocolError> {
    predict_unless(&AtomicBool::new(false), tree, schedules, model)
}

/// Predicts a round as [`predict`] does, unless another thread sets `given_up` before the end.
///
/// # Errors
///
/// Returns an error if a round refuses its schedule, or if the prediction was given up.
pub fn predict_unless(
    given_up: &AtomicBool,
    tree: &Arc<Tree>,
    schedules: &[PeSchedule],
    model: &Model,
) -> Result<Prediction, ProtocolError> {
    let sent = schedules.iter().flat_map(PeSchedule::cut_sends);
    let flits = sent.map(|(message, flit)| message.bytes.div_ceil(flit.into()));
    let flits = flits.max().unwrap_or(0);
    let flits_a_piece = flits.div_ceil(most_pieces(tree, schedules)).max(1);
    let state = PredictionState::run_to_end(given_up, tree, schedules, model, flits_a_piece)?;
    Ok(state.prediction())
}

#[cfg(test)]
mod packet_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod tests;
