//! Messages of the coordinator to a PE.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::time::Duration;

use flitcast_proto::Compression;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::items::{Message, Packing, ScheduledHop};
use flitcast_proto::ops::{Collective, PeRole, PeSchedule};
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::control::{
    Assignment, FilePayload, Job, Lane, MessageFiles, Payload, Peer, PlaceResults, Prefix, Prepare,
    Run, Timeouts, ToPe, Version, Welcome,
};
use flitcast_proto::{DeliveryId, Durability, MessageId, PeId, RoundId, Tree, Update};

use super::parts::pace;

fn link(latency_ns: f64, ns_per_byte: f64) -> Link {
    Link {
        latency_ns,
        setup_ns: 0.0,
        ns_per_byte,
        burst_bytes: 0.0,
    }
}

fn edge(down: [f64; 2], up: [f64; 2]) -> Edge {
    let [down, up] = [down, up].map(|[latency_ns, ns_per_byte]| link(latency_ns, ns_per_byte));
    Edge { down, up }
}

/// Returns an assignment with all its optional parts.
pub fn assignment(collective: Collective, payload: Payload) -> Assignment {
    let tree = |parents: [Option<u32>; 4]| {
        let parents = parents.map(|parent| parent.map(PeId)).to_vec();
        Arc::new(Tree::from_parents(parents).expect("it is a tree"))
    };
    Assignment {
        version: 1,
        tree: tree([None, Some(0), Some(0), Some(1)]),
        parent_listen: Some("127.0.0.1:1".to_owned()),
        peers: vec![
            Peer {
                pe: PeId(2),
                listen: Some("127.0.0.1:2".to_owned()),
                link: None,
            },
            Peer {
                pe: PeId(3),
                listen: None,
                link: Some([link(1.0, 2.0), link(3.0, 4.0)]),
            },
        ],
        collective,
        flit_bytes: 65536,
        payload,
        links: vec![
            (PeId(1), edge([1e6, 40.0], [2e6, 80.0])),
            (PeId(3), edge([5e8, 8e6], [0.0, 0.08])),
        ],
        record_spans: true,
        left_out: vec![DeliveryId(2), DeliveryId(3)],
        job: Job {
            id: 77,
            recorded: true,
            later_output: Some("/out".into()),
        },
        lanes: vec![Lane {
            tree: tree([None, Some(0), Some(1), Some(2)]),
            parent_listen: Some("127.0.0.1:3".to_owned()),
            links: vec![(PeId(1), edge([1.0, 2.0], [3.0, 4.0]))],
        }],
        own_links: true,
        versions: vec![
            Version {
                message: MessageId(3),
                bytes: 9,
                state: 1,
                digest: Some(*b"0123456789abcdef"),
            },
            Version {
                message: MessageId(1),
                bytes: 8,
                state: u64::MAX,
                digest: None,
            },
        ],
        dry_run: true,
        max_bits_per_second: 80_000_000,
    }
}

fn files() -> Payload {
    Payload::Files(FilePayload {
        input: OsString::from_vec(b"/in/\xff put".to_vec()).into(),
        spread: true,
        output: "/out".into(),
        replace: true,
        apart: true,
        names: vec!["alpha".to_owned(), String::new(), "gamma".to_owned()],
        output_names: vec![String::new(), "beta".to_owned()],
        chooses_entries: true,
        shards: vec!["a shard".into(), OsString::from_vec(b"\xff".to_vec())],
        lines: true,
        block_bytes: 1 << 40,
        parts: 3,
        rules: vec!["*.tmp".to_owned(), "!keep.tmp".to_owned()],
        durability: Durability::File,
        update: Update::ByContent,
        compression: Compression::Zstd,
        archive: true,
    })
}

