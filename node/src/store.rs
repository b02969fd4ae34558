//! The content of a cluster's messages for one PE: the sources of those that it sends, and the
//! destinations of those that it receives.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use flitcast_proto::items::{Address, Message};
use flitcast_proto::ops::{Collective, Layout, PeSchedule};
use flitcast_proto::wire::control::{Assignment, Payload, Prefix, Version};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, PeId, Tree};
use tokio::task::spawn_blocking;

use crate::activity_monitor::ActivityMonitor;
use crate::blocking::joined;
use crate::config::NodeConfig;
use crate::inputs::{Inputs, Sent};
use crate::limits::{KEPT_MESSAGE_BYTES, OPENED_AHEAD};
use crate::parts::Parts;
use crate::payload::{
    self, Content, FileSink, FileSource, Measured, Others, Outgoing, OutputFolder, PayloadError,
    Sink, Source, Synthetic, Target, Unpacker, delivered_at, prefix_digest,
};

/// The content of a cluster's messages for this PE.
pub struct Store {
    /// The content of each message that this PE sends; `None` if messages are synthetic.
    contents: Option<BTreeMap<MessageId, Outgoing>>,
    /// The PE, its collective and its tree.
    pe: PeId,
    collective: Collective,
    tree: Arc<Tree>,
    /// The path where messages for this PE become visible.
    output: PathBuf,
    /// The folder that contains them all.
    folder: OutputFolder,
    /// Whether the folder belongs to this PE only, and needs no name of the PE.
    apart: bool,
    /// Whether existing entries are replaced.
    replace: bool,
    /// The number of this run's staging files.
    nonce: u64,
    /// The number of the job in receipts.
    job_id: u64,
    /// Whether the job has a record, with which a later run can continue it.
    is_recorded: bool,
    /// The prefixes that this PE does not send again, in bytes.
    skipped: BTreeMap<MessageId, u64>,
    /// The incoming messages that are continued behind a prefix.
    continued: Mutex<BTreeMap<MessageId, Unpacker>>,
    /// Records progress with files.
    pulse: Arc<ActivityMonitor>,
}

impl Store {
    /// Opens the bytes of a message that this PE sends.
    fn source(&self, message: Message, flit_bytes: u32) -> Source {
        match &self.contents {
            None => Source::Synthetic(Synthetic::message(message.id)),
            Some(contents) => {
                // A message with bytes was measured, so it has content.
                let outgoing = contents.get(&message.id).cloned();
                let outgoing = outgoing.unwrap_or_else(|| {
                    Outgoing::new(Content::Entry(PathBuf::new()), Measured::default())
                });
                let skipped = self.skipped.get(&message.id).copied().unwrap_or(0);
                Source::Files(Box::new(FileSource::open(outgoing, flit_bytes, skipped)))
            }
        }
    }

    /// Returns the path of a message for this PE.
    fn destination(&self, message: MessageId) -> PathBuf {
        let delivery = self.collective.delivery(&self.tree, message, self.pe);
        let name = self.collective.delivery_name(&self.tree, delivery);
        delivered_at(&self.output, name, self.apart)
    }

    /// Returns the folder for stored messages of other PEs: that of the output or, if the output is a
    /// message itself, the folder that contains it.
    pub fn holds_in(&self) -> PathBuf {
        let is_message = self.apart && self.collective.layout() == Layout::Whole;
        match (&self.contents, payload::above(&self.output)) {
            (None, _) => std::env::temp_dir(),
            (Some(_), Some(above)) if is_message => above.to_owned(),
            (Some(_), _) => self.output.clone(),
        }
    }

    /// Opens the destination of a message for this PE.
    pub fn sink(&self, message: Message) -> Sink {
        match &self.contents {
            None => Sink::Synthetic(Synthetic::message(message.id)),
            Some(_) => {
                let continued = self.continued.lock().ok();
                let continued = continued.and_then(|mut all| all.remove(&message.id));
                Sink::Files(match continued {
                    Some(unpacker) => FileSink::resume(unpacker),
                    None => {
                        let target = self.target(message.id, message.bytes);
                        FileSink::create(target, self.folder.clone(), self.pulse.clone())
                    }
                })
            }
        }
    }

