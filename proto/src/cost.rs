//! What moving bytes costs on real links: the parameters of the one model that
//! prediction, schedules and shaped links share (spec, section 7).
//!
//! A frame of b bytes keeps its sender's port busy for b times the link's
//! `ns_per_byte`, a flit for its `setup_ns` more, and is there a `latency_ns` later; the processes at both ends spend
//! what [`Host`] says on it, on cores that they may have to share.

use crate::{PeId, Tree};

/// One direction of an edge: the wire alone, without the software of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// From a byte's departure to its arrival.
    pub latency_ns: f64,
    /// For which a flit has the ports at both ends, whatever its length: the set-up cost beta of
    /// paper 003, as far as it is the wire's. What processes spend on it is [`Host`]'s.
    pub setup_ns: f64,
    /// The inverse of the rate.
    pub ns_per_byte: f64,
    /// What a link that was idle lets through at once before its rate holds (a token
    /// bucket's depth).
    pub burst_bytes: f64,
}

impl Link {
    /// For which frames of so many bytes have the ports at both ends, if so many of them are flits.
    pub fn occupied_ns(&self, flits: u64, bytes: u64) -> f64 {
        self.setup_ns * flits as f64 + self.ns_per_byte * bytes as f64
    }

    /// Over one and then over the other, where there are such: as slow as the slower, and as far
    /// as the farther.
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

/// For a process to look at its connections and to let another one have the core.
const LOOK_NS: f64 = 1_200.0;

/// Of what a flit costs at either end, the part that is left if it goes with the one before: the rest
/// is the call of the operating system.
pub const ALONG: f64 = 0.1;

/// What the processes spend, in nanoseconds of a core unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Cores that all PEs on it share; `None` where each has its own.
    pub shared_cores: Option<u32>,
    /// From the moment a sleeping process with something to do has a core until it runs there;
    /// the core does nothing else meanwhile.
    pub wake_ns: f64,
    /// A control frame, at either end.
    pub control_ns: f64,
    /// A flit, at either end, whatever its length.
    pub flit_ns: f64,
    /// A byte, handed to the network.
    pub send_ns_per_byte: f64,
    /// A byte, taken from the network.
    pub receive_ns_per_byte: f64,
    /// A byte at its message's source or destination: made or checked, and hashed.
    pub end_ns_per_byte: f64,
    /// A message at its source or destination: the set-up cost.
    pub message_ns: f64,
    /// What a process spends besides on the first round that it plays: its code comes into
    /// memory, and what is used often into the caches.
    pub first_ns: f64,
}

/// What processes cost on each machine, and which PE is on which.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosts {
    machines: Vec<Host>,
    /// By PE index, the machine that the PE is on; all are on the first where there is none.
    of: Vec<usize>,
    /// The same of the PE at the upper end of its edge.
    above: Vec<usize>,
}

impl Hosts {
    /// One machine for all.
    pub fn one(host: Host) -> Hosts {
        Hosts {
            machines: vec![host],
            of: Vec::new(),
            above: Vec::new(),
        }
    }

    /// PEs of a tree on several machines; by PE index, the place of its own among them.
    ///
    /// # Panics
    ///
    /// Without a machine, or if one has none of these places.
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

    /// The machines, one at least.
    pub fn machines(&self) -> &[Host] {
        &self.machines
    }

    /// The place of a PE's machine among them.
    pub fn machine_of(&self, pe: PeId) -> usize {
        self.of.get(pe.index()).copied().unwrap_or(0)
    }

    /// What a process costs where a PE is.
    pub fn of(&self, pe: PeId) -> &Host {
        &self.machines[self.machine_of(pe)]
    }

    /// What processes cost at the upper end and at the lower end of a PE's edge.
    pub fn ends(&self, edge: usize) -> [&Host; 2] {
        let host = |of: &[usize]| &self.machines[of.get(edge).copied().unwrap_or(0)];
        [host(&self.above), host(&self.of)]
    }

    /// Where a relay needs longest for flits of so many bytes.
    pub fn slowest(&self, flit_bytes: u32) -> &Host {
        let relays = self.machines.iter();
        let slowest = relays.max_by(|one, other| {
            let [one, other] = [one, other].map(|host| host.relays_ns(flit_bytes));
            one.total_cmp(&other)
        });
        slowest.unwrap_or(&Host::NONE)
    }

    /// The same PEs on other machines.
    #[must_use]
    pub fn map(&self, mut change: impl FnMut(usize, Host) -> Host) -> Hosts {
        let machines = self.machines.iter().enumerate();
        Hosts {
            machines: machines.map(|(place, host)| change(place, *host)).collect(),
            ..self.clone()
        }
    }

    /// The same in the median of so many rounds, most of which are not the first one.
    #[must_use]
    pub fn in_median_of(&self, rounds: u64) -> Hosts {
        self.map(|_, host| host.in_median_of(rounds))
    }
}

/// Whether a PE's edges share what they send and receive through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// One send port and one receive port: a host with one network card.
    Single,
    /// A port of its own for each edge.
    PerEdge,
}

