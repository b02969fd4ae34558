//! Certificates, orders and streams as the PEs of a gather by certification receive them. A round
//! records them, in virtual time as well.

use crate::PeId;
use crate::items::Control;
use crate::schedule::certification::Certificate;

/// An order to transmit, as its PE received it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitOrder {
    /// s: TRANSMIT AFTER s TICKS.
    pub after: u64,
    /// Time of its arrival, on the clock of the round at the PE, in nanoseconds.
    pub at_ns: u64,
}

/// The certificate and the stream of a child, as the parent received them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildStream {
    pub child: PeId,
    pub certificate: Certificate,
    /// Time of its arrival, on the clock of the round at the parent, in nanoseconds.
    pub certified_ns: u64,
    /// Time at which the stream's first flit was whole; 0 before it.
    pub first_flit_ns: u64,
    /// Time at which the last flit so far was whole; 0 before the first.
    pub last_flit_ns: u64,
    /// Number of bytes of the stream so far.
    pub bytes: u64,
}

/// The order that a PE received in a round, and the certificates and streams of its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// The order; `None` at the root, before it, and for a subtree without flits that gets none.
    pub order: Option<TransmitOrder>,
    /// The children that have certified, in index order.
    pub children: Vec<ChildStream>,
}

impl Streams {
    /// Records a control item from a neighbour.
    pub(crate) fn handle_control(&mut self, at_ns: u64, from: PeId, item: Control) {
        match item {
            Control::Order { after } => self.order = Some(TransmitOrder { after, at_ns }),
            Control::Certificate(certificate) => {
                let place = self.children.binary_search_by_key(&from, |it| it.child);
                let stream = ChildStream {
                    child: from,
                    certificate,
                    certified_ns: at_ns,
                    first_flit_ns: 0,
                    last_flit_ns: 0,
                    bytes: 0,
                };
                if let Err(place) = place {
                    self.children.insert(place, stream);
                }
            }
            Control::Token | Control::Wakeup { .. } | Control::Receipt => {}
        }
    }

    /// Records a flit of a stream; from other neighbours than children that have certified there is
    /// none.
    pub(crate) fn handle_flit(&mut self, at_ns: u64, from: PeId, bytes: u64) {
        if let Ok(place) = self.children.binary_search_by_key(&from, |it| it.child) {
            let stream = &mut self.children[place];
            if stream.bytes == 0 {
                stream.first_flit_ns = at_ns;
            }
            stream.last_flit_ns = at_ns;
            stream.bytes += bytes;
        }
    }
}
