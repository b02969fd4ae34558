//! The messages that a PE sends: found, measured, and compared with what earlier runs have sent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use flitcast_proto::items::{Address, Destination};
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{FilePayload, Ready, Version};
use flitcast_proto::{Compression, MessageId, PeId, Update};

use crate::payload::{self, Content, Listing, Others, Outgoing, Pattern, PayloadError};
use crate::runtime::on_processors;

/// A message that a PE sends, whether it is still to be delivered, and its version, if known from
/// earlier runs.
pub type Sent = (Address, bool, Option<Version>);

/// The messages that a PE sends, each with its listing, which is empty without an update.
pub type Messages = BTreeMap<MessageId, (Outgoing, Listing)>;

/// The input of one PE, before it is examined.
pub struct Inputs {
    pub sent: Vec<Sent>,
    pub pe: PeId,
    pub layout: Layout,
    pub others: Others<'static>,
    pub files: FilePayload,
}

impl Inputs {
    fn others(&self) -> Others<'_> {
        self.others.named(&self.files.names)
    }

    /// Returns the PE's own part of the requested path.
    fn own(&self) -> Result<PathBuf, PayloadError> {
        match self.files.apart {
            true => Ok(self.files.input.clone()),
            false => self.others().entry(&self.files.input, self.pe),
        }
    }

    /// Returns the content of each message, `None` where the input has nothing for it.
    fn contents(&self) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
        let (input, own) = (self.files.input.clone(), || self.own().map_err(one));
        Ok(match self.layout {
            _ if self.sent.is_empty() => Vec::new(),
            Layout::ByDestination => {
                let mut contents = payload::scatter_input(&self.files, self.others())?;
                contents.remove(self.others.root.unwrap_or(PeId::ROOT).index());
                contents
            }
            Layout::BySource | Layout::Shards => vec![match Pattern::of(&input) {
                Some(pattern) => {
                    let own = pattern.of_pe(self.others(), self.pe, self.files.chooses_entries);
                    let own = own.and_then(|own| own.map_or(Ok(None), |own| own.content()));
                    own.map_err(one)?
                }
                None => payload::own_input(own()?).map_err(one)?,
            }],
            Layout::Pieces => {
                let all = Others {
                    root: None,
                    ..self.others()
                };
                let mut contents = payload::pieces_of(&own()?, self.pe, all)?;
                contents.remove(self.pe.index());
                contents
            }
            Layout::Whole if matches!(self.sent[..], [(_, false, _)]) => {
                vec![payload::own_input(input).map_err(one)?]
            }
            Layout::Whole => vec![Some(payload::whole_input(input).map_err(one)?)],
        })
    }

    /// Measures the messages that are to be delivered, and calls `on_progress` for each entry. All
    /// existing messages must have the known version. Returns the messages, in an update with their
    /// listings, and the lengths, the content and the states of all.
    pub fn read(
        self,
        on_progress: &(dyn Fn() + Sync),
    ) -> Result<(Messages, Ready), Vec<PayloadError>> {
        let contents = payload::select(&self.files, self.contents()?)?;
        let (mut all, mut faults) = (BTreeMap::new(), Vec::new());
        let mut ready = Ready::default();
        let messages: Vec<_> = self.sent.iter().zip(contents).collect();
        let measured = on_processors(messages, |(sent, content)| {
            self.measure(sent, content, on_progress)
        });
        for ((message, is_undelivered, _), measured) in self.sent.iter().zip(measured) {
            let measured = match measured {
                Ok(measured) => measured.filter(|_| *is_undelivered),
                // The file of a delivered message may have been removed since.
                Err(fault) if !is_undelivered && fault.other_version().is_none() => None,
                Err(fault) => {
                    faults.push(fault);
                    None
                }
            };
            let of = measured
                .as_ref()
                .map(|(outgoing, _)| outgoing.measured.clone());
            let of = of.unwrap_or_default();
            if self.files.update != Update::Never {
                let listing = measured.as_ref().map(|(_, listing)| listing.digest);
                ready.update.sent.push(listing.unwrap_or_default());
            }
            ready.message_bytes.push(of.bytes);
            ready.made_of.push(of.made_of);
            *ready.unkept += of.unkept;
            ready.states.push(of.state);
            all.extend(measured.map(|outgoing| (message.id, outgoing)));
        }
        match faults.is_empty() {
            true => Ok((all, ready)),
            false => Err(faults),
        }
    }

    /// Measures one message, and compares it with the known version.
    fn measure(
        &self,
        (message, is_undelivered, known): &Sent,
        content: Option<Content>,
        on_progress: &(dyn Fn() + Sync),
    ) -> Result<Option<(Outgoing, Listing)>, PayloadError> {
        let Some(content) = content.filter(|_| *is_undelivered || known.is_some()) else {
            return match known {
                Some(known) if *is_undelivered => {
                    Err(payload::removed(self.path_of(message), known))
                }
                _ => Ok(None),
            };
        };
        let path = content.path().to_owned();
        let listed = content.clone();
        let mut outgoing = Outgoing::measure(content, self.files.archive, on_progress)?;
        let files = outgoing.measured.left_out;
        if *is_undelivered && files > 0 {
            let path = path.display();
            tracing::warn!(%path, files, "not sent: the names .flitcast-* of these forms are Flitcast's own; rename a file of yours");
        }
        if let Some(known) = known {
            // The digest of an update is not one of the content.
            let digest = known.digest.filter(|_| self.files.update == Update::Never);
            payload::check_version(&outgoing, &Version { digest, ..*known }, on_progress)?;
        }
        if self.files.compression != Compression::Never {
            outgoing.sample_compression(self.files.compression);
        }
        // Several neighbours may receive it, each at another time.
        if self.sent.len() == 1 {
            outgoing.hold_open()?;
        }
        let listing = match self.files.update {
            Update::Never => Listing::default(),
            update => Listing::of(&listed, update, self.files.archive, on_progress)?,
        };
        Ok(Some((outgoing, listing)))
    }

    fn path_of(&self, message: &Address) -> PathBuf {
        let named = |folder: PathBuf| match message.destination {
            Destination::One(pe) => payload::destination(&folder, pe),
            Destination::Others => folder,
        };
        let input = self.files.input.clone();
        let own = || self.own().unwrap_or_else(|_| input.clone());
        match self.layout {
            _ if self.files.spread => input,
            Layout::ByDestination => named(input),
            Layout::Pieces => named(own()),
            Layout::BySource | Layout::Shards => own(),
            Layout::Whole => input,
        }
    }
}

fn one(fault: PayloadError) -> Vec<PayloadError> {
    vec![fault]
}