/// All that a prediction knows of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// `edges[i]` lies between P_i and its parent; `edges[0]` is not looked at.
    pub edges: Vec<Edge>,
    /// The processes.
    pub hosts: Hosts,
    /// Their ports.
    pub ports: Ports,
    /// Each PE has a link of its own to each neighbour: lists may be played over all at once.
    pub own_links: bool,
    /// Bytes that a link holds between the sender's write and the receiver's read,
    /// at most.
    pub buffer_bytes: u64,
    /// A sender may run ahead of the wire by so much, or by one frame if that is more;
    /// 0: not at all, not even by a frame.
    pub ahead_ns: f64,
    /// Bytes of acknowledgements that a receiver sends back for a byte, and that its link has
    /// besides.
    pub acknowledged: f64,
    /// Bytes of a control frame,
    pub control_bytes: u64,
    /// and of a receipt, which the papers' model does not know.
    pub receipt_bytes: u64,
    /// Bytes of what stands ahead of a flit's payload.
    pub prefix_bytes: u64,
    /// Where messages are made of files: what those cost.
    pub files: Option<Files>,
}

/// What files cost on one file system of a host, in nanoseconds. An entry is a file or a
/// directory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileCosts {
    /// An entry that is read: found, opened, looked at. Of a core.
    pub open_ns: f64,
    /// A byte that is read from memory. Of a core.
    pub read_ns_per_byte: f64,
    /// An entry whose content is not in memory. Of the disk.
    pub fetch_ns: f64,
    /// A byte that is not in memory. Of the disk.
    pub fetch_ns_per_byte: f64,
    /// An entry that is made, with its mode and its time. Of a core.
    pub create_ns: f64,
    /// A byte that is written to memory. Of a core.
    pub write_ns_per_byte: f64,
    /// From asking that an entry be durable until it is, when nobody else asks, without its
    /// bytes.
    pub sync_ns: f64,
    /// The part of that for which the disk serves nobody else.
    pub sync_alone_ns: f64,
    /// A byte that is made durable. Of the disk.
    pub flush_ns_per_byte: f64,
    /// A message that is made visible, beyond what is synced. Of a core.
    pub commit_ns: f64,
    /// A block of a message that is handed to a thread, beyond what is done with it. Of a core.
    pub thread_ns: f64,
    /// Bytes that memory takes before the disk has to keep up. Not a cost.
    pub memory_bytes: f64,
}

/// How many figures [`FileCosts`] has.
pub const FILE_COSTS: usize = 12;

impl FileCosts {
    /// The figures, in the order of the fields.
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

    /// The reverse.
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

    /// Whether a file system can cost so much: nothing takes longer than ten seconds, nor
    /// less than no time.
    pub fn is_sound(&self) -> bool {
        let [costs @ .., memory_bytes] = self.to_array();
        costs.iter().all(|cost| (0.0..=1e10).contains(cost)) && memory_bytes >= 0.0
    }
}

/// What a message is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeOf {
    /// Files and directories.
    pub entries: u64,
    /// Bytes of it that are not in memory.
    pub cold_bytes: u64,
}

/// The files of all messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// The file systems.
    pub disks: Vec<FileCosts>,
    /// By PE index: the place in `disks` of the one that it reads from or writes to.
    pub disk_of: Vec<usize>,
    /// By PE index: what M_i is made of.
    pub made_of: Vec<MadeOf>,
    /// What is read or written at once.
    pub block_bytes: u64,
    /// Messages of a PE that are opened before their turn.
    pub opened_ahead: usize,
    /// Messages at a PE that are made visible while later ones come in.
    pub commits_under_way: usize,
}

impl Model {
    /// From one PE to another with whom it is connected.
    pub fn link(&self, tree: &Tree, from: PeId, to: PeId) -> Link {
        match (tree.parent(to) == Some(from), tree.parent(from) == Some(to)) {
            (true, _) => self.edges[to.index()].down,
            (_, true) => self.edges[from.index()].up,
            _ => self.between(tree, from, to),
        }
    }

    /// From one PE to another that is none of its neighbours in the tree, which nobody has
    /// measured: as over the edge of the one and that of the other.
    fn between(&self, tree: &Tree, from: PeId, to: PeId) -> Link {
        let edge = |pe: PeId| tree.parent(pe).map(|_| self.edges[pe.index()]);
        let [up, down] = [
            edge(from).map(|edge| edge.up),
            edge(to).map(|edge| edge.down),
        ];
        Link::over(up, down).unwrap_or_default()
    }

    /// The papers' model: flits and control items of one byte, a nanosecond each, no
    /// software.
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

/// How many costs of a host there are.
pub const COSTS: usize = 8;

impl Host {
    /// The costs, in the order of the fields.
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

    /// The same host with other costs, in that order.
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

    /// From one look of a process that waits awake to the next, if so many on its machine do so in
    /// turns.
    pub fn look_ns(&self, processes: usize) -> f64 {
        let cores = self.shared_cores.map_or(processes as f64, f64::from);
        LOOK_NS * (processes as f64 / cores).max(1.0)
    }

    /// For which a process that passes a flit of so many bytes on is busy with it.
    pub fn relays_ns(&self, flit_bytes: u32) -> f64 {
        let a_byte = self.send_ns_per_byte + self.receive_ns_per_byte;
        2.0 * self.flit_ns + a_byte * f64::from(flit_bytes)
    }

    /// The same host in the median of so many rounds, most of which are not the first one.
    pub fn in_median_of(self, rounds: u64) -> Host {
        match rounds {
            1 => self,
            _ => self.in_later_rounds(),
        }
    }

    /// The same host in a round that is not the first one.
    pub fn in_later_rounds(self) -> Host {
        Host {
            first_ns: 0.0,
            ..self
        }
    }

    /// Software that costs nothing.
    pub const NONE: Host = Host {
        shared_cores: None,
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
