//! Messages in parts on several trees at once ([`flitcast_proto::ops::parts`]): reassembled flit by
//! flit in the order in which the source has sent them. The tree of its connection, or its number,
//! identifies a part.
//!
//! A flit that is not the next one is stored until it is. Its stream does not wait for that: a blocked
//! stream could block the flits that another one needs.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flitcast_proto::items::Message;
use flitcast_proto::ops::parts::{FlitInterleaver, flits_of_parts};
use flitcast_proto::ops::{Collective, PeSchedule};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, Tree};
use tokio::sync::{self, watch};

use crate::held::HeldMessages;
use crate::payload::{PayloadError, Sink};

/// The messages of a PE that are sent or received in parts, and their reassembly.
pub struct Parts {
    collective: Collective,
    tree: Arc<Tree>,
    has_tail: bool,
    /// The bytes and the flits of each part, by message.
    of: BTreeMap<MessageId, (Vec<u64>, Vec<u64>)>,
    assemblies: Mutex<BTreeMap<MessageId, Arc<sync::Mutex<Assembly>>>>,
    spare: Spare,
}

/// The memory of complete messages, for those that follow: new memory takes longer to get than to fill.
type Spare = Arc<Mutex<Vec<HeldMessages>>>;

impl Parts {
    /// Reads the schedules for all trees, of which this is the first; returns `None` if the parts of a
    /// message are inconsistent.
    pub fn of(tree: &Arc<Tree>, schedules: &[PeSchedule]) -> Option<Parts> {
        let first = schedules.first()?;
        let (collective, has_tail) = (first.collective, first.has_tail);
        let most = schedules.len().max(first.parts as usize);
        if schedules.iter().any(|it| it.flit_bytes != first.flit_bytes) {
            return None;
        }
        let flit_bytes = u64::from(first.flit_bytes);
        let mut bytes: BTreeMap<MessageId, Vec<u64>> = BTreeMap::new();
        for (lane, schedule) in schedules.iter().enumerate() {
            for message in schedule.sends.iter().chain(&schedule.receives) {
                let (whole, part) = collective.whole(tree, message.id);
                let parts = bytes.entry(whole).or_insert_with(|| vec![0; most]);
                *parts.get_mut(lane + part)? = message.bytes;
            }
        }
        for parts in bytes.values_mut() {
            // Few operations have as many parts as are possible.
            let last = parts.iter().rposition(|bytes| *bytes > 0);
            parts.truncate(last.map_or(0, |last| last + 1));
        }
        let in_parts = bytes.into_iter();
        let in_parts = in_parts.filter(|(_, parts)| parts.iter().filter(|it| **it > 0).count() > 1);
        let of = in_parts.map(|(id, parts)| {
            let flits = flits_of_parts(&parts, has_tail, flit_bytes)?;
            Some((id, (parts, flits)))
        });
        Some(Parts {
            collective,
            tree: tree.clone(),
            has_tail,
            of: of.collect::<Option<_>>()?,
            assemblies: Mutex::default(),
            spare: Spare::default(),
        })
    }

    pub fn are_any(&self) -> bool {
        !self.of.is_empty()
    }

    /// Returns the whole message of a part on a tree, the part of each of its flits, and the index of
    /// this part; `None` if the part is the whole message.
    pub fn whole(&self, lane: usize, part: Message) -> Option<(Message, FlitInterleaver, usize)> {
        let (id, place) = self.collective.whole(&self.tree, part.id);
        let (parts, flits) = self.of.get(&id)?;
        let bytes = parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part));
        let message = Message { id, bytes, ..part };
        Some((
            message,
            FlitInterleaver::new(flits, self.has_tail),
            lane + place,
        ))
    }

    /// Returns the destination of a part on a tree; `None` if it is the whole message. `open` opens the
    /// destination of the message, and returns the folder for stored flits.
    pub fn sink(
        &self,
        part: Message,
        lane: usize,
        open: impl FnOnce(Message) -> (Sink, PathBuf),
    ) -> Option<PartSink> {
        let (whole, turns, place) = self.whole(lane, part)?;
        let mut assemblies = self.assemblies.lock().ok()?;
        let assembly = assemblies.entry(whole.id).or_insert_with(|| {
            let (_, flits) = &self.of[&whole.id];
            let held = self.spare.lock().ok().and_then(|mut spare| spare.pop());
            let parts = flits.iter().filter(|flits| **flits > 0).count();
            let (sink, folder) = open(whole);
            Arc::new(sync::Mutex::new(Assembly {
                sink: Some(sink),
                turns: turns.peekable(),
                folder,
                held: held.unwrap_or_default(),
                spare: self.spare.clone(),
                held_flits: vec![[0; 2]; flits.len()],
                uncommitted: parts,
                done: Some(watch::Sender::new(false)),
            }))
        });
        Some(PartSink {
            assembly: assembly.clone(),
            place,
        })
    }

    /// Ends all waits for other parts, because nothing more arrives.
    pub async fn give_up(&self) {
        for assembly in self.take_all() {
            assembly.lock().await.done = None;
        }
    }

    /// Prepares for the next round.
    pub fn forget(&self) {
        self.take_all();
    }

    fn take_all(&self) -> Vec<Arc<sync::Mutex<Assembly>>> {
        let all = self
            .assemblies
            .lock()
            .map(|mut all| std::mem::take(&mut *all));
        all.unwrap_or_default().into_values().collect()
    }
}

