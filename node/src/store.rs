//! What the messages of a cluster are made of, as one PE sees it: where the bytes
//! of those it sends come from, and where those for it go.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::cost::MadeOf;
use flitcast_proto::items::{Address, Message};
use flitcast_proto::ops::{Brief, Layout, Operation};
use flitcast_proto::wire::control::{Assignment, Payload};
use flitcast_proto::{MessageId, PeId, Tree};
use tokio::task::spawn_blocking;

use crate::blocking::joined;
use crate::config::NodeConfig;
use crate::limits::OPENED_AHEAD;
use crate::parts::Parts;
use crate::payload::{
    self, Content, FileSink, FileSource, Others, OutputFolder, PayloadError, Sink, Source,
    Synthetic, delivered_at,
};
use crate::pulse::Pulse;

/// The messages that a PE sends: how long each is, and, of files, what it is made of.
#[derive(Debug, Default)]
pub struct Sent {
    /// Bytes of each.
    pub bytes: Vec<u64>,
    /// What each is made of; empty where messages are synthetic.
    pub made_of: Vec<MadeOf>,
}

/// What the messages of a cluster are made of, as this PE sees it.
pub struct Store {
    /// What each message that this PE sends is made of; `None` where messages are synthetic.
    contents: Option<BTreeMap<MessageId, Content>>,
    /// Who it is, and in which operation on which tree.
    pe: PeId,
    operation: Operation,
    tree: Arc<Tree>,
    /// Where messages for this PE become visible.
    output: PathBuf,
    /// The folder in which they all stand there.
    folder: OutputFolder,
    /// Whether that is its own, and needs no name of it.
    apart: bool,
    /// Whether what stands there already is replaced.
    replace: bool,
    /// Names this run's staging.
    nonce: u64,
    /// Names what this run is a part of, in receipts.
    undertaking: u64,
    /// Told of what gets done with the files.
    pulse: Arc<Pulse>,
}

impl Store {
    /// The bytes of a message that this PE sends.
    fn source(&self, message: Message, flit_bytes: u32) -> Source {
        match &self.contents {
            None => Source::Synthetic(Synthetic::message(message.id)),
            Some(contents) => {
                // A message with bytes was measured, so it has content.
                let content = contents.get(&message.id).cloned();
                let content = content.unwrap_or_else(|| Content::Entry(PathBuf::new()));
                Source::Files(Box::new(FileSource::open(
                    content,
                    message.bytes,
                    flit_bytes,
                )))
            }
        }
    }

    /// The entry that a message for this PE becomes.
    fn destination(&self, message: MessageId) -> PathBuf {
        let delivery = self.operation.delivery(&self.tree, message, self.pe);
        let name = self.operation.delivery_name(&self.tree, delivery);
        delivered_at(&self.output, name, self.apart)
    }

    /// The folder in which there is room for what this PE holds for others: that of its output, or,
    /// where its output is the one message itself, the one that this stands in.
    pub fn holds_in(&self) -> PathBuf {
        let is_message = self.apart && self.operation.layout() == Layout::Whole;
        match (&self.contents, self.output.parent()) {
            (None, _) => std::env::temp_dir(),
            (Some(_), Some(above)) if is_message => match above.as_os_str().is_empty() {
                true => PathBuf::from("."),
                false => above.to_owned(),
            },
            (Some(_), _) => self.output.clone(),
        }
    }

    /// Where a message for this PE goes.
    pub fn sink(&self, message: Message) -> Sink {
        match &self.contents {
            None => Sink::Synthetic(Synthetic::message(message.id)),
            Some(_) => Sink::Files(FileSink::create(
                self.destination(message.id),
                self.folder.clone(),
                self.replace,
                self.nonce,
                self.undertaking,
                self.pulse.clone(),
            )),
        }
    }

