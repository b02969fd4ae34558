//! The cost of moving bytes over real links: the parameters of the one model that prediction,
//! schedules and shaped links share.
//!
//! A frame of b bytes keeps its sender's port busy for b times the link's `ns_per_byte`, the first one
//! of a packet for `setup_ns` more, and arrives `latency_ns` later. The processes at both ends spend the costs of
//! [`Host`] on it, on cores that they may share.

use crate::{PeId, Tree};

/// One direction of an edge: the wire, without the software of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// Time from a byte's departure to its arrival.
    pub latency_ns: f64,
    /// Time for which a packet occupies the ports at both ends in addition to its bytes: the wire's
    /// part of the set-up cost beta of paper 003. The part of the processes is in [`Host`].
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

/// Time for a process to check its connections and to yield the core once.
const LOOK_NS: f64 = 1_200.0;

/// Fraction of a flit's cost at either end that remains if the flit shares a system call with the
/// one before.
pub const COALESCED_FRAME_COST: f64 = 0.1;

/// The costs of processes, in nanoseconds of a core unless stated otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Number of cores that all PEs on the host share; `None` if each has its own.
    pub shared_cores: Option<u32>,
    /// Number of threads of other programs on the host that always have work; not a cost.
    pub busy_threads: u32,
    /// Time from the moment a sleeping process with work gets a core until it runs there; the core
    /// is occupied meanwhile.
    pub wake_ns: f64,
    /// Cost of a control frame at either end.
    pub control_ns: f64,
    /// Cost of a flit of any length at either end.
    pub flit_ns: f64,
    /// Cost of sending a byte.
    pub send_ns_per_byte: f64,
    /// Cost of receiving a byte.
    pub receive_ns_per_byte: f64,
    /// Cost of a byte at its message's source or destination, for creating or checking, and hashing
    /// it.
    pub end_ns_per_byte: f64,
    /// Cost of a message at its source or destination: the set-up cost.
    pub message_ns: f64,
    /// Additional cost of the first round of a process, while code and data are loaded into memory
    /// and caches.
    pub first_ns: f64,
}

/// The costs of processes on each machine, and the machine of each PE.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosts {
    machines: Vec<Host>,
    /// Index of each PE's machine, by PE index; all are on the first machine if this is empty.
    of: Vec<usize>,
    /// Index of the machine of the PE at the upper end of each PE's edge.
    above: Vec<usize>,
}

impl Hosts {
    /// Returns one machine for all PEs.
    pub fn one(host: Host) -> Hosts {
        Hosts {
            machines: vec![host],
            of: Vec::new(),
            above: Vec::new(),
        }
    }

    /// Returns the PEs of a tree on several machines; `of` contains the index of each PE's machine.
    ///
    /// # Panics
    ///
    /// Panics if there is no machine, or if an index is out of range.
    pub fn new(machines: Vec<Host>, of: Vec<usize>, tree: &Tree) -> Hosts {
        assert!(of.len() == tree.len() && of.iter().all(|place| *place < machines.len()));
        let above = tree.ids().map(|pe| tree.parent(pe).unwrap_or(pe));
        let above = above.map(|pe| of[pe.index()]).collect();
        Hosts {
            machines,
            of,
            above,
        }
    }

    /// Returns the machines, at least one.
    pub fn machines(&self) -> &[Host] {
        &self.machines
    }

    /// Returns the index of a PE's machine.
    pub fn machine_of(&self, pe: PeId) -> usize {
        self.of.get(pe.index()).copied().unwrap_or(0)
    }

    /// Returns the costs of processes on a PE's machine.
    pub fn of(&self, pe: PeId) -> &Host {
        &self.machines[self.machine_of(pe)]
    }

    /// Returns the costs of processes at the upper and the lower end of a PE's edge.
    pub fn ends(&self, edge: usize) -> [&Host; 2] {
        let host = |of: &[usize]| &self.machines[of.get(edge).copied().unwrap_or(0)];
        [host(&self.above), host(&self.of)]
    }