/// A message that is reassembled.
struct Assembly {
    /// The destination; `None` once that is being made visible.
    sink: Option<Sink>,
    /// The part of each flit that is not stored yet.
    turns: std::iter::Peekable<FlitInterleaver>,
    /// Flits that arrived before their turn, and for each part the numbers of stored and of forwarded
    /// ones.
    held: HeldMessages,
    spare: Spare,
    held_flits: Vec<[u64; 2]>,
    folder: PathBuf,
    /// Number of incomplete parts.
    uncommitted: usize,
    /// Notified when the message is visible.
    done: Option<watch::Sender<bool>>,
}

impl Assembly {
    fn holds_of(place: usize) -> MessageId {
        MessageId(place as u64)
    }

    async fn write(
        &mut self,
        place: usize,
        payload: &[u8],
        waited_ns: &mut u64,
    ) -> Result<bool, PayloadError> {
        let Some(sink) = &mut self.sink else {
            return Ok(false);
        };
        let failed = |source: io::Error| PayloadError::io("hold flits in", &self.folder)(source);
        let [received, written] = self.held_flits[place];
        if self.turns.peek() != Some(&place) || received > written {
            let held = self.held.hold(Self::holds_of(place), payload, &self.folder);
            held.await.map_err(failed)?;
            self.held_flits[place][0] += 1;
            return Ok(true);
        }
        let mut is_right = sink.write(payload, waited_ns).await?;
        self.turns.next();
        while let Some(&next) = self.turns.peek() {
            let [received, written] = self.held_flits[next];
            if received == written {
                break;
            }
            let part = Self::holds_of(next);
            let flit = self.held.frame(part, written).await.map_err(failed)?;
            is_right &= sink.write(&flit.unwrap_or_default(), waited_ns).await?;
            self.held.forget_to(part, written + 1);
            self.held_flits[next][1] += 1;
            self.turns.next();
        }
        Ok(is_right)
    }
}

/// The destination of a part of a message.
pub struct PartSink {
    assembly: Arc<sync::Mutex<Assembly>>,
    place: usize,
}

impl PartSink {
    /// Takes the next flit of the part. Returns whether it and the stored flits that follow it are
    /// valid, as far as that can be checked without the digest.
    pub async fn write(
        &mut self,
        payload: &[u8],
        waited_ns: &mut u64,
    ) -> Result<bool, PayloadError> {
        let mut assembly = self.assembly.lock().await;
        assembly.write(self.place, payload, waited_ns).await
    }

