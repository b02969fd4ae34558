//! The content of a cluster's messages for one PE: the sources of those that it sends, and the
//! destinations of those that it receives.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use flitcast_proto::items::{Address, Message};
use flitcast_proto::ops::{Collective, Layout, PeSchedule};
use flitcast_proto::wire::control::{
    Assignment, FilePayload, MessageFiles, Payload, Prefix, Ready, SkippedFiles,
};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, Update};
use tokio::task::spawn_blocking;

use crate::activity_monitor::ActivityMonitor;
use crate::config::NodeConfig;
use crate::inputs::{Inputs, Messages};
use crate::limits::{KEPT_MESSAGE_BYTES, OPENED_AHEAD};
use crate::parts::Parts;
use crate::payload::{
    self, Content, FileSink, FileSource, Measured, Others, Outgoing, OutputFolder, PayloadError,
    Sink, Source, Synthetic, Target, Unpacker, delivered_at, prefix_digest,
};
use crate::permissions::FileAccess;
use crate::runtime::joined;

/// Returns the folder in which messages become visible: the output or, if that is a message itself,
/// the folder that contains it. `None` if messages are synthetic.
pub fn output_folder(collective: Collective, payload: &Payload) -> Option<&Path> {
    let Payload::Files(FilePayload { output, apart, .. }) = payload else {
        return None;
    };
    let is_message = *apart && collective.layout() == Layout::Whole;
    let above = payload::above(output).filter(|_| is_message);
    Some(above.unwrap_or(output))
}

/// The content of a cluster's messages for this PE.
pub struct Store<'a> {
    config: &'a NodeConfig,
    assignment: &'a Assignment,
    /// The content of each message that this PE sends, unless messages are synthetic.
    contents: Messages,
    /// The folder that contains all messages for this PE.
    folder: OutputFolder,
    /// The prefixes that this PE does not send again, in bytes.
    skipped: BTreeMap<MessageId, u64>,
    /// The incoming messages that are continued behind a prefix.
    continued: Mutex<BTreeMap<MessageId, Unpacker>>,
    /// Records progress with files.
    pulse: Arc<ActivityMonitor>,
}

impl<'a> Store<'a> {
    fn source(&self, message: Message, flit_bytes: u32) -> Source {
        if let Payload::Synthetic { .. } = self.assignment.payload {
            return Source::Synthetic(Synthetic::message(message.id));
        }
        // A message with bytes was measured, so it has content.
        let outgoing = self.contents.get(&message.id);
        let outgoing = outgoing
            .map(|(outgoing, _)| outgoing.clone())
            .unwrap_or_else(|| {
                Outgoing::new(Content::Entry(PathBuf::new()), false, Measured::default())
            });
        let skipped = self.skipped.get(&message.id).copied().unwrap_or(0);
        Source::Files(Box::new(FileSource::open(outgoing, flit_bytes, skipped)))
    }

    /// Returns the folder for stored messages of other PEs.
    pub fn holds_in(&self) -> PathBuf {
        let folder = output_folder(self.assignment.collective, &self.assignment.payload);
        folder.map_or_else(std::env::temp_dir, Path::to_owned)
    }

    /// Opens the destination of a message for this PE.
    pub fn sink(&self, message: Message) -> Sink {
        let Payload::Files(files) = &self.assignment.payload else {
            return Sink::Synthetic(Synthetic::message(message.id));
        };
        let continued = self.continued.lock().ok();
        let continued = continued.and_then(|mut all| all.remove(&message.id));
        Sink::Files(match continued {
            Some(unpacker) => FileSink::resume(unpacker, message.bytes),
            None => {
                let target = self.target(files, message.id, message.bytes);
                FileSink::create(
                    target,
                    message.bytes,
                    self.folder.clone(),
                    self.pulse.clone(),
                )
            }
        })
    }

    /// Returns the place of a message of this length for this PE.
    fn target(&self, files: &FilePayload, message: MessageId, bytes: u64) -> Target {
        let Assignment {
            collective,
            tree,
            job,
            ..
        } = self.assignment;
        let delivery = collective.delivery(tree, message, self.config.pe);
        let name = collective.delivery_name(tree, delivery);
        Target {
            destination: delivered_at(&files.output, name, files),
            replace: files.replace,
            run: self.config.cluster,
            job: job.id,
            is_kept: job.recorded && bytes >= KEPT_MESSAGE_BYTES,
            durability: files.durability,
            is_update: files.update != Update::Never,
            is_archive: files.archive,
            is_lent: matches!(self.config.allowed.files, Ok(FileAccess::Below(_))),
        }
    }

