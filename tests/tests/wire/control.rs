//! `Control`: the messages between the coordinator and a PE.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use flitcast_proto::cost::{Edge, FILE_COSTS, FileCosts, Link, MadeOf};
use flitcast_proto::exchange::Exchange;
use flitcast_proto::items::{Message, Packing, ScheduledHop};
use flitcast_proto::ops::{Collective, PeRole, PeSchedule};
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::streams::{ChildStream, Streams, TransmitOrder};
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::control::{
    Arrival, Assignment, Begin, Counts, Doing, FilePayload, FromPe, Job, Join, Lane, OwnStart,
    Payload, Peer, Pong, Prefix, Prepare, Ready, Report, Timeouts, ToPe, Version, Welcome,
};
use flitcast_proto::{DeliveryId, MessageId, PeId, RoundId, Tree};

use super::parts::{counts, pace, pong, register, spans};
use super::reference::Reference;
use super::{body, written};

/// Returns all messages of a PE.
fn from_pe() -> Vec<(FromPe, &'static str)> {
    let exchange = |down_bytes, up_bytes| Exchange {
        down_bytes,
        up_bytes,
        extra_flits: if up_bytes > 0 { 3 } else { 0 },
        sent_ns: 1 << 50,
        received_ns: 5,
        answered_ns: 6,
        returned_ns: (1 << 50) + 9,
    };
    let arrival = |pe: u32, delivered| Arrival {
        message: MessageId(pe.into()),
        source: PeId(0),
        destination: PeId(pe),
        bytes_received: 10,
        bytes_total: 1 << 33,
        delivered,
        delivered_ns: 33,
        at_ns: 77,
        digest: delivered.then_some(*b"0123456789abcdef"),
    };
    vec![
        (
            FromPe::Join(Join {
                pe: PeId(3),
                stays: true,
                commands: true,
            }),
            "join { pe: 3 stays: true commands: true }",
        ),
        (
            register(),
            r#"register { cluster: 18446744073709551614 pe: 7 min_version: 1 max_version: 2
                 secret: "0123456789abcdef0123456789abcdef"
               listen: "[::1]:4711" pid: 4194304 clock: "boot"
               processor: "a processor" cores: 8 }"#,
        ),
        (
            FromPe::Ready(Ready {
                message_bytes: vec![0, 1, 1 << 40],
                delivered: vec![DeliveryId(3), DeliveryId(1)],
                standing: vec![DeliveryId(2)],
                made_of: vec![MadeOf {
                    entries: 3,
                    cold_bytes: 4096,
                }],
                file_system: 65_024,
                states: vec![7, 0, u64::MAX],
                delivered_digests: vec![*b"0123456789abcdef", *b"fedcba9876543210"],
                standing_bytes: vec![1 << 40],
                standing_digests: vec![*b"0123456789abcdef"],
                prefixes: vec![(DeliveryId(4), 1 << 40)],
            }),
            "ready { message_bytes: 0 message_bytes: 1 message_bytes: 1099511627776
                     delivered: 3 delivered: 1 standing: 2
                     made_of { entries: 3 cold_bytes: 4096 } file_system: 65024
                     states: 7 states: 0 states: 18446744073709551615
                     delivered_digests: \"0123456789abcdeffedcba9876543210\"
                     standing_bytes: 1099511627776
                     standing_digests: \"0123456789abcdef\"
                     prefixes: 4 prefix_bytes: 1099511627776 }",
        ),
        (
            FromPe::ProbeResult {
                child: PeId(2),
                exchanges: vec![exchange(65_536, 0), exchange(0, 7)],
            },
            "probe_result { child: 2
             exchanges { down_bytes: 65536 sent_ns: 1125899906842624 received_ns: 5
                         answered_ns: 6 returned_ns: 1125899906842633 }
             exchanges { up_bytes: 7 extra_flits: 3 sent_ns: 1125899906842624 received_ns: 5
                         answered_ns: 6 returned_ns: 1125899906842633 } }",
        ),
        (FromPe::FilesMeasured(None), "files_measured { }"),
        (
            FromPe::HostMeasured {
                found: "{}".to_owned(),
            },
            r#"host_measured { found: "{}" }"#,
        ),
        (
            FromPe::FilesMeasured(Some(FileCosts::from_array([1.5; FILE_COSTS]))),
            "files_measured { costs: 1.5 costs: 1.5 costs: 1.5 costs: 1.5 costs: 1.5 costs: 1.5
                              costs: 1.5 costs: 1.5 costs: 1.5 costs: 1.5 costs: 1.5
                              costs: 1.5 }",
        ),
        (FromPe::Prepared, "prepared { }"),
        (
            FromPe::ClockRead { at_ns: 9 },
            "clock_read { at_ns: 9 }",
        ),
        (
            FromPe::PrefixesChecked {
                digests: vec![*b"0123456789abcdef"],
            },
            "prefixes_checked { digests: \"0123456789abcdef\" }",
        ),
        (
            FromPe::Report(Report {
                round: RoundId(3),
                complete: true,
                begin: Begin {
                    started_ns: 12,
                    began_ns: 13,
                },
                arrivals: vec![arrival(1, true), arrival(2, false)],
                collisions: 4,
                peak_buffered_flits: 1,
                peak_resident_bytes: 7 << 20,
                own_start: Some(OwnStart {
                    due_ns: 50,
                    began_ns: 60,
                }),
                late_frames: 2,
                files_ns: 12_000,
                repeated_frames: 3,
                retransmitted_packets: 41,
                spans: spans(),
                counts: Box::new(counts()),
                streams: Streams {
                    order: Some(TransmitOrder {
                        after: 8,
                        at_ns: 90,
                    }),
                    children: vec![ChildStream {
                        child: PeId(2),
                        certificate: Certificate {
                            lag: 3,
                            stream: 1 << 40,
                            bytes: 5,
                        },
                        certified_ns: 60,
                        first_flit_ns: 70,
                        last_flit_ns: 80,
                        bytes: 4,
                    }],
                },
            }),
            "report { round: 3 complete: true started_ns: 12 began_ns: 13
             arrivals { message: 1 destination: 1 bytes_received: 10 bytes_total: 8589934592
                        delivered: true at_ns: 77 delivered_ns: 33 }
             arrivals { message: 2 destination: 2 bytes_received: 10 bytes_total: 8589934592 at_ns: 77 delivered_ns: 33 }
             collisions: 4 peak_buffered_flits: 1 peak_resident_bytes: 7340032
             own_start { due_ns: 50 began_ns: 60 } late_frames: 2 repeated_frames: 3
             files_ns: 12000 retransmitted_packets: 41
             order { after_ns: 8 at_ns: 90 }
             streams { child: 2 lag_ns: 3 stream_ns: 1099511627776 certified_bytes: 5
                       certified_at_ns: 60 first_flit_ns: 70 last_flit_ns: 80 bytes: 4 }
             digests: \"0123456789abcdef\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\"
             spans { peer: 1 item: ITEM_ORDER begin_after_ns: 700 duration_ns: 30 }
             spans { received: true peer: 2 item: ITEM_MESSAGE message: 5
                     begin_after_ns: 50 duration_ns: 4294967296 }
             spans { files: true peer: 2 item: ITEM_MESSAGE message: 5 duration_ns: 10 }
             spans { peer: 3 item: ITEM_MESSAGE message: 5 begin_after_ns: -10 }
             spans { peer: 3 item: ITEM_WAKEUP }
             spans { peer: 3 item: ITEM_TOKEN }
             spans { peer: 3 item: ITEM_CERTIFICATE }
             spans { peer: 3 item: ITEM_RECEIPT }
             counts { edges { received_bytes: 1099511627776 received_flits: 7 sent_flits: 1 }
                      edges { peer: 9 sent_bytes: 1099511627776 sent_flits: 1 }
                      rounds_begun: 3 rounds_done: 2 collisions: 4 late_frames: 5
                      repeated_frames: 6 buffered_flits: 1 peak_buffered_flits: 8
                      moved_bytes: 100 slips: 2 slip_ns: 3000 resident_bytes: 7340032 } }",
        ),
        (
            FromPe::Progress {
                round: RoundId(3),
                bytes: 500,
            },
            "progress { round: 3 bytes: 500 }",
        ),
        (
            FromPe::Fault {
                round: RoundId(3),
                peer: Some(PeId(2)),
                reason: "gone".to_owned(),
                bad_input: false,
                output_stands: true,
                hung_up: false,
                changed: Vec::new(),
            },
            r#"fault { round: 3 peer: 2 reason: "gone" output_stands: true }"#,
        ),
        (
            FromPe::Fault {
                round: RoundId(3),
                peer: None,
                reason: "no such file".to_owned(),
                bad_input: true,
                output_stands: false,
                hung_up: false,
                changed: vec![MessageId(3), MessageId(1 << 40)],
            },
            r#"fault { round: 3 reason: "no such file" bad_input: true
                       changed: 3 changed: 1099511627776 }"#,
        ),
        (
            pong(Doing::Idle, vec![PeId(9), PeId(1)]),
            "pong { quiet_ms: 1099511627776 unreached: 9 unreached: 1 }",
        ),
        (
            pong(Doing::Working, vec![]),
            "pong { quiet_ms: 1099511627776 doing: DOING_WORKING }",
        ),
        (
            pong(Doing::Sending(PeId(4)), vec![]),
            "pong { quiet_ms: 1099511627776 doing: DOING_SENDING peer: 4 }",
        ),
        (
            pong(Doing::Receiving(PeId(5)), vec![]),
            "pong { quiet_ms: 1099511627776 doing: DOING_RECEIVING peer: 5 }",
        ),
        (
            pong(Doing::Listening, vec![]),
            "pong { quiet_ms: 1099511627776 doing: DOING_LISTENING }",
        ),
        (
            FromPe::Pong(Pong {
                quiet_ms: 0,
                files_quiet_ms: 7,
                doing: Doing::Working,
                unreached: Vec::new(),
                counts: Counts {
                    rounds_begun: 1,
                    ..Counts::default()
                },
            }),
            "pong { doing: DOING_WORKING counts { rounds_begun: 1 } files_quiet_ms: 7 }",
        ),
    ]
}

