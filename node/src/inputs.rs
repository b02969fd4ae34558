//! The messages that a PE sends: found, measured, and compared with what earlier runs have sent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flitcast_proto::cost::MadeOf;
use flitcast_proto::items::{Address, Destination};
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::Version;
use flitcast_proto::{MessageId, PeId};

use crate::payload::{self, Content, Others, Outgoing, PayloadError};

/// The messages that a PE sends: their lengths and, for files, their content.
#[derive(Debug, Default)]
pub struct Sent {
    /// Bytes of each.
    pub bytes: Vec<u64>,
    /// The content of each; empty if messages are synthetic.
    pub made_of: Vec<MadeOf>,
    /// The state of each one's files, as in a [`Version`]; empty if messages are synthetic.
    pub states: Vec<u64>,
}

/// The input of one PE, before it is examined.
pub struct Inputs {
    /// The messages that the PE sends; whether each is still to be delivered; and its version, if
    /// known from earlier runs.
    pub sent: Vec<Address>,
    pub owed: Vec<bool>,
    pub known: Vec<Option<Version>>,
    pub pe: PeId,
    pub layout: Layout,
    pub root: PeId,
    pub others: Others,
    /// The requested path, and the PE's own part of it.
    pub input: PathBuf,
    pub own: PathBuf,
    /// Whether all files below the path are distributed.
    pub spread: bool,
}

impl Inputs {
    /// Returns the content of each message, `None` where the input has nothing for it.
    fn contents(&self) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
        let (input, own) = (self.input.clone(), self.own.clone());
        Ok(match self.layout {
            _ if self.sent.is_empty() => Vec::new(),
            Layout::ByDestination => {
                let mut contents = payload::scatter_input(&input, self.spread, self.others)?;
                contents.remove(self.root.index());
                contents
            }
            Layout::BySource | Layout::Shards => vec![payload::own_input(own).map_err(one)?],
            Layout::Pieces => {
                let mut contents = payload::pieces_of(&own, self.pe, self.others.pes)?;
                contents.remove(self.pe.index());
                contents
            }
            Layout::Whole if self.owed == [false] => {
                vec![payload::own_input(input).map_err(one)?]
            }
            Layout::Whole => vec![Some(payload::whole_input(input).map_err(one)?)],
        })
    }

    /// Measures the messages that are to be delivered, and calls `tell` for each entry. All
    /// existing messages must have the known version.
    pub fn read(
        self,
        tell: &dyn Fn(),
    ) -> Result<(BTreeMap<MessageId, Outgoing>, Sent), Vec<PayloadError>> {
        let contents = self.contents()?;
        let (mut all, mut faults) = (BTreeMap::new(), Vec::new());
        let mut sent = Sent::default();
        for (i, content) in contents.into_iter().enumerate() {
            let owed = self.owed[i];
            let measured = match self.measure(i, content, tell) {
                Ok(outgoing) => outgoing.filter(|_| owed),
                // The file of a delivered message may have been removed since.
                Err(fault) if !owed && fault.other_version().is_none() => None,
                Err(fault) => {
                    faults.push(fault);
                    None
                }
            };
            let of = measured.as_ref().map(|outgoing| outgoing.measured());
            sent.bytes.push(of.map_or(0, |of| of.bytes));
            sent.made_of
                .push(of.map_or(MadeOf::default(), |of| of.made_of));
            sent.states.push(of.map_or(0, |of| of.state));
            all.extend(measured.map(|outgoing| (self.sent[i].id, outgoing)));
        }
        match faults.is_empty() {
            true => Ok((all, sent)),
            false => Err(faults),
        }
    }

    /// Measures one message, and compares it with the known version.
    fn measure(
        &self,
        i: usize,
        content: Option<Content>,
        tell: &dyn Fn(),
    ) -> Result<Option<Outgoing>, PayloadError> {
        let (owed, known) = (self.owed[i], &self.known[i]);
        let Some(content) = content.filter(|_| owed || known.is_some()) else {
            return match known {
                Some(known) if owed => Err(payload::gone(self.path_of(i), known)),
                _ => Ok(None),
            };
        };
        let path = content.path().to_owned();
        let mut outgoing = Outgoing::measure(content, tell)?;
        let files = outgoing.measured().left_out;
        if owed && files > 0 {
            let path = path.display();
            tracing::warn!(%path, files, "not sent: the names .flitcast-* of these forms are Flitcast's own; rename a file of yours");
        }
        if let Some(known) = known {
            payload::check_version(&outgoing, known, tell)?;
        }
        // Several neighbours may receive it, each at another time.
        if self.sent.len() == 1 {
            outgoing.hold_open()?;
        }
        Ok(Some(outgoing))
    }

    fn path_of(&self, i: usize) -> PathBuf {
        let named = |folder: &PathBuf| match self.sent[i].destination {
            Destination::One(pe) => payload::destination(folder, pe),
            Destination::Others => folder.clone(),
        };
        match self.layout {
            _ if self.spread => self.input.clone(),
            Layout::ByDestination => named(&self.input),
            Layout::Pieces => named(&self.own),
            Layout::BySource | Layout::Shards => self.own.clone(),
            Layout::Whole => self.input.clone(),
        }
    }
}

fn one(fault: PayloadError) -> Vec<PayloadError> {
    vec![fault]
}