    /// Completes the part. Waits until all parts are complete and the message is visible; the last part
    /// returns the digest of the written bytes. Fails if the other parts do not arrive.
    pub async fn commit(self) -> Result<Option<Digest>, PayloadError> {
        let mut assembly = self.assembly.lock().await;
        assembly.uncommitted -= 1;
        if assembly.uncommitted == 0 {
            let mut held = std::mem::take(&mut assembly.held);
            held.forget_all();
            if let Ok(mut spare) = assembly.spare.lock() {
                spare.push(held);
            }
            let digest = match assembly.sink.take() {
                Some(Sink::Files(files)) => Some(files.commit().await?),
                Some(Sink::Synthetic(_)) | None => None,
            };
            if let Some(done) = &assembly.done {
                done.send_replace(true);
            }
            return Ok(digest);
        }
        let folder = assembly.folder.clone();
        let done = assembly.done.as_ref().map(watch::Sender::subscribe);
        drop(assembly);
        let completed = match done {
            Some(mut done) => done.wait_for(|done| *done).await.is_ok(),
            None => false,
        };
        let failed = PayloadError::io("wait for the other parts in", &folder);
        let completed = completed.then_some(None);
        completed.ok_or_else(|| failed(io::ErrorKind::UnexpectedEof))
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::PeId;
    use flitcast_proto::items::Destination;
    use flitcast_proto::ops::parts::bytes_of_parts;
    use proptest::prelude::*;
    use tokio::task::JoinSet;

    use super::*;
    use crate::payload::Synthetic;

    const FLIT: u64 = 10;
    const MESSAGE: MessageId = MessageId(3);

    fn part(bytes: u64) -> Message {
        Message {
            id: MESSAGE,
            source: PeId(0),
            destination: Destination::One(PeId(3)),
            bytes,
        }
    }

    fn tree() -> Arc<Tree> {
        let parents = [None, Some(0), Some(0), Some(0)];
        let parents = parents.map(|parent| parent.map(PeId));
        Arc::new(Tree::from_parents(parents.to_vec()).unwrap())
    }

    /// Returns the parts of a message with these numbers of flits on each tree, and their lengths in
    /// bytes.
    fn parts(flits: &[u64], bytes: u64) -> (Parts, Vec<u64>) {
        let lengths = bytes_of_parts(flits, false, bytes, FLIT);
        let parts = Parts {
            collective: Collective::Scatter,
            tree: tree(),
            has_tail: false,
            of: BTreeMap::from([(MESSAGE, (lengths.clone(), flits.to_vec()))]),
            assemblies: Mutex::default(),
            spare: Spare::default(),
        };
        (parts, lengths)
    }

    fn sink(_: Message) -> (Sink, PathBuf) {
        let synthetic = Sink::Synthetic(Synthetic::message(MESSAGE));
        (synthetic, std::env::temp_dir())
    }

    /// Returns the flits of a message on each tree, as its source sends them.
    fn sent(flits: &[u64], bytes: u64) -> Vec<Vec<Vec<u8>>> {
        let mut message = Synthetic::message(MESSAGE);
        let mut on = vec![Vec::new(); flits.len()];
        let mut left = bytes;
        for lane in FlitInterleaver::new(flits, false) {
            let len = left.min(FLIT);
            on[lane].push(message.next(len as usize).to_vec());
            left -= len;
        }
        on
    }

    proptest! {
        #[test]
        fn flits_are_put_together_in_whatever_order_trees_bring_them(
            flits in prop::collection::vec(0u64..12, 2..5),
            short in 0..FLIT,
            order in prop::collection::vec(0usize..5, 60),
        ) {
            let total: u64 = flits.iter().sum();
            prop_assume!(flits.iter().filter(|flits| **flits > 0).count() > 1);
            let bytes = total * FLIT - short;
            let (parts, lengths) = parts(&flits, bytes);
            let mut flits_of_lanes = sent(&flits, bytes);
            let lanes = 0..flits.len();
            let mut sinks: Vec<Option<PartSink>> = lanes
                .map(|lane| {
                    (flits[lane] > 0).then(|| parts.sink(part(lengths[lane]), lane, sink)).flatten()
                })
                .collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let all_right = runtime.block_on(async {
                let mut all_right = true;
                let rest = (0..flits.len()).cycle().take(60 * flits.len());
                for lane in order.into_iter().map(|lane| lane % flits.len()).chain(rest) {
                    if let (Some(sink), false) = (&mut sinks[lane], flits_of_lanes[lane].is_empty()) {
                        let flit = flits_of_lanes[lane].remove(0);
                        all_right &= sink.write(&flit, &mut 0).await.unwrap();
                    }
                }
                let commits = sinks.into_iter().flatten().map(PartSink::commit);
                let commits: JoinSet<_> = commits.collect();
                for committed in commits.join_all().await {
                    committed.unwrap();
                }
                all_right
            });
            prop_assert!(all_right);
        }
    }

    /// The receiver of a complete part does not wait for ever for a missing one.
    #[tokio::test]
    async fn missing_parts_are_waited_for_until_the_round_is_given_up() {
        let (parts, lengths) = parts(&[1, 1], 2 * FLIT);
        let mut first = parts.sink(part(lengths[0]), 0, sink).unwrap();
        let flit = sent(&[1, 1], 2 * FLIT)[0][0].clone();
        assert!(first.write(&flit, &mut 0).await.unwrap());
        let (committed, ()) = tokio::join!(first.commit(), parts.give_up());
        assert!(committed.is_err());
    }
}
