//! Messages that come in on several trees at once, a part on each ([`flitcast_proto::ops::parts`]):
//! put together again, flit by flit in the order in which these have left.
//!
//! What is not next is held until it is. Nobody waits for it to be taken: a stream that stood still
//! behind it could hold what another one waits for.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flitcast_proto::MessageId;
use flitcast_proto::items::Message;
use flitcast_proto::ops::Brief;
use flitcast_proto::ops::parts::{Turns, flits_of_parts};
use tokio::sync::{self, watch};

use crate::held::HeldMessages;
use crate::payload::{PayloadError, Sink};

/// The messages of a PE that go and come in parts, and what is put together of them.
#[derive(Default)]
pub struct Parts {
    /// By message: the bytes and the flits of each part.
    of: BTreeMap<MessageId, (Vec<u64>, Vec<u64>)>,
    assemblies: Mutex<BTreeMap<MessageId, Arc<sync::Mutex<Assembly>>>>,
}

impl Parts {
    /// What the briefs for all trees say; `None` if the parts of a message are none.
    pub fn of(briefs: &[Brief]) -> Option<Parts> {
        let first = briefs.first()?;
        if briefs.iter().any(|it| it.flit_bytes != first.flit_bytes) {
            return None;
        }
        let flit_bytes = u64::from(first.flit_bytes);
        let mut bytes: BTreeMap<MessageId, Vec<u64>> = BTreeMap::new();
        for (lane, brief) in briefs.iter().enumerate() {
            for message in brief.sends.iter().chain(&brief.takes) {
                let parts = bytes.entry(message.id);
                parts.or_insert_with(|| vec![0; briefs.len()])[lane] = message.bytes;
            }
        }
        let in_parts = bytes.into_iter();
        let in_parts = in_parts.filter(|(_, parts)| parts.iter().filter(|it| **it > 0).count() > 1);
        let of = in_parts.map(|(id, parts)| {
            let flits = flits_of_parts(&parts, flit_bytes)?;
            Some((id, (parts, flits)))
        });
        Some(Parts {
            of: of.collect::<Option<_>>()?,
            assemblies: Mutex::default(),
        })
    }

    /// The whole message of which this is a part, and on which trees its flits go; `None` if the
    /// part is all of it.
    pub fn whole(&self, part: Message) -> Option<(Message, Turns)> {
        let (parts, flits) = self.of.get(&part.id)?;
        let bytes = parts.iter().sum();
        Some((Message { bytes, ..part }, Turns::new(flits)))
    }

    /// Where a part goes that comes on a tree; `None` if it is all of its message. `open` says where
    /// a message goes, and in which folder there is room for what is held.
    pub fn sink(
        &self,
        part: Message,
        lane: usize,
        open: impl FnOnce(Message) -> (Sink, PathBuf),
    ) -> Option<PartSink> {
        let (whole, turns) = self.whole(part)?;
        let mut assemblies = self.assemblies.lock().ok()?;
        let assembly = assemblies.entry(part.id).or_insert_with(|| {
            let (_, flits) = &self.of[&part.id];
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
            lane,
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
    /// On which trees the flits come that are yet to be stored.
    turns: std::iter::Peekable<Turns>,
    /// Flits that came before their turn: of each tree's part, those that were held, and those of
    /// them that went on.
    held: HeldMessages,
    held_flits: Vec<[u64; 2]>,
    folder: PathBuf,
    /// Parts that are not here as a whole.
    uncommitted: usize,
    /// Told when the message is visible.
    done: Option<watch::Sender<bool>>,
}

impl Assembly {
    fn holds_of(lane: usize) -> MessageId {
        MessageId(lane as u64)
    }

    async fn write(
        &mut self,
        lane: usize,
        payload: &[u8],
        waited_ns: &mut u64,
    ) -> Result<bool, PayloadError> {
        let Some(sink) = &mut self.sink else {
            return Ok(false);
        };
        let failed = |source: io::Error| PayloadError::io("hold flits in", &self.folder)(source);
        let [came, went] = self.held_flits[lane];
        if self.turns.peek() != Some(&lane) || came > went {
            let held = self.held.hold(Self::holds_of(lane), payload, &self.folder);
            held.await.map_err(failed)?;
            self.held_flits[lane][0] += 1;
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
            let flit = self.held.take(part, went).await.map_err(failed)?;
            is_right &= sink.write(&flit, waited_ns).await?;
            self.held_flits[next][1] += 1;
            self.turns.next();
        }
        Ok(is_right)
    }
}

/// Where a part of a message goes.
pub struct PartSink {
    assembly: Arc<sync::Mutex<Assembly>>,
    lane: usize,
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
        assembly.write(self.lane, payload, waited_ns).await
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
