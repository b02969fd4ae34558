//! The cost of moving bytes over real links: the parameters of the one model that prediction,
//! schedules and shaped links share.
//!
//! A frame of b bytes keeps its sender's port busy for b times the link's `ns_per_byte`, the first one
//! of a packet for `setup_ns` more, and arrives `latency_ns` later. The processes at both ends spend the costs of
//! `Host` on it, on cores that they may share.

use crate::Durability;

/// One direction of an edge: the wire, without the software of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// Time from a byte's departure to its arrival.
    pub latency_ns: f64,
    /// Time for which a packet occupies the ports at both ends in addition to its bytes: the wire's
    /// part of the set-up cost beta of paper 003. The part of the processes is in `Host`.
    pub setup_ns: f64,
    /// Inverse of the rate.
    pub ns_per_byte: f64,
    /// Bytes that an idle link transfers at once before its rate applies (the depth of a token
    /// bucket).
    pub burst_bytes: f64,
}

impl Link {
    /// Returns the time for which frames of `bytes` bytes, with which `packets` packets begin, occupy
    /// the ports at both ends.
    pub fn occupied_ns(&self, packets: u64, bytes: u64) -> f64 {
        self.setup_ns * packets as f64 + self.ns_per_byte * bytes as f64
    }

    /// Combines two links in sequence: as slow as the slower, with the longer latency. A missing
    /// link is ignored.
    pub fn over(one: Option<Link>, other: Option<Link>) -> Option<Link> {
        let (Some(one), Some(other)) = (one, other) else {
            return one.or(other);
        };
        Some(Link {
            latency_ns: one.latency_ns.max(other.latency_ns),
            setup_ns: one.setup_ns.max(other.setup_ns),
            ns_per_byte: one.ns_per_byte.max(other.ns_per_byte),
            burst_bytes: one.burst_bytes.min(other.burst_bytes),
        })
    }
}

/// Both directions of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Edge {
    /// From parent to child.
    pub down: Link,
    /// From child to parent.
    pub up: Link,
}

/// The costs of files on one file system, in nanoseconds. An entry is a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileCosts {
    /// Cost of finding, opening and examining an entry that is read; core time.
    pub open_ns: f64,
    /// Cost of reading a byte from memory; core time.
    pub read_ns_per_byte: f64,
    /// Cost of an entry whose content is not in memory; disk time.
    pub fetch_ns: f64,
    /// Cost of a byte that is not in memory; disk time.
    pub fetch_ns_per_byte: f64,
    /// Cost of creating an entry with its mode and its time; core time.
    pub create_ns: f64,
    /// Cost of writing a byte to memory; core time.
    pub write_ns_per_byte: f64,
    /// Time of a sync without bytes, if nothing else is synced.
    pub sync_ns: f64,
    /// Part of `sync_ns` for which the disk does nothing else.
    pub sync_alone_ns: f64,
    /// Cost of writing a byte durably; disk time.
    pub flush_ns_per_byte: f64,
    /// Cost of making a message visible, apart from syncs; core time.
    pub commit_ns: f64,
    /// Cost of passing a block of a message to a thread, apart from its processing; core time.
    pub thread_ns: f64,
    /// Bytes that memory accepts before the disk limits the rate; not a cost.
    pub memory_bytes: f64,
}

/// Minimum length of a file of a folder that is made durable when it is complete: its bytes take
/// longer than its sync. Shorter ones are synced together at the end of their message.
pub const LARGE_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of entries of a message that are synced one by one. A common sync waits for the data of
/// other programs, too, which only more entries are worth.
pub const SYNCED_ALONE: u64 = 16;

/// Minimum length of a file that is written without the page cache. A shorter one stays in memory for its next
/// reader.
pub const DIRECT_FILE_BYTES: u64 = 64 << 20;

/// Length of each of the two buffers of such a file: a disk's rate is reached, and a PE has little more memory.
pub const DIRECT_BUFFER_BYTES: usize = 2 << 20;

/// Returns whether a file of this length is written without the page cache, where the file system can do that.
pub fn is_written_directly(file_bytes: u64, durability: Durability) -> bool {
    file_bytes >= DIRECT_FILE_BYTES && durability != Durability::Never
}

/// Number of figures of [`FileCosts`].
pub const FILE_COSTS: usize = 12;

/// Implements the conversion of the costs to and from an array in the order of these fields.
macro_rules! figures {
    ($($name:ident),*) => {
        impl FileCosts {
            /// Returns the figures in the order of the fields.
            pub fn to_array(self) -> [f64; FILE_COSTS] {
                [$(self.$name),*]
            }

            /// Creates the costs from the figures in the order of the fields.
            pub fn from_array(figures: [f64; FILE_COSTS]) -> FileCosts {
                let [$($name),*] = figures;
                FileCosts { $($name),* }
            }
        }
    };
}
figures! {
    open_ns, read_ns_per_byte, fetch_ns, fetch_ns_per_byte, create_ns, write_ns_per_byte, sync_ns,
    sync_alone_ns, flush_ns_per_byte, commit_ns, thread_ns, memory_bytes
}

impl FileCosts {
    /// Returns whether the costs are plausible: none is negative or longer than ten seconds.
    pub fn is_sound(&self) -> bool {
        let [costs @ .., memory_bytes] = self.to_array();
        costs.iter().all(|cost| (0.0..=1e10).contains(cost)) && memory_bytes >= 0.0
    }
}

/// The files of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeOf {
    /// Number of files and directories.
    pub entries: u64,
    /// Number of bytes that are not in memory.
    pub cold_bytes: u64,
    /// Number of bytes of a MiB of its flits after compression, estimated from a sample; 0 if they are not
    /// compressed.
    pub packed_bytes: u64,
    /// Processor time for compressing this MiB, in nanoseconds.
    pub pack_ns: u64,
    /// Processor time for decompressing it, in nanoseconds.
    pub unpack_ns: u64,
}
