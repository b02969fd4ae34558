//! Messages of the coordinator to a PE.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::time::Duration;

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
        shards: vec!["a shard".into(), OsString::from_vec(b"\xff".to_vec())],
        lines: true,
        block_bytes: 1 << 40,
        parts: 3,
        rules: vec!["*.tmp".to_owned(), "!keep.tmp".to_owned()],
        durability: Durability::File,
        update: Update::ByContent,
        compress: true,
    })
}

/// The text of an assignment, except for its collective and its payload.
pub const PLACE: &str = r#"version: 1 parents: 0 parents: 0 parents: 1 parent_listen: "127.0.0.1:1"
    flit_bytes: 65536 record_spans: true left_out: 2 left_out: 3
    peers { pe: 2 listen: "127.0.0.1:2" }
    peers { pe: 3 to { latency_ns: 1 ns_per_byte: 2 } from { latency_ns: 3 ns_per_byte: 4 } }
    job_id: 77 later_output: "/out" recorded: true own_links: true dry_run: true
    max_bits_per_second: 80000000
    versions { message: 3 bytes: 9 state: 1 digest: "0123456789abcdef" }
    versions { message: 1 bytes: 8 state: 18446744073709551615 }
    lanes { parents: 0 parents: 1 parents: 2 parent_listen: "127.0.0.1:3" links { child: 1
    down { latency_ns: 1 ns_per_byte: 2 } up { latency_ns: 3 ns_per_byte: 4 } } }
    links { child: 1 down { latency_ns: 1e6 ns_per_byte: 40 } up { latency_ns: 2e6 ns_per_byte: 80 } }
    links { child: 3 down { latency_ns: 5e8 ns_per_byte: 8e6 } up { ns_per_byte: 0.08 } }"#;
/// The text of a payload made of files.
pub const FILES: &str = r#"files { input: "/in/\377 put" spread: true output: "/out" replace: true apart: true
    names: "alpha" names: "" names: "gamma" shards: "a shard" shards: "\377"
    lines: true block_bytes: 1099511627776 parts: 3 rules: "*.tmp" rules: "!keep.tmp"
    durability: DURABILITY_FILE update: UPDATE_BY_CONTENT compress: true }"#;

/// The text of the times on the links of a PE.
const PACE: &str = "pace { pacing: PACING_TURNS control_ns: 5
    up { latency_ns: 6 ns_per_byte: 0.5 message_ns: 7 flit_bytes: 65536 ns_per_packet: 2 }
    below { reach_ns: 8 up { latency_ns: 9 ns_per_byte: 0.5 message_ns: 7 flit_bytes: 65536 ns_per_packet: 2 } }
    below { reach_ns: 10 up { latency_ns: 11 ns_per_byte: 0.5 message_ns: 7 flit_bytes: 65536 ns_per_packet: 2 } }
    port_ns_per_byte: 1.25 ahead_bytes: 12 }";

