//! A round before it runs: its input as one value, and its plan and prediction.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_proto::Tree;
use flitcast_proto::cost::Model;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::Pacing;

use crate::job::flit_size::{Foreseen, foresee_best};
use crate::job::lanes::Lanes;
use crate::job::order;
use crate::job::packets::foresee_in_packets;
use crate::ways::way::Way;

/// The input for the plan and the prediction of a round.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The tree.
    pub tree: Arc<Tree>,
    /// The algorithm and its settings.
    pub way: Way,
    /// Pacing of orders.
    pub pacing: Pacing,
    /// Lengths by delivery.
    pub bytes: Vec<u64>,
    /// The trees on which messages may be sent at once.
    pub lanes: Lanes,
    /// The costs of links and hosts.
    pub model: Model,
}

impl Planned {
    /// Makes the remaining choices for the round and predicts it.
    ///
    /// # Errors
    ///
    /// Returns the error of a state machine, which is a bug in the schedule.
    pub fn plan_and_predict(&self, given_up: &AtomicBool) -> Result<Foreseen, RoundFault> {
        let Planned {
            tree,
            way,
            pacing,
            bytes,
            lanes,
            model,
        } = self;
        let pacing = *pacing;
        let one = match way.packets {
            Some(asked) => foresee_in_packets((tree, way, pacing), bytes, asked, model, given_up)?,
            None => {
                let one = foresee_best((tree, way, pacing), bytes, model, given_up)?;
                order::ordered(&way.order, tree, one, model, given_up)?
            }
        };
        lanes.foresee((tree, way, pacing), bytes, one, model, given_up)
    }
}