    /// Returns the machine on which a relay takes longest for a flit of this size.
    pub fn slowest(&self, flit_bytes: u32) -> &Host {
        let relays = self.machines.iter();
        let slowest = relays.max_by(|one, other| {
            let [one, other] = [one, other].map(|host| host.relays_ns(flit_bytes));
            one.total_cmp(&other)
        });
        slowest.unwrap_or(&Host::NONE)
    }

    /// Returns the same PEs on changed machines.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(usize, Host) -> Host) -> Hosts {
        let machines = self.machines.iter().enumerate();
        Hosts {
            machines: machines.map(|(place, host)| change(place, *host)).collect(),
            ..self.clone()
        }
    }

    /// Returns the machines with this number of busy threads of other programs on each.
    #[must_use]
    pub fn beside(&self, busy_threads: u32) -> Hosts {
        self.map(|_, host| Host {
            busy_threads,
            ..host
        })
    }

    /// Returns the costs in the median of this number of rounds; the median is not the first
    /// round's unless there is only one.
    #[must_use]
    pub fn in_median_of(&self, rounds: u64) -> Hosts {
        self.map(|_, host| host.in_median_of(rounds))
    }
}

/// The sharing of ports among a PE's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// One send port and one receive port: a host with one network card.
    Single,
    /// A separate port for each edge.
    PerEdge,
}

/// The parameters of a prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Edges by PE index: `edges[i]` is between P_i and its parent; `edges[0]` is unused.
    pub edges: Vec<Edge>,
    /// Costs of the processes.
    pub hosts: Hosts,
    /// Ports of the PEs.
    pub ports: Ports,
    /// Whether each PE has a separate link to each neighbour, so that static schedules may use all
    /// at once.
    pub own_links: bool,
    /// Maximum number of bytes that a link holds between the sender's write and the receiver's
    /// read.
    pub buffer_bytes: u64,
    /// Time by which a sender may run ahead of the wire, or one frame if that is longer; 0 forbids
    /// even one frame.
    pub ahead_ns: f64,
    /// Bytes of acknowledgements that a receiver sends for each received byte, over the same link.
    pub acknowledged: f64,
    /// Bytes of a control frame.
    pub control_bytes: u64,
    /// Bytes of a receipt, which the papers' model does not have.
    pub receipt_bytes: u64,
    /// Bytes of a flit's frame before its payload.
    pub prefix_bytes: u64,
    /// Costs of files, if messages are made of files.
    pub files: Option<Files>,
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
    /// Time to sync an entry without its bytes, if nothing else is synced.
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

/// Number of figures of [`FileCosts`].
pub const FILE_COSTS: usize = 12;

impl FileCosts {
    /// Returns the figures in the order of the fields.
    pub fn to_array(self) -> [f64; FILE_COSTS] {
        [
            self.open_ns,
            self.read_ns_per_byte,
            self.fetch_ns,
            self.fetch_ns_per_byte,
            self.create_ns,
            self.write_ns_per_byte,
            self.sync_ns,
            self.sync_alone_ns,
            self.flush_ns_per_byte,
            self.commit_ns,
            self.thread_ns,
            self.memory_bytes,
        ]
    }

    /// Creates the costs from the figures in the order of the fields.
    pub fn from_array(figures: [f64; FILE_COSTS]) -> FileCosts {
        let [open_ns, read, fetch_ns, fetch, create_ns, write, rest @ ..] = figures;
        let [
            sync_ns,
            sync_alone_ns,
            flush,
            commit_ns,
            thread_ns,
            memory_bytes,
        ] = rest;
        FileCosts {
            open_ns,
            read_ns_per_byte: read,
            fetch_ns,
            fetch_ns_per_byte: fetch,
            create_ns,
            write_ns_per_byte: write,
            sync_ns,
            sync_alone_ns,
            flush_ns_per_byte: flush,
            commit_ns,
            thread_ns,
            memory_bytes,
        }
    }

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
}

/// The files of all messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// File systems.
    pub disks: Vec<FileCosts>,
    /// Index in `disks` of each PE's file system, by PE index.
    pub disk_of: Vec<usize>,
    /// Files of each M_i, by PE index.
    pub made_of: Vec<MadeOf>,
    /// Bytes that are read or written at once.
    pub block_bytes: u64,
    /// Number of messages of a PE that are opened before their turn.
    pub opened_ahead: usize,
    /// Number of messages that a PE makes visible while later ones arrive.
    pub commits_under_way: usize,
}

