//! Messages that go and come in parts, by several trees at once ([`flitcast_proto::ops::parts`]):
//! put together again, flit by flit in the order in which these have left. Which part one is, the
//! tree says on whose connections it comes, or its number.
//!
//! What is not next is held until it is. Nobody waits for it to be taken: a stream that stood still
//! behind it could hold what another one waits for.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flitcast_proto::items::Message;
use flitcast_proto::ops::parts::{Turns, flits_of_parts};
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::{MessageId, Tree};
use tokio::sync::{self, watch};

use crate::held::HeldMessages;
use crate::payload::{PayloadError, Sink};

/// The messages of a PE that go and come in parts, and what is put together of them.
pub struct Parts {
    operation: Operation,
    tree: Arc<Tree>,
    /// By message: the bytes and the flits of each part.
    of: BTreeMap<MessageId, (Vec<u64>, Vec<u64>)>,
    assemblies: Mutex<BTreeMap<MessageId, Arc<sync::Mutex<Assembly>>>>,
}

impl Parts {
    /// What the briefs for all trees say, of which this is the first; `None` if the parts of a
    /// message are none.
    pub fn of(tree: &Arc<Tree>, briefs: &[Brief]) -> Option<Parts> {
        let first = briefs.first()?;
        let operation = first.operation;
        let most = briefs.len().max(operation.parts(tree));
        if briefs.iter().any(|it| it.flit_bytes != first.flit_bytes) {
            return None;
        }
        let flit_bytes = u64::from(first.flit_bytes);
        let mut bytes: BTreeMap<MessageId, Vec<u64>> = BTreeMap::new();
        for (lane, brief) in briefs.iter().enumerate() {
            for message in brief.sends.iter().chain(&brief.takes) {
                let (whole, part) = operation.whole(tree, message.id);
                let parts = bytes.entry(whole).or_insert_with(|| vec![0; most]);
                *parts.get_mut(lane + part)? = message.bytes;
            }
        }
        let in_parts = bytes.into_iter();
        let in_parts = in_parts.filter(|(_, parts)| parts.iter().filter(|it| **it > 0).count() > 1);
        let of = in_parts.map(|(id, parts)| {
            let flits = flits_of_parts(&parts, flit_bytes)?;
            Some((id, (parts, flits)))
        });
        Some(Parts {
            operation,
            tree: tree.clone(),
            of: of.collect::<Option<_>>()?,
            assemblies: Mutex::default(),
        })
    }

    /// Whether any message goes or comes in parts.
    pub fn are_any(&self) -> bool {
        !self.of.is_empty()
    }