/// Returns all messages of the coordinator.
pub fn to_pe() -> Vec<(ToPe, String)> {
    let lengths = vec![1, 0, 1 << 40];
    let synthetic = "synthetic { lengths: 1 lengths: 0 lengths: 1099511627776 }";
    let assigned = |collective, name: &str, payload, text: &str| {
        let text = format!("assignment {{ {PLACE} collective: COLLECTIVE_{name} {text} }}");
        (ToPe::Assignment(assignment(collective, payload)), text)
    };
    let (scatter, gather) = (Collective::Scatter, Collective::Gather);
    let assignments = [
        assigned(
            scatter,
            "SCATTER",
            Payload::Synthetic { lengths },
            synthetic,
        ),
        assigned(scatter, "SCATTER", files(), FILES),
        assigned(gather, "GATHER", files(), FILES),
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
        (
            ToPe::ProbeEdge {
                child: PeId(4),
                budget_ns: 20_000_000,
            },
            "probe_edge { child: 4 budget_ns: 20000000 }",
        ),
        (
            ToPe::Prepare(prepare),
            "prepare { rounds: 100 schedule { collective: COLLECTIVE_GATHER role: ROLE_LINEAR window: 2 parts: 3
             flit_bytes: 4096 subtree_messages: 5 child_messages: 3 child_messages: 1
             child_ranks: 1 child_ranks: 0
             sends { id: 3 destination: 3 bytes: 9 } sends { id: 1 destination: 1 bytes: 300 }
             packet_bytes: 64 packet_bytes: 150
             receives { id: 2 destination: 2 bytes: 8 }
             all_ports: true in_turns: true in_any_order: true polls_before_sleep: true hops { message: 3 offset: 1 flits: 4 to: 1 first_step: 6 every: 2 packing: PACKING_JOINS }
             PACE }
             lanes { collective: COLLECTIVE_GATHER role: ROLE_LINEAR window: 2 parts: 3 flit_bytes: 4096
             subtree_messages: 5 child_messages: 3 child_messages: 1
             sends { id: 3 destination: 3 bytes: 3 }
             PACE }
             prefixes: 3 prefix_bytes: 7 }",
        ),
        (
            ToPe::CheckPrefixes {
                prefixes: vec![Prefix {
                    message: MessageId(1 << 40),
                    bytes: 9,
                }],
            },
            "check_prefixes { messages: 1099511627776 bytes: 9 }",
        ),
        (
            ToPe::SkipFiles {
                present: [(1 << 40, vec![7, u64::MAX]), (2, vec![])]
                    .map(|(message, files)| MessageFiles {
                        message: MessageId(message),
                        files,
                    })
                    .to_vec(),
            },
            "skip_files { messages: 1099511627776 messages: 2 counts: 2 counts: 0
             files: 7 files: 18446744073709551615 }",
        ),
        (ToPe::MeasureFiles, "measure_files { }"),
        (
            ToPe::MeasureHost { encrypted: true },
            "measure_host { encrypted: true }",
        ),
        (ToPe::ReadClock, "read_clock { }"),
        (ToPe::Trigger { round, at_ns: 8 }, "trigger { round: 6 at_ns: 8 }"),
        (ToPe::Collect { round }, "collect { round: 6 }"),
        (ToPe::Stop { over: false }, "stop { }"),
        (ToPe::Stop { over: true }, "stop { over: true }"),
        (
            ToPe::Abort { round, reason },
            r#"abort { round: 6 reason: "P2 died" }"#,
        ),
        (ToPe::Ping { look: true }, "ping { look: true }"),
        (
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
            r#"welcome { cluster: 7 secret: "0123456789abcdef0123456789abcdef"
             listen: "198.18.0.3" timeouts { heartbeat_ns: 1 silence_ns: 2 handshake_ns: 3
               connect_ns: 4 write_ns: 5 disk_ns: 6 } }"#,
        ),
        (
            ToPe::Refusal {
                reason: "P9 is none".to_owned(),
            },
            r#"refusal { reason: "P9 is none" }"#,
        ),
        (
            ToPe::Run(Run {
                words: vec!["wc".into(), OsString::from_vec(b"\xff w".to_vec())],
                work: "/w".into(),
                pes: 8,
                time_limit_ns: 3_000_000_000,
                shard: OsString::from_vec(b"\xfe".to_vec()),
                home: Some(PeId(2)),
                linked: true,
            }),
            r#"run { words: "wc" words: "\377 w" work: "/w" pes: 8 time_limit_ns: 3000000000
                shard: "\376" home: 2 linked: true }"#,
        ),
        (
            ToPe::Clear {
                work: "/w".into(),
                gathered: "/o/w".into(),
            },
            r#"clear { work: "/w" gathered: "/o/w" }"#,
        ),
        (
            ToPe::ListShards {
                input: "/in".into(),
                output: "/out".into(),
            },
            r#"list_shards { input: "/in" output: "/out" }"#,
        ),
        (
            ToPe::PlaceResults(PlaceResults {
                gathered: "/o/w".into(),
                output: "/o".into(),
                from: vec!["p1/a".into(), "p2".into()],
                to: vec!["a".into(), "p2.failed".into()],
                replace: true,
                obsolete: vec!["a.failed".into(), OsString::new()],
            }),
            r#"place_results { gathered: "/o/w" output: "/o" from: "p1/a" from: "p2" to: "a"
                to: "p2.failed" replace: true obsolete: "a.failed" obsolete: "" }"#,
        ),
    ];
    let others = others.map(|(word, text)| (word, text.replace("PACE", PACE)));
    assignments.into_iter().chain(others).collect()
}
