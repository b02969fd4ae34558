//! The messages for this PE, and their progress.

use std::collections::BTreeMap;

use crate::items::Message;
use crate::ops::PeSchedule;
use crate::wire::control::Arrival;
use crate::{MessageId, PeId};

/// The messages for this PE, parts of a message separately.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) all: Vec<Arrival>,
    /// Index in `all` of each message.
    places: BTreeMap<MessageId, usize>,
}

impl Arrivals {
    /// Creates the list of the messages of a PE, of which nothing has arrived.
    pub(super) fn new(schedule: &PeSchedule, pe: PeId) -> Arrivals {
        let all: Vec<Arrival> = schedule
            .receives
            .iter()
            .map(|it| Arrival::of(it, pe))
            .collect();
        let places = all.iter().map(|arrival| arrival.message).zip(0..);
        Arrivals {
            places: places.collect(),
            all,
        }
    }

    /// Returns the progress of a message, or `None` if it is not for this PE.
    #[inline]
    pub(super) fn of(&mut self, message: &Message) -> Option<&mut Arrival> {
        let place = self.places.get(&message.id)?;
        self.all.get_mut(*place)
    }
}