    /// The whole message of which this is a part on a tree, to which parts its flits belong, and
    /// which part this is; `None` if the part is all of it.
    pub fn whole(&self, lane: usize, part: Message) -> Option<(Message, Turns, usize)> {
        let (id, place) = self.operation.whole(&self.tree, part.id);
        let (parts, flits) = self.of.get(&id)?;
        let bytes = parts
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part));
        Some((
            Message { id, bytes, ..part },
            Turns::new(flits),
            lane + place,
        ))
    }

    /// Where a part goes that comes on a tree; `None` if it is all of its message. `open` says where
    /// a message goes, and in which folder there is room for what is held.
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
            let parts = flits.iter().filter(|flits| **flits > 0).count();
            let (sink, folder) = open(whole);
            Arc::new(sync::Mutex::new(Assembly {
                sink: Some(sink),
                turns: turns.peekable(),
                folder,
                held: HeldMessages::default(),
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

    /// Nothing more comes: who waits for other parts waits in vain.
    pub async fn give_up(&self) {
        for assembly in self.take_all() {
            assembly.lock().await.done = None;
        }
    }

    /// The next round begins.
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

/// A message that is put together.
struct Assembly {
    /// Where it goes; `None` once that is made visible.
    sink: Option<Sink>,
    /// Of which parts the flits are that are yet to be stored.
    turns: std::iter::Peekable<Turns>,
    /// Flits that came before their turn: of each part, those that were held, and those of them
    /// that went on.
    held: HeldMessages,
    held_flits: Vec<[u64; 2]>,
    folder: PathBuf,
    /// Parts that are not here as a whole.
    uncommitted: usize,
    /// Told when the message is visible.
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
        let [came, went] = self.held_flits[place];
        if self.turns.peek() != Some(&place) || came > went {
            let held = self.held.hold(Self::holds_of(place), payload, &self.folder);
            held.await.map_err(failed)?;
            self.held_flits[place][0] += 1;
            return Ok(true);
        }
        let mut is_right = sink.write(payload, waited_ns).await?;
        self.turns.next();
        while let Some(&next) = self.turns.peek() {
            let [came, went] = self.held_flits[next];
            if came == went {
                break;
            }
            let part = Self::holds_of(next);
            let flit = self.held.frame(part, went).await.map_err(failed)?;
            is_right &= sink.write(&flit.unwrap_or_default(), waited_ns).await?;
            self.held.forget_to(part, went + 1);
            self.held_flits[next][1] += 1;
            self.turns.next();
        }
        Ok(is_right)
    }
}

/// Where a part of a message goes.
pub struct PartSink {
    assembly: Arc<sync::Mutex<Assembly>>,
    place: usize,
}

impl PartSink {
    /// Takes the next flit of the part; whether it, and what it makes room for, are what they have
    /// to be, as far as that can be told without the digest.
    ///
    /// # Errors
    ///
    /// What is wrong with the files.
    pub async fn write(
        &mut self,
        payload: &[u8],
        waited_ns: &mut u64,
    ) -> Result<bool, PayloadError> {
        let mut assembly = self.assembly.lock().await;
        assembly.write(self.place, payload, waited_ns).await
    }

    /// The part is whole. Waits until all are, and the message is visible.
    ///
    /// # Errors
    ///
    /// What is wrong with the files, or that the other parts do not come.
    pub async fn commit(self) -> Result<(), PayloadError> {
        let mut assembly = self.assembly.lock().await;
        assembly.uncommitted -= 1;
        if assembly.uncommitted == 0 {
            if let Some(Sink::Files(files)) = assembly.sink.take() {
                files.commit().await?;
            }
            if let Some(done) = &assembly.done {
                done.send_replace(true);
            }
            return Ok(());
        }
        let folder = assembly.folder.clone();
        let done = assembly.done.as_ref().map(watch::Sender::subscribe);
        drop(assembly);
        let came = match done {
            Some(mut done) => done.wait_for(|done| *done).await.is_ok(),
            None => false,
        };
        match came {
            true => Ok(()),
            false => {
                let gone = PayloadError::io("wait for the other parts in", &folder);
                Err(gone(io::ErrorKind::UnexpectedEof))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::PeId;
    use flitcast_proto::items::Destination;
    use flitcast_proto::ops::parts::bytes_of_parts;
    use proptest::prelude::*;

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

    /// Parts of a message that has so many flits on each tree, and of how many bytes they are.
    fn parts(flits: &[u64], bytes: u64) -> (Parts, Vec<u64>) {
        let lengths = bytes_of_parts(flits, bytes, FLIT);
        let parts = Parts {
            operation: Operation::Scatter,
            tree: tree(),
            of: BTreeMap::from([(MESSAGE, (lengths.clone(), flits.to_vec()))]),
            assemblies: Mutex::default(),
        };
        (parts, lengths)
    }

    /// By tree, the flits of a message as its source sends them.
    fn sent(flits: &[u64], bytes: u64) -> Vec<Vec<Vec<u8>>> {
        let mut message = Synthetic::message(MESSAGE);
        let mut on = vec![Vec::new(); flits.len()];
        let mut left = bytes;
        for lane in Turns::new(flits) {
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
            let mut coming = sent(&flits, bytes);
            let lanes = 0..flits.len();
            let mut sinks: Vec<Option<PartSink>> = lanes
                .map(|lane| {
                    let sink = |_| (Sink::Synthetic(Synthetic::message(MESSAGE)), std::env::temp_dir());
                    (flits[lane] > 0).then(|| parts.sink(part(lengths[lane]), lane, sink)).flatten()
                })
                .collect();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let all_right = runtime.block_on(async {
                let mut all_right = true;
                let rest = (0..flits.len()).cycle().take(60 * flits.len());
                for lane in order.into_iter().map(|lane| lane % flits.len()).chain(rest) {
                    if let (Some(sink), false) = (&mut sinks[lane], coming[lane].is_empty()) {
                        let flit = coming[lane].remove(0);
                        all_right &= sink.write(&flit, &mut 0).await.unwrap();
                    }
                }
                let commits = sinks.into_iter().flatten().map(PartSink::commit);
                futures_util::future::try_join_all(commits).await.unwrap();
                all_right
            });
            prop_assert!(all_right);
        }
    }

    /// Whoever has all of its part does not wait for ever for one that does not come.
    #[tokio::test]
    async fn parts_that_do_not_come_are_waited_for_until_the_round_is_given_up() {
        let (parts, lengths) = parts(&[1, 1], 2 * FLIT);
        let sink = |_| {
            (
                Sink::Synthetic(Synthetic::message(MESSAGE)),
                std::env::temp_dir(),
            )
        };
        let mut first = parts.sink(part(lengths[0]), 0, sink).unwrap();
        let flit = sent(&[1, 1], 2 * FLIT)[0][0].clone();
        assert!(first.write(&flit, &mut 0).await.unwrap());
        let (committed, ()) = tokio::join!(first.commit(), parts.give_up());
        assert!(committed.is_err());
    }
}