fn link(latency_ns: f64, ns_per_byte: f64) -> Link {
    Link {
        latency_ns,
        setup_ns: 0.0,
        ns_per_byte,
        burst_bytes: 0.0,
    }
}

fn edge(down: Link, up: Link) -> Edge {
    Edge { down, up }
}

fn assignment(collective: Collective, payload: Payload) -> ToPe {
    let parents = [None, Some(0), Some(0), Some(1)];
    let parents = parents.map(|parent| parent.map(PeId)).to_vec();
    let path = [None, Some(0), Some(1), Some(2)];
    let path = path.map(|parent| parent.map(PeId)).to_vec();
    ToPe::Assignment(Assignment {
        version: 1,
        tree: Arc::new(Tree::from_parents(parents).expect("it is a tree")),
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
            (PeId(1), edge(link(1e6, 40.0), link(2e6, 80.0))),
            (PeId(3), edge(link(5e8, 8e6), link(0.0, 0.08))),
        ],
        record_spans: true,
        left_out: vec![DeliveryId(2), DeliveryId(3)],
        job: Job {
            id: 77,
            recorded: true,
            later_output: Some("/out".into()),
        },
        lanes: vec![Lane {
            tree: Arc::new(Tree::from_parents(path).expect("it is a tree")),
            parent_listen: Some("127.0.0.1:3".to_owned()),
            links: vec![(PeId(1), edge(link(1.0, 2.0), link(3.0, 4.0)))],
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
    })
}

fn files() -> Payload {
    Payload::Files(FilePayload {
        input: PathBuf::from(OsStr::from_bytes(b"/in/\xff put")),
        spread: true,
        output: "/out".into(),
        replace: true,
        apart: true,
    })
}

pub const PLACE: &str = r#"version: 1 parents: 0 parents: 0 parents: 1 parent_listen: "127.0.0.1:1"
    flit_bytes: 65536 record_spans: true left_out: 2 left_out: 3
    peers { pe: 2 listen: "127.0.0.1:2" }
    peers { pe: 3 to { latency_ns: 1 ns_per_byte: 2 } from { latency_ns: 3 ns_per_byte: 4 } }
    job_id: 77 later_output: "/out" recorded: true own_links: true dry_run: true
    versions { message: 3 bytes: 9 state: 1 digest: "0123456789abcdef" }
    versions { message: 1 bytes: 8 state: 18446744073709551615 }
    lanes { parents: 0 parents: 1 parents: 2 parent_listen: "127.0.0.1:3" links { child: 1
    down { latency_ns: 1 ns_per_byte: 2 } up { latency_ns: 3 ns_per_byte: 4 } } }
    links { child: 1 down { latency_ns: 1e6 ns_per_byte: 40 } up { latency_ns: 2e6 ns_per_byte: 80 } }
    links { child: 3 down { latency_ns: 5e8 ns_per_byte: 8e6 } up { ns_per_byte: 0.08 } }"#;
pub const FILES: &str =
    r#"files { input: "/in/\377 put" spread: true output: "/out" replace: true apart: true }"#;

/// Returns all messages of the coordinator.
fn to_pe() -> Vec<(ToPe, String)> {
    let lengths = vec![1, 0, 1 << 40];
    let mut all = vec![(
        assignment(Collective::Scatter, Payload::Synthetic { lengths }),
        format!(
            "assignment {{ {PLACE} collective: COLLECTIVE_SCATTER
             synthetic {{ lengths: 1 lengths: 0 lengths: 1099511627776 }} }}"
        ),
    )];
    for (collective, name) in [
        (Collective::Scatter, "SCATTER"),
        (Collective::Gather, "GATHER"),
    ] {
        let text = format!("assignment {{ {PLACE} collective: COLLECTIVE_{name} {FILES} }}");
        all.push((assignment(collective, files()), text));
    }
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
             all_ports: true in_turns: true in_any_order: true hops { message: 3 offset: 1 flits: 4 to: 1 first_step: 6 every: 2 packing: PACKING_JOINS }
             pace { pacing: PACING_TURNS control_ns: 5
               up { latency_ns: 6 ns_per_byte: 0.5 message_ns: 7 flit_bytes: 65536 }
               below { reach_ns: 8 back_ns: 9 } below { reach_ns: 10 back_ns: 11 }
               port_ns_per_byte: 1.25 ahead_bytes: 12 } }
             lanes { collective: COLLECTIVE_GATHER role: ROLE_LINEAR window: 2 parts: 3 flit_bytes: 4096
             subtree_messages: 5 child_messages: 3 child_messages: 1
             sends { id: 3 destination: 3 bytes: 3 }
             pace { pacing: PACING_TURNS control_ns: 5
               up { latency_ns: 6 ns_per_byte: 0.5 message_ns: 7 flit_bytes: 65536 }
               below { reach_ns: 8 back_ns: 9 } below { reach_ns: 10 back_ns: 11 }
               port_ns_per_byte: 1.25 ahead_bytes: 12 } }
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
    ];
    all.extend(others.map(|(word, text)| (word, text.to_owned())));
    all
}