    /// Returns the place of a message of this length for this PE.
    fn target(&self, message: MessageId, bytes: u64) -> Target {
        Target {
            destination: self.destination(message),
            replace: self.replace,
            run: self.nonce,
            job: self.job_id,
            is_kept: self.is_recorded && bytes >= KEPT_MESSAGE_BYTES,
        }
    }

    /// Reads prefixes of messages that this PE sends or that earlier runs have left here, and returns
    /// the digest of each; zeros for a prefix that cannot be read.
    pub async fn check_prefixes(&mut self, prefixes: &[Prefix]) -> Vec<Digest> {
        let mut digests = Vec::new();
        for Prefix { message, bytes } in prefixes.iter().copied() {
            let own = self.contents.as_ref().and_then(|all| all.get(&message));
            let own = own.cloned();
            let target = self.target(message, u64::MAX);
            let pulse = self.pulse.clone();
            let read = spawn_blocking(move || match own {
                Some(own) => {
                    let digest = prefix_digest(&own, bytes, &|| pulse.worked())?;
                    Ok((None, digest))
                }
                None => {
                    let (unpacker, digest) = Unpacker::resume(target, bytes, pulse)?;
                    Ok::<_, PayloadError>((Some(unpacker), digest))
                }
            });
            let digest = match joined(read.await) {
                Ok((unpacker, digest)) => {
                    let continued = self.continued.get_mut();
                    if let (Some(unpacker), Ok(continued)) = (unpacker, continued) {
                        continued.insert(message, unpacker);
                    }
                    digest
                }
                Err(error) => {
                    tracing::info!(of = %message.0, %error, "the prefix cannot be used");
                    Digest::default()
                }
            };
            digests.push(digest);
        }
        digests
    }

    /// Continues these messages behind their prefixes, and no others.
    pub fn continue_from(&mut self, prefixes: &[Prefix]) {
        let of = prefixes.iter().map(|prefix| (prefix.message, prefix.bytes));
        self.skipped = of.collect();
        if let Ok(continued) = self.continued.get_mut() {
            continued.retain(|message, _| self.skipped.contains_key(message));
        }
    }

    /// Examines the PE's part of the input. Also returns the lengths of the messages that this PE
    /// sends, by id; messages that are left out have length 0.
    pub async fn open(
        config: &NodeConfig,
        assignment: &Assignment,
        pulse: &Arc<ActivityMonitor>,
    ) -> Result<(Store, Sent), Vec<PayloadError>> {
        let (pe, collective, tree) = (config.pe, assignment.collective, &assignment.tree);
        let of_messages = collective.messages(tree);
        let sent: Vec<Address> = of_messages.filter(|it| it.source == pe).collect();
        let mut store = Store {
            contents: None,
            pe,
            collective,
            tree: tree.clone(),
            output: PathBuf::new(),
            folder: OutputFolder::default(),
            apart: false,
            replace: false,
            nonce: config.cluster,
            job_id: assignment.job.id,
            is_recorded: assignment.job.recorded,
            skipped: BTreeMap::new(),
            continued: Mutex::default(),
            pulse: pulse.clone(),
        };
        let (input, own, spread) = match assignment.payload.clone() {
            Payload::Files {
                input,
                spread,
                output,
                replace,
                apart,
            } => {
                (store.output, store.replace, store.apart) = (output, replace, apart);
                let own = match apart {
                    true => input.clone(),
                    false => payload::destination(&input, pe),
                };
                (input, own, spread)
            }
            Payload::Synthetic { lengths } => {
                Synthetic::warm_up();
                let bytes = collective.by_delivery(tree, &lengths);
                let owed = |it: &Address| {
                    let ends = it.ends(tree).map(|at| collective.delivery(tree, it.id, at));
                    let owed = ends.filter(|delivery| !assignment.leaves_out(*delivery));
                    owed.map(|delivery| bytes[delivery.index()]).max()
                };
                let bytes = sent.iter().map(|it| owed(it).unwrap_or(0)).collect();
                return Ok((
                    store,
                    Sent {
                        bytes,
                        ..Sent::default()
                    },
                ));
            }
        };
        let inputs = Inputs {
            owed: (sent.iter().map(|it| assignment.owes_anybody(*it))).collect(),
            known: (sent.iter().map(|it| version_of(assignment, it.id))).collect(),
            sent,
            pe,
            layout: collective.layout(),
            root: tree.root(),
            others: Others::of(tree),
            input,
            own,
            spread,
        };
        let told = pulse.clone();
        let read = spawn_blocking(move || inputs.read(&|| told.worked()));
        let (contents, sent) = joined(read.await)?;
        store.contents = Some(contents);
        Ok((store, sent))
    }
}

