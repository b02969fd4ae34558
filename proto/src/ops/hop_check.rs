//! Checks of the crossings in a PE's schedule.

use std::collections::BTreeMap;

use super::pe_role::PeRole;
use super::pe_schedule::PeSchedule;
use crate::items::ScheduledHop;
use crate::{MessageId, PeId, Tree};

impl PeSchedule {
    /// Checks that this PE, with connections to `connected` (sorted), can execute all crossings: each has
    /// flits of a message of the collective and uses a connection; the flits of a message arrive once
    /// each and without gaps, and all of those that end here; and only flits that start or arrive here
    /// are sent.
    ///
    /// # Errors
    ///
    /// Returns a description of the first crossing that is not possible.
    pub fn check_hops(
        &self,
        pe: PeId,
        tree: &Tree,
        connected: &[PeId],
    ) -> Result<(), &'static str> {
        if self.role != PeRole::StaticSchedule {
            return match self.hops.is_empty() {
                true => Ok(()),
                false => Err("with crossings for a role that has none"),
            };
        }
        for hop in &self.hops {
            self.check_hop(pe, tree, connected, hop)?;
        }
        let all_flits = |bytes: u64| bytes.div_ceil(self.flit_bytes.into());
        // The flits of each message that this PE has in the end: its own, and those that arrive.
        let sends = self.sends.iter();
        let sends = sends.map(|message| (message.id, all_flits(message.bytes)));
        let mut here: BTreeMap<MessageId, u64> = sends.collect();
        let hops = self.hops.iter();
        let (mut arriving, sent): (Vec<&ScheduledHop>, _) = hops.partition(|hop| hop.to == pe);
        arriving.sort_unstable_by_key(|hop| (hop.message, hop.offset));
        for hop in arriving {
            let end = here.entry(hop.message).or_default();
            if *end != hop.offset {
                return Err("with crossings that repeat flits or leave some out");
            }
            *end += hop.flits;
        }
        let flits_of = |message| here.get(&message).copied().unwrap_or(0);
        let mut receives = self.receives.iter();
        if receives.any(|message| flits_of(message.id) != all_flits(message.bytes)) {
            return Err("with crossings that are not the flits of a message");
        }
        let mut sent = sent.iter();
        match sent.all(|hop| hop.offset + hop.flits <= flits_of(hop.message)) {
            true => Ok(()),
            false => Err("with crossings of flits that never arrive"),
        }
    }

    fn check_hop(
        &self,
        pe: PeId,
        tree: &Tree,
        connected: &[PeId],
        hop: &ScheduledHop,
    ) -> Result<(), &'static str> {
        let other = match (hop.from == pe, hop.to == pe) {
            (true, false) => hop.to,
            (false, true) => hop.from,
            _ => return Err("with crossings between other PEs"),
        };
        if connected.binary_search(&other).is_err() {
            return Err("with crossings over connections that the PE does not have");
        }
        let parts = self.parts as usize;
        let message = self.collective.address_of_part(tree, hop.message, parts);
        let end = hop.offset.checked_add(hop.flits);
        let is_possible = hop.flits > 0 && hop.first_step > 0 && hop.every > 0;
        match message.is_some() && end.is_some() && is_possible {
            true => Ok(()),
            false => Err("with crossings of no flits of any message"),
        }
    }
}
