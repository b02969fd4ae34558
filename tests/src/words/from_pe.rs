//! Messages of a PE to the coordinator.

use flitcast_proto::cost::{FILE_COSTS, FileCosts, MadeOf};
use flitcast_proto::exchange::Exchange;
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::streams::{ChildStream, Streams, TransmitOrder};
use flitcast_proto::wire::control::{
    Arrival, Begin, Counts, Doing, End, EntryListing, FromPe, Join, Listings, OwnStart, Pong, Ran,
    Ready, Report, SkippedFiles,
};
use flitcast_proto::{DeliveryId, MessageId, PeId, RoundId};

use super::parts::{counts, packets, register, spans};

/// Returns all messages of a PE.
pub fn from_pe() -> Vec<(FromPe, String)> {
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
    let listing = |(delivery, files)| EntryListing {
        delivery: DeliveryId(delivery),
        digest: *b"0123456789abcdef",
        files,
    };
    let all = [
        (
            FromPe::FilesSkipped {
                skipped: vec![SkippedFiles {
                    message_bytes: 1 << 40,
                    files: 2,
                    file_bytes: 3,
                }],
            },
            "files_skipped { message_bytes: 1099511627776 files: 2 file_bytes: 3 }",
        ),
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
                update: Box::new(Listings {
                    sent: vec![*b"fedcba9876543210"],
                    present: [(5, vec![7, 8]), (6, vec![])].map(listing).to_vec(),
                }),
            }),
            "ready { message_bytes: 0 message_bytes: 1 message_bytes: 1099511627776
                     delivered: 3 delivered: 1 standing: 2
                     made_of { entries: 3 cold_bytes: 4096 } file_system: 65024
                     states: 7 states: 0 states: 18446744073709551615
                     delivered_digests: \"0123456789abcdeffedcba9876543210\"
                     standing_bytes: 1099511627776
                     standing_digests: \"0123456789abcdef\"
                     prefixes: 4 prefix_bytes: 1099511627776
                     listings: \"fedcba9876543210\" present: 5 present: 6
                     present_listings: \"0123456789abcdef0123456789abcdef\"
                     present_counts: 2 present_counts: 0 present_files: 7 present_files: 8 }",
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
                            packets: packets(),
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
             streams { child: 2 lag_ns: 3 stream_ns: 1099511627776 packets { bytes: 9 count: 3 first: 2 largest: 4 }
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
            FromPe::Pong(Pong {
                quiet_ms: 0,
                files_quiet_ms: 7,
                counts: Counts {
                    rounds_begun: 1,
                    ..Counts::default()
                },
                ..pong(Doing::Working)
            }),
            "pong { doing: DOING_WORKING counts { rounds_begun: 1 } files_quiet_ms: 7 }",
        ),
        (
            FromPe::Pong(Pong {
                unreached: vec![PeId(9), PeId(1)],
                ..pong(Doing::Idle)
            }),
            "pong { quiet_ms: 1099511627776 unreached: 9 unreached: 1 }",
        ),
        (
            FromPe::Line {
                text: "é".to_owned(),
                shard: "a".into(),
            },
            r#"line { text: "\303\251" shard: "a" }"#,
        ),
        (
            FromPe::Cleared {
                left: "busy".to_owned(),
            },
            r#"cleared { left: "busy" }"#,
        ),
        (
            FromPe::ShardsListed {
                names: vec!["a".into(), "b c".into()],
                sizes: vec![1 << 40, 0],
                results: vec!["a".into()],
                fault: "no".to_owned(),
            },
            r#"shards_listed { names: "a" names: "b c" sizes: 1099511627776 sizes: 0 results: "a"
                fault: "no" }"#,
        ),
        (
            FromPe::ResultsPlaced {
                faults: vec![String::new(), "no".to_owned()],
            },
            r#"results_placed { faults: "" faults: "no" }"#,
        ),
    ];
    let all = all.map(|(word, text)| (word, text.to_owned()));
    let doing = [
        (Doing::Working, "WORKING"),
        (Doing::Sending(PeId(4)), "SENDING peer: 4"),
        (Doing::Receiving(PeId(5)), "RECEIVING peer: 5"),
        (Doing::Listening, "LISTENING"),
    ];
    let pongs = doing.map(|(doing, text)| {
        let text = format!("pong {{ quiet_ms: 1099511627776 doing: DOING_{text} }}");
        (FromPe::Pong(pong(doing)), text)
    });
    let ends = [
        (End::Exited(3), "code: 3"),
        (End::Signalled(9), "signal: 9"),
        (End::Failed("no".to_owned()), r#"failed: "no""#),
    ];
    let ran = ends.map(|(end, text)| (ran(end), format!("ran {{ {text} {RAN} }}")));
    all.into_iter().chain(pongs).chain(ran).collect()
}

fn pong(doing: Doing) -> Pong {
    Pong {
        quiet_ms: 1 << 40,
        files_quiet_ms: 0,
        doing,
        unreached: Vec::new(),
        counts: Counts::default(),
    }
}

/// The result of a command, except for its end.
const RAN: &str = r#"took_ns: 1099511627776 wrote_bytes: 2199023255552
    last_lines: "no such" last_lines: "file" not_taken: "a fifo" shard: "a" kept_output: true"#;

fn ran(end: End) -> FromPe {
    FromPe::Ran(Ran {
        end,
        took_ns: 1 << 40,
        wrote_bytes: 1 << 41,
        last_lines: vec!["no such".to_owned(), "file".to_owned()],
        not_taken: vec!["a fifo".to_owned()],
        shard: "a".into(),
        kept_output: true,
    })
}
