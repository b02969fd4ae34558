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

use super::parts::{counts, packets, register, spans, unkept};

/// Returns all messages of a PE.
pub fn from_pe() -> Vec<FromPe> {
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
        FromPe::FilesSkipped {
            skipped: vec![SkippedFiles {
                message_bytes: 1 << 40,
                files: 2,
                file_bytes: 3,
            }],
        },
        FromPe::Join(Join {
            pe: PeId(3),
            stays: true,
            commands: true,
        }),
        register(),
        FromPe::Ready(Ready {
            message_bytes: vec![0, 1, 1 << 40],
            delivered: vec![DeliveryId(3), DeliveryId(1)],
            standing: vec![DeliveryId(2)],
            made_of: vec![MadeOf {
                entries: 3,
                cold_bytes: 4096,
                packed_bytes: 300_000,
                pack_ns: 900_000,
                unpack_ns: 400_000,
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
            unkept: Box::new(unkept()),
        }),
        FromPe::ProbeResult {
            child: PeId(2),
            exchanges: vec![exchange(65_536, 0), exchange(0, 7)],
        },
        FromPe::FilesMeasured(None),
        FromPe::HostMeasured {
            found: "{}".to_owned(),
        },
        FromPe::FilesMeasured(Some(FileCosts::from_array([1.5; FILE_COSTS]))),
        FromPe::Prepared,
        FromPe::ClockRead { at_ns: 9 },
        FromPe::PrefixesChecked {
            digests: vec![*b"0123456789abcdef"],
        },
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
        FromPe::Progress {
            round: RoundId(3),
            bytes: 500,
        },
        FromPe::Fault {
            round: RoundId(3),
            peer: Some(PeId(2)),
            reason: "gone".to_owned(),
            bad_input: false,
            output_stands: true,
            hung_up: false,
            changed: Vec::new(),
        },
        FromPe::Fault {
            round: RoundId(3),
            peer: None,
            reason: "no such file".to_owned(),
            bad_input: true,
            output_stands: false,
            hung_up: false,
            changed: vec![MessageId(3), MessageId(1 << 40)],
        },
        FromPe::Pong(Pong {
            quiet_ms: 0,
            files_quiet_ms: 7,
            counts: Counts {
                rounds_begun: 1,
                ..Counts::default()
            },
            ..pong(Doing::Working)
        }),
        FromPe::Pong(Pong {
            unreached: vec![PeId(9), PeId(1)],
            ..pong(Doing::Idle)
        }),
        FromPe::Line {
            text: "é".to_owned(),
            shard: "a".into(),
        },
        FromPe::Cleared {
            left: "busy".to_owned(),
        },
        FromPe::ShardsListed {
            names: vec!["a".into(), "b c".into()],
            sizes: vec![1 << 40, 0],
            results: vec!["a".into()],
            fault: "no".to_owned(),
        },
        FromPe::ResultsPlaced {
            faults: vec![String::new(), "no".to_owned()],
        },
    ];
    let doing = [
        Doing::Working,
        Doing::Sending(PeId(4)),
        Doing::Receiving(PeId(5)),
        Doing::Listening,
    ];
    let pongs = doing.map(|doing| FromPe::Pong(pong(doing)));
    let ends = [
        End::Exited(3),
        End::Signalled(9),
        End::Failed("no".to_owned()),
    ];
    all.into_iter().chain(pongs).chain(ends.map(ran)).collect()
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