#[test]
fn everything_a_pe_says_is_read_as_it_was_meant() {
    let reference = Reference::new();
    for (word, text) in from_pe() {
        let ours = written(|out| word.put(out));
        reference.assert_reads("Control", body(&ours), text);
        let theirs = reference.encode("Control", text);
        assert_eq!(FromPe::parse(&theirs), Ok(word));
        assert!(
            ToPe::parse(&theirs).is_err(),
            "the coordinator does not say {text}"
        );
    }
}

#[test]
fn everything_the_coordinator_says_is_read_as_it_was_meant() {
    let reference = Reference::new();
    for (word, text) in to_pe() {
        let ours = written(|out| word.put(out));
        reference.assert_reads("Control", body(&ours), &text);
        let theirs = reference.encode("Control", &text);
        assert_eq!(ToPe::parse(&theirs), Ok(word));
        assert!(FromPe::parse(&theirs).is_err(), "no PE says {text}");
    }
}

/// P0's index is a value that protobuf omits in other fields.
#[test]
fn a_fault_of_p0_is_not_one_of_nobody() {
    let fault = FromPe::Fault {
        round: RoundId(3),
        peer: Some(PeId::ROOT),
        reason: "gone".to_owned(),
        bad_input: false,
        output_stands: false,
        hung_up: true,
        changed: Vec::new(),
    };
    let text = r#"fault { round: 3 peer: 0 reason: "gone" hung_up: true }"#;
    let ours = written(|out| fault.put(out));
    Reference::new().assert_reads("Control", body(&ours), text);
    // The reference does not write an optional zero. On the wire, this is the same.
    let list = "repeated uint32 peer = 2 [packed = false];";
    let alike = Reference::later(|text| text.replace("optional uint32 peer = 2;", list));
    assert_eq!(FromPe::parse(&alike.encode("Control", text)), Ok(fault));
}