impl Model {
    /// Returns the link from a PE to one that it is connected with.
    pub fn link(&self, tree: &Tree, from: PeId, to: PeId) -> Link {
        match (tree.parent(to) == Some(from), tree.parent(from) == Some(to)) {
            (true, _) => self.edges[to.index()].down,
            (_, true) => self.edges[from.index()].up,
            _ => self.between(tree, from, to),
        }
    }

    /// Returns the link between two PEs that are not neighbours in the tree, which is not measured:
    /// the upward link of one in sequence with the downward link of the other.
    fn between(&self, tree: &Tree, from: PeId, to: PeId) -> Link {
        let edge = |pe: PeId| tree.parent(pe).map(|_| self.edges[pe.index()]);
        let [up, down] = [
            edge(from).map(|edge| edge.up),
            edge(to).map(|edge| edge.down),
        ];
        Link::over(up, down).unwrap_or_default()
    }

    /// Returns the papers' model: flits and control items of one byte take a nanosecond each, and
    /// software takes no time.
    pub fn unit(pes: usize) -> Model {
        let link = Link {
            ns_per_byte: 1.0,
            ..Link::default()
        };
        Model {
            edges: vec![
                Edge {
                    down: link,
                    up: link
                };
                pes
            ],
            hosts: Hosts::one(Host::NONE),
            ports: Ports::Single,
            own_links: false,
            acknowledged: 0.0,
            buffer_bytes: u64::MAX,
            ahead_ns: 0.0,
            control_bytes: 1,
            receipt_bytes: 0,
            prefix_bytes: 0,
            files: None,
        }
    }
}

/// Number of costs of a host.
pub const COSTS: usize = 8;

impl Host {
    /// Returns the costs in the order of the fields.
    pub fn costs(&self) -> [f64; COSTS] {
        [
            self.wake_ns,
            self.control_ns,
            self.flit_ns,
            self.send_ns_per_byte,
            self.receive_ns_per_byte,
            self.end_ns_per_byte,
            self.message_ns,
            self.first_ns,
        ]
    }

    /// Returns the same host with other costs, in the order of the fields.
    pub fn with_costs(self, costs: [f64; COSTS]) -> Host {
        let [wake_ns, control_ns, flit_ns, send, receive, end, rest @ ..] = costs;
        let [message_ns, first_ns] = rest;
        Host {
            wake_ns,
            control_ns,
            flit_ns,
            send_ns_per_byte: send,
            receive_ns_per_byte: receive,
            end_ns_per_byte: end,
            message_ns,
            first_ns,
            ..self
        }
    }

    /// Returns the time between two checks of a process that waits without sleeping, if `processes`
    /// processes on its machine do so in turns.
    pub fn look_ns(&self, processes: usize) -> f64 {
        let cores = self.shared_cores.map_or(processes as f64, f64::from);
        LOOK_NS * (processes as f64 / cores).max(1.0)
    }

    /// Returns the time that a process spends on relaying a flit of this size.
    pub fn relays_ns(&self, flit_bytes: u32) -> f64 {
        let a_byte = self.send_ns_per_byte + self.receive_ns_per_byte;
        2.0 * self.flit_ns + a_byte * f64::from(flit_bytes)
    }

    /// Returns the host in the median of this number of rounds; the median is not the first round's
    /// unless there is only one.
    pub fn in_median_of(self, rounds: u64) -> Host {
        match rounds {
            1 => self,
            _ => self.in_later_rounds(),
        }
    }

    /// Returns the host in a round that is not the first one.
    pub fn in_later_rounds(self) -> Host {
        Host {
            first_ns: 0.0,
            ..self
        }
    }

    /// Software that costs nothing.
    pub const NONE: Host = Host {
        shared_cores: None,
        busy_threads: 0,
        wake_ns: 0.0,
        control_ns: 0.0,
        flit_ns: 0.0,
        send_ns_per_byte: 0.0,
        receive_ns_per_byte: 0.0,
        end_ns_per_byte: 0.0,
        message_ns: 0.0,
        first_ns: 0.0,
    };
}
