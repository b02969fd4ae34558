//! The schedules that PEs receive before a round.

use super::collective::Collective;
use super::pe_role::PeRole;
use crate::items::{Message, ScheduledHop};
use crate::schedule::pace::Pace;
use crate::{MessageId, PeId, Tree};

/// Maximum number of bytes of consecutive short frames to one neighbour that one system call
/// writes, and that one reads: copying them costs a fraction of a call.
pub const COALESCE_LIMIT_BYTES: usize = 16 << 10;

/// Number of times that a PE polls for the next short message before it sleeps; in between, it
/// yields its core. On one machine the message arrives sooner than a sleeping thread wakes up. On
/// an idle core this takes about 30 us, plus the time to poll the connections.
pub const SPIN_ATTEMPTS: usize = 40;

/// Maximum length of the messages for which a PE polls before it sleeps. Longer messages arrive
/// later, and copying them needs the core.
const SPIN_MAX_MESSAGE_BYTES: u64 = 128 << 10;

/// The schedule of one PE for one round: its role, flit size, pacing, and the messages that it sends
/// and receives.
#[derive(Clone, Debug, PartialEq)]
pub struct PeSchedule {
    /// Collective of the round.
    pub collective: Collective,
    /// Role of the PE.
    pub role: PeRole,
    /// Maximum number of parts of a message; 1 if messages are undivided.
    pub parts: u32,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Unit of time, and how orders are obeyed.
    pub pace: Pace,
    /// The nonnull messages that start here, in sending order: all of them at the root of a
    /// scatter, the PE's own message in a gather.
    pub sends: Vec<Message>,
    /// Payload bytes of a full flit of each message in `sends`, at most `flit_bytes`; empty if all
    /// messages use `flit_bytes`.
    pub packet_bytes: Vec<u32>,
    /// The nonnull messages that end here, by id.
    pub receives: Vec<Message>,
    /// Number of nonnull messages that end in this PE's subtree, the PE included; or that start
    /// there, if messages go up.
    pub subtree_messages: u64,
    /// `subtree_messages` of each child, in index order.
    pub child_messages: Vec<u64>,
    /// The ranks of the children, in index order, by which the PE takes their streams in a gather by
    /// certification; empty if it takes each as early as it can come.
    pub child_ranks: Vec<u32>,
    /// Crossings of the static schedule that this PE sends or receives, by first step.
    pub hops: Vec<ScheduledHop>,
    /// Whether the PE uses a port for each neighbour at the same time; the crossings of each
    /// neighbour stay in order. In a scatter or a gather only P0 can, because one stream passes any
    /// other PE.
    pub all_ports: bool,
    /// Whether each crossing of the static schedule waits for its receiver's call.
    pub in_turns: bool,
    /// Whether the PE may receive a short message ahead of the static schedule, because only
    /// processes take time.
    pub in_any_order: bool,
}

impl PeSchedule {
    /// Returns whether the PE sends and receives at the same time.
    pub fn is_duplex(&self) -> bool {
        self.role == PeRole::StaticSchedule || self.all_ports
    }

    /// Returns the PEs with which this PE exchanges frames: the parent, the children, and by index those
    /// that the static schedule contains beside them.
    pub fn neighbours(&self, tree: &Tree, pe: PeId) -> Vec<PeId> {
        let in_tree = tree.parent(pe).into_iter();
        let mut all: Vec<PeId> = in_tree.chain(tree.children(pe).iter().copied()).collect();
        let ends = self.hops.iter().flat_map(|hop| [hop.from, hop.to]);
        let mut peers: Vec<PeId> = ends
            .filter(|end| *end != pe && !all.contains(end))
            .collect();
        peers.sort_unstable();
        peers.dedup();
        all.extend(peers);
        all
    }

    /// Returns whether the PE polls up to [`SPIN_ATTEMPTS`] times before it sleeps.
    pub fn spins_before_sleep(&self) -> bool {
        let mut all = self.sends.iter().chain(&self.receives);
        self.in_any_order && all.all(|message| message.bytes <= SPIN_MAX_MESSAGE_BYTES)
    }

    /// Returns the messages that start here, in sending order, with the payload bytes of their full
    /// flits.
    pub fn cut_sends(&self) -> impl Iterator<Item = (&Message, u32)> + Clone {
        let cut = self.packet_bytes.iter().copied();
        let cut = cut.chain(std::iter::repeat(self.flit_bytes));
        self.sends.iter().zip(cut)
    }

    /// Returns the payload bytes of a full flit of a message that starts here, by linear search.
    pub fn flit_bytes_of(&self, message: MessageId) -> u32 {
        let own = self.cut_sends().find(|(sent, _)| sent.id == message);
        own.map_or(self.flit_bytes, |(_, bytes)| bytes)
    }
}