    /// Looks at the PE's part of the input; with it, how long those messages are that this PE
    /// sends, by id. Those that are left out are null.
    pub async fn open(
        config: &NodeConfig,
        assignment: &Assignment,
        pulse: &Arc<Pulse>,
    ) -> Result<(Store, Sent), Vec<PayloadError>> {
        let (pe, operation, tree) = (config.pe, assignment.operation, &assignment.tree);
        let of_messages = operation.messages(tree);
        let sent: Vec<Address> = of_messages.filter(|it| it.source == pe).collect();
        let mut store = Store {
            contents: None,
            pe,
            operation,
            tree: tree.clone(),
            output: PathBuf::new(),
            folder: OutputFolder::default(),
            apart: false,
            replace: false,
            nonce: config.cluster,
            undertaking: assignment.undertaking,
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
                let bytes = operation.by_delivery(tree, &lengths);
                let owed = |it: &Address| {
                    let ends = it.ends(tree).map(|at| operation.delivery(tree, it.id, at));
                    let owed = ends.filter(|delivery| !assignment.leaves_out(*delivery));
                    owed.map(|delivery| bytes[delivery.index()]).max()
                };
                let bytes = sent.iter().map(|it| owed(it).unwrap_or(0)).collect();
                let made_of = Vec::new();
                return Ok((store, Sent { bytes, made_of }));
            }
        };
        // Not even measured: who delivered them may have taken them away since.
        let owed = sent.iter().map(|message| assignment.owes_anybody(*message));
        let owed: Vec<bool> = owed.collect();
        let (told, layout, root) = (pulse.clone(), operation.layout(), tree.root());
        let others = Others::of(tree);
        let read = spawn_blocking(move || {
            let mut contents = match layout {
                _ if owed.is_empty() => Vec::new(),
                Layout::ByDestination => {
                    let mut contents = payload::scatter_input(&input, spread, others)?;
                    contents.remove(root.index());
                    contents
                }
                Layout::BySource | Layout::Shards => {
                    vec![payload::own_input(own).map_err(one)?]
                }
                Layout::Pieces => {
                    let mut contents = payload::pieces_of(&own, pe, others.pes)?;
                    contents.remove(pe.index());
                    contents
                }
                Layout::Whole => vec![Some(payload::whole_input(input).map_err(one)?)],
            };
            for (content, owed) in contents.iter_mut().zip(owed) {
                content.take_if(|_| !owed);
            }
            let measured = payload::measure_all(&contents, || told.worked())?;
            Ok::<_, Vec<PayloadError>>((contents, measured))
        });
        let (contents, measured) = joined(read.await)?;
        let ids = sent.iter().map(|message| message.id);
        let contents = ids.zip(contents);
        let contents = contents.filter_map(|(id, content)| Some((id, content?)));
        store.contents = Some(contents.collect());
        let sent = Sent {
            bytes: measured.iter().map(|message| message.bytes).collect(),
            made_of: measured.iter().map(|message| message.made_of).collect(),
        };
        Ok((store, sent))
    }
}

fn one(fault: PayloadError) -> Vec<PayloadError> {
    vec![fault]
}

/// The messages that this PE sends in a round, the next few opened before their turn
/// comes: a disk's first answer takes longer than a short message.
pub struct Outbox<'a> {
    store: &'a Store,
    /// Which messages are parts of others, that are read instead.
    parts: Option<&'a Parts>,
    /// Each with the payload of its full flits.
    rest: VecDeque<(Message, u32)>,
    opened: VecDeque<(Message, Source)>,
}

impl Outbox<'_> {
    /// What a brief says that it sends, in the order in which that will go.
    pub fn new<'a>(store: &'a Store, brief: &Brief, parts: Option<&'a Parts>) -> Outbox<'a> {
        let own = brief.sends.iter();
        let mut outbox = Outbox {
            store,
            parts,
            rest: own
                .map(|message| (*message, brief.flit_bytes_of(message.id)))
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

    /// Waits until the first bytes of those that are opened are here.
    pub async fn opened(&mut self) {
        for (_, source) in &mut self.opened {
            source.opened().await;
        }
    }

    /// The bytes of the message whose turn it is, in flits of so many.
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

    use flitcast_proto::ops::{Broadcast, Gossip};

    use super::*;

    /// What is held never stands where a copy is to arrive.
    #[test]
    fn what_is_held_lies_beside_a_copy_and_among_entries() {
        let holds_in = |operation, output: &str, apart| {
            let store = Store {
                contents: Some(BTreeMap::new()),
                pe: PeId(1),
                operation,
                tree: Arc::new(Tree::from_parents(vec![None, Some(PeId(0))]).unwrap()),
                output: output.into(),
                folder: OutputFolder::default(),
                apart,
                replace: false,
                nonce: 0,
                undertaking: 0,
                pulse: Arc::default(),
            };
            store.holds_in()
        };
        let (copy, entries) = (
            Operation::Broadcast(Broadcast::Hypercube),
            Operation::Gossip(Gossip::Circulate),
        );
        for (operation, output, apart, folder) in [
            (copy, "/out/copy", true, "/out"),
            (copy, "copy", true, "."),
            (copy, "/out", false, "/out"),
            (entries, "/out", true, "/out"),
            (entries, "/out", false, "/out"),
        ] {
            let held = holds_in(operation, output, apart);
            assert_eq!(held, Path::new(folder), "{output} {apart}");
        }
    }
}