#[test]
fn fields_of_a_later_version_are_skipped() {
    let later = Reference::later(|text| {
        text.replace(
            "message Register {",
            "message Register { repeated uint32 rails = 77;",
        )
    });
    let text = r#"register { cluster: 18446744073709551614 pe: 7 min_version: 1 max_version: 2
                 secret: "0123456789abcdef0123456789abcdef"
                  listen: "[::1]:4711" pid: 4194304 clock: "boot" processor: "a processor" cores: 8
                  rails: 1 rails: 2 }"#;
    assert_eq!(
        FromPe::parse(&later.encode("Control", text)),
        Ok(register())
    );
}

#[test]
fn a_word_cut_anywhere_is_never_taken_for_the_whole() {
    for (word, text) in from_pe() {
        let whole = written(|out| word.put(out));
        let body = body(&whole);
        for cut in 0..body.len() {
            assert!(FromPe::parse(&body[..cut]).is_err(), "{text}, cut at {cut}");
        }
    }
    for (word, text) in to_pe() {
        let whole = written(|out| word.put(out));
        let body = body(&whole);
        for cut in 0..body.len() {
            assert!(ToPe::parse(&body[..cut]).is_err(), "{text}, cut at {cut}");
        }
    }
}

#[test]
fn any_pe_may_be_the_root() {
    let payload = Payload::Synthetic {
        lengths: vec![1, 2, 3],
    };
    let ToPe::Assignment(whole) = assignment(Collective::Scatter, payload) else {
        panic!("it is one");
    };
    for root in [1, 2, 3].map(PeId) {
        let seen = Assignment {
            tree: Arc::new(whole.tree.rerooted(root)),
            links: Vec::new(),
            left_out: vec![DeliveryId(0)],
            lanes: Vec::new(),
            ..whole.clone()
        };
        let word = ToPe::Assignment(seen);
        let frame = written(|out| word.put(out));
        assert_eq!(ToPe::parse(body(&frame)), Ok(word));
    }
}

