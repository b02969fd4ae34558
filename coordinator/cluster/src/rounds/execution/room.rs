//! The check that messages made of files fit on the file systems of their destinations, before anything is
//! sent.

use std::collections::BTreeMap;
use std::path::Path;

use flitcast_proto::PeId;

use super::driver::Driver;
use super::inventory::Found;
use crate::rounds::controller::FailureCause;
use crate::text::figures::first_names;
use crate::text::units::Bytes;

/// Maximum number of file systems that an error lists.
const LISTED: usize = 3;

/// The free bytes of a file system, and what the PEs that write to it will receive.
#[derive(Debug, Default)]
struct Room {
    free_bytes: u64,
    /// For each PE the bytes that it will receive.
    arriving: Vec<(u64, PeId)>,
}

impl Room {
    fn arriving_bytes(&self) -> u64 {
        let bytes = self.arriving.iter().map(|(bytes, _)| *bytes);
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the PEs whose messages do not fit beside those of the others: those that receive most.
    fn without_room(&self) -> Vec<PeId> {
        let mut by_bytes = self.arriving.clone();
        by_bytes.sort_unstable();
        let mut used = 0_u64;
        let has_room = |(bytes, _): &&(u64, PeId)| {
            used = used.saturating_add(*bytes);
            used <= self.free_bytes
        };
        let fit = by_bytes.iter().take_while(has_room).count();
        by_bytes[fit..].iter().map(|(_, pe)| *pe).collect()
    }
}

impl Driver<'_> {
    /// Checks that the messages fit on the file systems of their destinations: their content takes at least
    /// the space of its length. The parts that earlier runs have left there take no more space.
    pub fn check_room(&self, found: &Found) -> Result<(), FailureCause> {
        if found.free_bytes.iter().all(Option::is_none) {
            return Ok(());
        }
        let (request, tree) = (self.request, &self.request.site.tree);
        let collective = request.way.operation.collective();
        let mut arriving = vec![0_u64; tree.len()];
        for message in collective.messages(tree) {
            for at in message.ends(tree) {
                let delivery = collective.delivery(tree, message.id, at);
                let kept = found.prefixes.get(&delivery).copied().unwrap_or(0);
                let rest = found.bytes[delivery.index()].saturating_sub(kept);
                arriving[at.index()] = arriving[at.index()].saturating_add(rest);
            }
        }
        let mut rooms: BTreeMap<_, Room> = BTreeMap::new();
        for pe in tree.pes() {
            let (bytes, free) = (arriving[pe.index()], found.free_bytes[pe.index()]);
            if let Some(free) = free.filter(|_| bytes > 0) {
                let file_system = self.file_system(pe, found.file_systems[pe.index()]);
                let room = rooms.entry(file_system).or_default();
                // PEs of a host look at different times, while they remove leftovers of earlier runs.
                room.free_bytes = room.free_bytes.max(free);
                room.arriving.push((bytes, pe));
            }
        }
        let (mut pes, mut texts) = (Vec::new(), Vec::new());
        let files = request.messages.payload.files();
        let output = files.map_or(Path::new(""), |files| &files.output).display();
        for room in rooms.values() {
            let without_room = room.without_room();
            if without_room.is_empty() {
                continue;
            }
            pes.extend(without_room);
            let receivers = room.arriving.iter();
            let receivers = receivers.map(|(_, pe)| request.site.placement.called(*pe));
            texts.push(format!(
                "`{output}` has {} free, and {} would arrive there for {}",
                Bytes(room.free_bytes),
                Bytes(room.arriving_bytes()),
                first_names(receivers),
            ));
        }
        if pes.is_empty() {
            return Ok(());
        }
        pes.sort_unstable();
        let others = texts.len().saturating_sub(LISTED);
        texts.truncate(LISTED);
        if others > 0 {
            texts.push(format!("likewise on {others} other file systems"));
        }
        let text = texts.join("; ");
        Err(FailureCause::NoRoom(
            pes,
            format!("{text}; free some space, or choose another --output"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_messages_are_those_without_room() {
        let room = |free_bytes, arriving: &[u64]| Room {
            free_bytes,
            arriving: arriving.iter().copied().zip((1..).map(PeId)).collect(),
        };
        let pes = |numbers: &[u32]| numbers.iter().copied().map(PeId).collect::<Vec<_>>();
        assert_eq!(room(60, &[10, 20, 30]).without_room(), pes(&[]));
        assert_eq!(room(59, &[10, 20, 30]).without_room(), pes(&[3]));
        assert_eq!(room(59, &[40, 20, 30]).without_room(), pes(&[1]));
        assert_eq!(room(29, &[10, 20, 30]).without_room(), pes(&[2, 3]));
        assert_eq!(room(9, &[10, 20, 30]).without_room(), pes(&[1, 2, 3]));
        assert_eq!(room(u64::MAX, &[u64::MAX, 1]).without_room(), pes(&[]));
        assert_eq!(room(5, &[u64::MAX, u64::MAX]).without_room(), pes(&[1, 2]));
    }
}
