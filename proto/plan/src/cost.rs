//! The cost of moving bytes over real links between real processes: the parameters of the one model
//! that prediction, schedules and shaped links share.

use flitcast_proto::Compression;
pub use flitcast_proto::cost::*;
use flitcast_proto::{Durability, PeId, Tree};

/// Time for a process to check its connections and to yield the core once.
const LOOK_NS: f64 = 1_200.0;

/// Fraction of a flit's cost at either end that remains if the flit shares a system call with the
/// one before.
pub const COALESCED_FRAME_COST: f64 = 0.1;

/// Additional cost of the bytes of a message's first flit in a process's first round, whose memory is in no
/// cache, as a fraction of their cost.
pub const COLD_BYTE_COST: f64 = 0.6;

/// Maximum number of held bytes that stay in a cache.
pub const HELD_IN_CACHE: u64 = 1 << 20;

/// Additional cost of a byte that leaves a cache while a PE holds it, as a fraction of the cost of sending and
/// receiving it.
pub const HELD_BYTE_COST: f64 = 0.5;

/// Maximum number of held bytes for which a process's first round needs no new memory from the kernel: about
/// what its allocator has left from the launch.
pub const HELD_ON_HEAP: u64 = 128 << 10;

/// Additional cost of a byte that is held in new memory from the kernel, or in a file.
pub const HELD_IN_NEW_MEMORY_COST: f64 = 1.0;

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
        let relays_ns = |host: &Host| host.relays_ns(flit_bytes);
        let hosts = self.machines.iter();
        let slowest = hosts.max_by(|one, other| relays_ns(one).total_cmp(&relays_ns(other)));
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

    /// Returns whether threads of other programs are busy on any machine.
    pub fn have_busy_threads(&self) -> bool {
        self.machines.iter().any(|host| host.busy_threads > 0)
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

/// The blocks of long messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongBlocks {
    /// Least length of such a message in bytes.
    pub message_bytes: u64,
    /// Bytes that are read or written at once.
    pub block_bytes: u64,
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
    /// The blocks of long messages.
    pub long: LongBlocks,
    /// Number of messages of a PE that are opened before their turn.
    pub opened_ahead: usize,
    /// Number of messages that a PE makes visible while later ones arrive.
    pub commits_under_way: usize,
    /// When messages are durable.
    pub durability: Durability,
    /// The compression of flits, if that makes any shorter.
    pub compression: Compression,
}

impl Model {
    /// Returns the compression of flits.
    pub fn compression(&self) -> Compression {
        match &self.files {
            Some(files) if files.made_of.iter().any(|it| it.packed_bytes > 0) => files.compression,
            _ => Compression::Never,
        }
    }

    /// Returns the same model without compression.
    pub fn uncompressed(&self) -> Model {
        let mut model = self.clone();
        if let Some(files) = &mut model.files {
            files.compression = Compression::Never;
        }
        model
    }

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
        let (up, down) = (edge(from).map(|it| it.up), edge(to).map(|it| it.down));
        Link::over(up, down).unwrap_or_default()
    }

    /// Returns the papers' model: flits and control items of one byte take a nanosecond each, and
    /// software takes no time.
    pub fn unit(pes: usize) -> Model {
        let link = Link {
            ns_per_byte: 1.0,
            ..Link::default()
        };
        Model::alike(pes, link)
    }

    /// Returns the papers' model with this link as both directions of each edge.
    pub fn alike(pes: usize, link: Link) -> Model {
        let (down, up) = (link, link);
        Model {
            edges: vec![Edge { down, up }; pes],
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

/// Implements the conversion of the costs to and from an array in the order of these fields.
macro_rules! costs {
    ($($name:ident),*) => {
        impl Host {
            /// Returns the costs in the order of the fields.
            pub fn costs(self) -> [f64; COSTS] {
                [$(self.$name),*]
            }

            /// Returns the same host with other costs, in the order of the fields.
            pub fn with_costs(self, costs: [f64; COSTS]) -> Host {
                let [$($name),*] = costs;
                Host { $($name,)* ..self }
            }
        }
    };
}
costs! {
    wake_ns, control_ns, flit_ns, send_ns_per_byte, receive_ns_per_byte, end_ns_per_byte, message_ns,
    first_ns
}

impl Host {
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