#[test]
fn a_tree_may_lack_pes() {
    let parents = [None, Some(PeId(0)), None, Some(PeId(1))];
    let tree = Arc::new(Tree::with_absent(PeId::ROOT, parents.to_vec()).expect("P2 is absent"));
    let payload = Payload::Synthetic {
        lengths: vec![1, 2, 3],
    };
    let whole = assignment(Collective::Scatter, payload);
    let ToPe::Assignment(whole) = whole else {
        panic!("it is one");
    };
    let lacking = Assignment {
        tree,
        links: Vec::new(),
        left_out: vec![DeliveryId(3)],
        lanes: Vec::new(),
        versions: Vec::new(),
        ..whole
    };
    assert!(
        [2, 3]
            .into_iter()
            .all(|it| lacking.leaves_out(DeliveryId(it)))
    );
    assert!(!lacking.leaves_out(DeliveryId(1)));
    let word = ToPe::Assignment(lacking);
    let ours = written(|out| word.put(out));
    let text = r#"assignment { version: 1 parents: 0 parents: 2 parents: 1
        parent_listen: "127.0.0.1:1" collective: COLLECTIVE_SCATTER flit_bytes: 65536
        peers { pe: 2 listen: "127.0.0.1:2" }
        peers { pe: 3 to { latency_ns: 1 ns_per_byte: 2 } from { latency_ns: 3 ns_per_byte: 4 } }
        synthetic { lengths: 1 lengths: 2 lengths: 3 } record_spans: true left_out: 3
        job_id: 77 later_output: "/out" recorded: true own_links: true dry_run: true }"#;
    let reference = Reference::new();
    reference.assert_reads("Control", body(&ours), text);
    assert_eq!(ToPe::parse(&reference.encode("Control", text)), Ok(word));
}