/// Returns all messages of the coordinator.
pub fn to_pe() -> Vec<ToPe> {
    let lengths = vec![1, 0, 1 << 40];
    let assigned = |collective, payload| ToPe::Assignment(assignment(collective, payload));
    let assignments = [
        assigned(Collective::Scatter, Payload::Synthetic { lengths }),
        assigned(Collective::Scatter, files()),
        assigned(Collective::Gather, files()),
    ];
    let message = |destination, bytes| Message::between(PeId::ROOT, PeId(destination), bytes);
    let schedule = PeSchedule {
        collective: Collective::Gather,
        role: PeRole::Linear { window: 2 },
        parts: 3,
        flit_bytes: 4096,
        pace: pace(),
        sends: vec![message(3, 9), message(1, 300)],
        packet_bytes: vec![64, 150],
        receives: vec![message(2, 8)],
        subtree_messages: 5,
        child_messages: vec![3, 1],
        child_ranks: vec![1, 0],
        hops: vec![ScheduledHop {
            offset: 1,
            every: 2,
            message: MessageId(3),
            flits: 4,
            from: PeId::ROOT,
            to: PeId(1),
            first_step: 6,
            packing: Packing::Joins,
        }],
        all_ports: true,
        in_turns: true,
        in_any_order: true,
        polls_before_sleep: true,
        compression: Compression::Lz4,
        has_tail: true,
    };
    let lanes = vec![PeSchedule {
        sends: vec![message(3, 3)],
        packet_bytes: Vec::new(),
        receives: Vec::new(),
        child_ranks: Vec::new(),
        hops: Vec::new(),
        all_ports: false,
        in_turns: false,
        in_any_order: false,
        polls_before_sleep: false,
        ..schedule.clone()
    }];
    let prepare = Prepare {
        schedule,
        rounds: 100,
        lanes,
        prefixes: vec![Prefix {
            message: MessageId(3),
            bytes: 7,
        }],
    };
    let round = RoundId(6);
    let reason = "P2 died".to_owned();
    let others = [
        ToPe::ProbeEdge {
            child: PeId(4),
            budget_ns: 20_000_000,
        },
        ToPe::Prepare(prepare),
        ToPe::CheckPrefixes {
            prefixes: vec![Prefix {
                message: MessageId(1 << 40),
                bytes: 9,
            }],
        },
        ToPe::SkipFiles {
            present: [(1 << 40, vec![7, u64::MAX]), (2, vec![])]
                .map(|(message, files)| MessageFiles {
                    message: MessageId(message),
                    files,
                })
                .to_vec(),
        },
        ToPe::MeasureFiles,
        ToPe::MeasureHost { encrypted: true },
        ToPe::ReadClock,
        ToPe::Trigger { round, at_ns: 8 },
        ToPe::Collect { round },
        ToPe::Stop { over: false },
        ToPe::Stop { over: true },
        ToPe::Abort { round, reason },
        ToPe::Ping { look: true },
        ToPe::Welcome(Welcome {
            cluster: 7,
            secret: Secret::new(*b"0123456789abcdef0123456789abcdef"),
            listen: "198.18.0.3".to_owned(),
            timeouts: Timeouts {
                heartbeat: Duration::from_nanos(1),
                silence: Duration::from_nanos(2),
                handshake: Duration::from_nanos(3),
                connect: Duration::from_nanos(4),
                write: Duration::from_nanos(5),
                disk: Duration::from_nanos(6),
            },
        }),
        ToPe::Refusal {
            reason: "P9 is none".to_owned(),
        },
        ToPe::Run(Run {
            words: vec!["wc".into(), OsString::from_vec(b"\xff w".to_vec())],
            work: "/w".into(),
            pes: 8,
            time_limit_ns: 3_000_000_000,
            shard: OsString::from_vec(b"\xfe".to_vec()),
            home: Some(PeId(2)),
            linked: true,
        }),
        ToPe::EndRun {
            shard: "a b".into(),
        },
        ToPe::Clear {
            work: "/w".into(),
            gathered: "/o/w".into(),
        },
        ToPe::ListShards {
            input: "/in".into(),
            output: "/out".into(),
        },
        ToPe::PlaceResults(PlaceResults {
            gathered: "/o/w".into(),
            output: "/o".into(),
            from: vec!["p1/a".into(), "p2".into()],
            to: vec!["a".into(), "p2.failed".into()],
            replace: true,
            obsolete: vec!["a.failed".into(), OsString::new()],
        }),
    ];
    assignments.into_iter().chain(others).collect()
}