    /// Reads prefixes of messages that this PE sends or that earlier runs have left here, and returns
    /// the digest of each; zeros for a prefix that cannot be read.
    pub async fn check_prefixes(&mut self, prefixes: &[Prefix]) -> Vec<Digest> {
        let Payload::Files(files) = &self.assignment.payload else {
            return vec![Digest::default(); prefixes.len()];
        };
        let mut digests = Vec::new();
        for Prefix { message, bytes } in prefixes.iter().copied() {
            let own = self.contents.get(&message);
            let own = own.map(|(outgoing, _)| outgoing.clone());
            let target = self.target(files, message, u64::MAX);
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

    /// Leaves files out of messages that this PE sends, since all destinations have them. Returns what was
    /// left out of each message.
    pub async fn skip_files(
        &mut self,
        present: Vec<MessageFiles>,
    ) -> Result<Vec<SkippedFiles>, PayloadError> {
        let mut all = Vec::new();
        for MessageFiles { message, files } in present {
            let Some((outgoing, listing)) = self.contents.remove(&message) else {
                all.push(SkippedFiles::default());
                continue;
            };
            let pulse = self.pulse.clone();
            let skip = spawn_blocking(move || {
                let skipped = outgoing.without_files(&listing, files, &|| pulse.worked());
                skipped.map(|(outgoing, skipped)| ((outgoing, listing), skipped))
            });
            let (rest, skipped) = joined(skip.await)?;
            self.contents.insert(message, rest);
            all.push(skipped);
        }
        Ok(all)
    }

    /// Continues these messages behind their prefixes, and no others.
    pub fn continue_from(&mut self, prefixes: &[Prefix]) {
        let of = prefixes.iter().map(|prefix| (prefix.message, prefix.bytes));
        self.skipped = of.collect();
        if let Ok(continued) = self.continued.get_mut() {
            continued.retain(|message, _| self.skipped.contains_key(message));
        }
    }

    /// Generates what flits of up to `flit_bytes` need, so that no round has to.
    pub fn warm_up(&self, flit_bytes: u32) {
        if let Payload::Synthetic { .. } = self.assignment.payload {
            Synthetic::warm_up(flit_bytes as usize);
        }
    }

    /// Examines the PE's part of the input. Also returns the lengths, the content and the states of
    /// the messages that this PE sends, by id; messages that are left out have length 0.
    pub async fn open(
        config: &'a NodeConfig,
        assignment: &'a Assignment,
        pulse: &Arc<ActivityMonitor>,
    ) -> Result<(Store<'a>, Ready), Vec<PayloadError>> {
        let (pe, collective, tree) = (config.pe, assignment.collective, &assignment.tree);
        let sent = collective.messages(tree).filter(|it| it.source == pe);
        let store = Store {
            config,
            assignment,
            contents: BTreeMap::new(),
            folder: OutputFolder::default(),
            skipped: BTreeMap::new(),
            continued: Mutex::default(),
            pulse: pulse.clone(),
        };
        let files = match &assignment.payload {
            Payload::Files(files) => files.clone(),
            Payload::Synthetic { lengths } => {
                let bytes = collective.by_delivery(tree, lengths);
                let undelivered_bytes = |it: Address| {
                    let ends = it.ends(tree).map(|at| collective.delivery(tree, it.id, at));
                    let undelivered = ends.filter(|delivery| !assignment.leaves_out(*delivery));
                    undelivered.map(|delivery| bytes[delivery.index()]).max()
                };
                let message_bytes = sent.map(|it| undelivered_bytes(it).unwrap_or(0)).collect();
                let ready = Ready {
                    message_bytes,
                    ..Ready::default()
                };
                return Ok((store, ready));
            }
        };
        let sent = sent.map(|it| (it, assignment.has_receiver(it), assignment.version(it.id)));
        let inputs = Inputs {
            sent: sent.collect(),
            pe,
            layout: collective.layout(),
            others: Others::of(tree),
            files,
        };
        let monitor = pulse.clone();
        let read = spawn_blocking(move || inputs.read(&|| monitor.worked()));
        let (contents, ready) = joined(read.await)?;
        Ok((Store { contents, ..store }, ready))
    }
}

/// The messages that this PE sends in a round, the next few opened before their turn: a disk's first
/// answer takes longer than a short message.
pub struct Outbox<'a> {
    store: &'a Store<'a>,
    /// The parts of messages; the whole message is read instead of a part.
    parts: Option<&'a Parts>,
    /// Each with the payload of its full flits.
    rest: VecDeque<(Message, u32)>,
    opened: VecDeque<(Message, Source)>,
}

impl Outbox<'_> {
    /// Creates the outbox of a schedule, in the order of sending.
    pub fn new<'a>(
        store: &'a Store<'a>,
        schedule: &PeSchedule,
        parts: Option<&'a Parts>,
    ) -> Outbox<'a> {
        let own = schedule.cut_sends();
        let rest = own.map(|(message, flit_bytes)| (*message, flit_bytes));
        let mut outbox = Outbox {
            store,
            parts,
            rest: rest.collect(),
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
    use super::*;

    /// Stored messages are never at a path where a copy is to arrive.
    #[test]
    fn held_files_are_beside_a_copy_and_among_entries() {
        let (copy, entries) = (Collective::Broadcast, Collective::Gossip);
        for (collective, output, apart, folder) in [
            (copy, "/out/copy", true, "/out"),
            (copy, "copy", true, "."),
            (copy, "/out", false, "/out"),
            (entries, "/out", true, "/out"),
            (entries, "/out", false, "/out"),
        ] {
            let payload = Payload::Files(FilePayload {
                output: output.into(),
                apart,
                ..FilePayload::default()
            });
            let held = output_folder(collective, &payload);
            assert_eq!(held, Some(Path::new(folder)), "{output} {apart}");
        }
    }
}
