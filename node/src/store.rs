//! What the messages of a cluster are made of, as one PE sees it: where the bytes
//! of those it sends come from, and where those for it go.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use flitcast_proto::PeId;
use flitcast_proto::cost::MadeOf;
use flitcast_proto::items::Message;
use flitcast_proto::wire::control::{Assignment, Payload};
use tokio::task::spawn_blocking;

use crate::blocking::joined;
use crate::config::NodeConfig;
use crate::limits::OPENED_AHEAD;
use crate::payload::{
    self, Content, FileSink, FileSource, PayloadError, Sink, Source, Synthetic, destination,
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
    /// What each M_i that this PE sends is made of, by PE index; `None` where
    /// messages are synthetic.
    contents: Option<Vec<Option<Content>>>,
    /// Where messages for this PE become visible.
    output: PathBuf,
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
        let pe = message.pe();
        match &self.contents {
            None => Source::Synthetic(Synthetic::message_of(pe)),
            Some(contents) => {
                // A message with bytes was measured, so it has content.
                let content = contents.get(pe.index()).cloned().flatten();
                let content = content.unwrap_or_else(|| Content::Entry(PathBuf::new()));
                Source::Files(Box::new(FileSource::open(
                    content,
                    message.bytes,
                    flit_bytes,
                )))
            }
        }
    }

    /// Where a message for this PE goes.
    pub fn sink(&self, message: Message) -> Sink {
        let pe = message.pe();
        match &self.contents {
            None => Sink::Synthetic(Synthetic::message_of(pe)),
            Some(_) => Sink::Files(FileSink::create(
                destination(&self.output, pe),
                self.replace,
                self.nonce,
                self.undertaking,
                self.pulse.clone(),
            )),
        }
    }

    /// Looks at the PE's part of the input; with it, how long those messages are
    /// that this PE sends: M_1..M_n for P0 in a scatter, its own for another PE in a
    /// gather, none otherwise. Those that are left out are null.
    pub async fn open(
        config: &NodeConfig,
        assignment: &Assignment,
        pulse: &Arc<Pulse>,
    ) -> Result<(Store, Sent), Vec<PayloadError>> {
        let pulse = pulse.clone();
        let (pe, nonce, undertaking) = (config.pe, config.cluster, assignment.undertaking);
        let pes = assignment.tree.len();
        let sent = assignment.operation.sent_by(&assignment.tree, pe);
        let (input, spread, output, replace) = match assignment.payload.clone() {
            Payload::Files {
                input,
                spread,
                output,
                replace,
            } => (input, spread, output, replace),
            Payload::Synthetic { lengths } => {
                Synthetic::warm_up();
                let by_index = std::iter::once(0).chain(lengths);
                let bytes = |(pe, bytes)| match assignment.leaves_out(pe) {
                    true => 0,
                    false => bytes,
                };
                let by_index = assignment.tree.ids().zip(by_index).map(bytes);
                let by_index: Vec<u64> = by_index.collect();
                let (contents, output) = (None, PathBuf::new());
                return Ok((
                    Store {
                        contents,
                        output,
                        replace: false,
                        nonce,
                        undertaking,
                        pulse,
                    },
                    Sent {
                        bytes: sent.iter().map(|id| by_index[id.index()]).collect(),
                        made_of: Vec::new(),
                    },
                ));
            }
        };
        let ids = assignment.tree.ids();
        let left_out: Vec<bool> = ids.map(|pe| assignment.leaves_out(pe)).collect();
        let (told, reads) = (pulse.clone(), !sent.is_empty());
        let read = spawn_blocking(move || {
            let mut contents = match (pe, reads) {
                (PeId::ROOT, true) => payload::scatter_input(&input, spread, pes)?,
                _ => vec![None; pes],
            };
            if pe != PeId::ROOT && reads {
                let own = payload::gather_input(&input, pe);
                contents[pe.index()] = own.map_err(|fault| vec![fault])?;
            }
            // Not even measured: who delivered them may have taken them away since.
            for (content, left_out) in contents.iter_mut().zip(left_out) {
                content.take_if(|_| left_out);
            }
            let measured = payload::measure_all(&contents, || told.worked())?;
            Ok::<_, Vec<PayloadError>>((contents, measured))
        });
        let (contents, measured) = joined(read.await)?;
        let measured = || sent.iter().map(|id| &measured[id.index()]);
        let contents = Some(contents);
        Ok((
            Store {
                contents,
                output,
                replace,
                nonce,
                undertaking,
                pulse,
            },
            Sent {
                bytes: measured().map(|message| message.bytes).collect(),
                made_of: measured().map(|message| message.made_of).collect(),
            },
        ))
    }
}

/// The messages that this PE sends in a round, the next few opened before their turn
/// comes: a disk's first answer takes longer than a short message.
pub struct Outbox<'a> {
    store: &'a Store,
    flit_bytes: u32,
    rest: VecDeque<Message>,
    opened: VecDeque<(Message, Source)>,
}

impl Outbox<'_> {
    /// `sends` in the order in which they will go.
    pub fn new(store: &Store, sends: Vec<Message>, flit_bytes: u32) -> Outbox<'_> {
        let mut outbox = Outbox {
            store,
            flit_bytes,
            rest: sends.into(),
            opened: VecDeque::new(),
        };
        outbox.open_ahead();
        outbox
    }

    fn open_ahead(&mut self) {
        while self.opened.len() < OPENED_AHEAD
            && let Some(message) = self.rest.pop_front()
        {
            let source = self.store.source(message, self.flit_bytes);
            self.opened.push_back((message, source));
        }
    }

    /// Waits until the first bytes of those that are opened are here.
    pub async fn opened(&mut self) {
        for (_, source) in &mut self.opened {
            source.opened().await;
        }
    }

    /// The bytes of the message whose turn it is.
    pub fn take(&mut self, message: Message) -> Source {
        let opened = self
            .opened
            .pop_front()
            .filter(|(ahead, _)| *ahead == message);
        self.open_ahead();
        opened.map_or_else(
            || self.store.source(message, self.flit_bytes),
            |(_, source)| source,
        )
    }
}