/// Returns the version of a message that is known from earlier runs.
fn version_of(assignment: &Assignment, id: MessageId) -> Option<Version> {
    let mut known = assignment.versions.iter();
    known.find(|version| version.message == id).copied()
}

/// The messages that this PE sends in a round, the next few opened before their turn: a disk's first
/// answer takes longer than a short message.
pub struct Outbox<'a> {
    store: &'a Store,
    /// The parts of messages; the whole message is read instead of a part.
    parts: Option<&'a Parts>,
    /// Each with the payload of its full flits.
    rest: VecDeque<(Message, u32)>,
    opened: VecDeque<(Message, Source)>,
}

impl Outbox<'_> {
    /// Creates the outbox of a schedule, in the order of sending.
    pub fn new<'a>(
        store: &'a Store,
        schedule: &PeSchedule,
        parts: Option<&'a Parts>,
    ) -> Outbox<'a> {
        let own = schedule.cut_sends();
        let mut outbox = Outbox {
            store,
            parts,
            rest: own
                .map(|(message, flit_bytes)| (*message, flit_bytes))
                .collect(),
            opened: VecDeque::new(),
        };
        outbox.open_ahead();
        outbox
    }

    fn open_ahead(&mut self) {
        while self.opened.len() < OPENED_AHEAD
            && let Some((message, flit_bytes)) = self.rest.pop_front()
        {
            let source = self.open(message, flit_bytes);
            self.opened.push_back((message, source));
        }
    }

    /// Waits until the first bytes of the opened messages are in memory.
    pub async fn opened(&mut self) {
        for (_, source) in &mut self.opened {
            source.opened().await;
        }
    }

    /// Returns the bytes of the next message, in flits of this size.
    pub fn take(&mut self, message: Message, flit_bytes: u32) -> Source {
        let place = self.opened.iter().position(|(ahead, _)| *ahead == message);
        let opened = place.and_then(|place| self.opened.remove(place));
        self.open_ahead();
        opened.map_or_else(|| self.open(message, flit_bytes), |(_, source)| source)
    }

    fn open(&self, message: Message, flit_bytes: u32) -> Source {
        let whole = self.parts.and_then(|parts| parts.whole(0, message));
        let read = whole.map_or(message, |(whole, ..)| whole);
        self.store.source(read, flit_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Stored messages are never at a path where a copy is to arrive.
    #[test]
    fn what_is_held_lies_beside_a_copy_and_among_entries() {
        let holds_in = |collective, output: &str, apart| {
            let store = Store {
                contents: Some(BTreeMap::new()),
                pe: PeId(1),
                collective,
                tree: Arc::new(Tree::from_parents(vec![None, Some(PeId(0))]).unwrap()),
                output: output.into(),
                folder: OutputFolder::default(),
                apart,
                replace: false,
                nonce: 0,
                job_id: 0,
                is_recorded: false,
                skipped: BTreeMap::new(),
                continued: Mutex::default(),
                pulse: Arc::default(),
            };
            store.holds_in()
        };
        let (copy, entries) = (Collective::Broadcast, Collective::Gossip);
        for (collective, output, apart, folder) in [
            (copy, "/out/copy", true, "/out"),
            (copy, "copy", true, "."),
            (copy, "/out", false, "/out"),
            (entries, "/out", true, "/out"),
            (entries, "/out", false, "/out"),
        ] {
            let held = holds_in(collective, output, apart);
            assert_eq!(held, Path::new(folder), "{output} {apart}");
        }
    }
}
