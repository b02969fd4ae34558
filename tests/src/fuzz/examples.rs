//! Valid inputs from which fuzzing starts.

#![allow(
    clippy::needless_update,
    reason = "a field that a message gets later needs no new example"
)]

use flitcast_proto::items::{Control, Message};
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::wire::admission::{Admission, IssuedCredentials};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::seal::FrameSealer;
use flitcast_proto::wire::{LENGTH_BYTES, Secret, flit, pb};
use flitcast_proto::{PeId, RoundId, Time};
use pb::control::Kind;
use prost::Message as _;

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn bodies(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let body = |frame: Vec<u8>| frame[LENGTH_BYTES..].to_vec();
    frames.into_iter().map(body).collect()
}

fn edge_frames() -> Vec<Vec<u8>> {
    let certificate = Control::Certificate(Certificate {
        lag: 300,
        stream: 70_000,
        bytes: 1 << 40,
    });
    let items = [
        Control::Token,
        Control::Wakeup { after: 1 },
        Control::Order { after: 1 << 33 },
        certificate,
        Control::Receipt,
    ];
    let round = RoundId(3);
    let mut frames: Vec<EdgeFrame> = Vec::new();
    frames.extend(items.map(|item| EdgeFrame::Control { round, item }));
    let at = Time(1 << 50);
    frames.push(EdgeFrame::Departed { at, joins: true });
    let hello = pb::Frame {
        kind: Some(pb::frame::Kind::Hello(pb::Hello {
            cluster: u64::MAX,
            secret: vec![7; 32].into(),
            pe: 5,
            min_version: 1,
            max_version: 2,
            lane: 3,
            ..Default::default()
        })),
        ..Default::default()
    };
    let put = |frame: EdgeFrame| {
        let mut out = Vec::new();
        frame.put(&mut out);
        out
    };
    let hello = hello.encode_to_vec();
    let prefix = (hello.len() as u32).to_be_bytes();
    let hello = [&prefix[..], &hello].concat();
    frames.into_iter().map(put).chain([hello]).collect()
}

fn flit_frames() -> Vec<Vec<u8>> {
    let message = Message::between(PeId(4), PeId::ROOT, 100_000);
    let head = Some((RoundId(9), message));
    let kinds = [
        (head, None),
        (None, None),
        (None, Some(&[9; 16])),
        (head, Some(&[9; 16])),
    ];
    let put = |(head, digest): (_, Option<&flit::Digest>)| {
        let payload = b"thirty bytes of some payload!!";
        let mut out = Vec::new();
        flit::put_prefix(head, digest, payload.len(), &mut out);
        out.extend_from_slice(payload);
        out
    };
    kinds.into_iter().map(put).collect()
}

pub(super) fn edge() -> Vec<Vec<u8>> {
    bodies(edge_frames())
}

pub(super) fn flits() -> Vec<Vec<u8>> {
    bodies(flit_frames())
}

pub(super) fn frames() -> Vec<Vec<u8>> {
    let all: Vec<_> = edge_frames().into_iter().chain(flit_frames()).collect();
    let mut streams = all.clone();
    streams.push(all.concat());
    streams
}

pub(super) fn sealed() -> Vec<Vec<u8>> {
    let mut sealer = FrameSealer::default();
    let all = edge_frames();
    let first = sealer.sealed(&all[0]);
    let mut stream = first.repeat(2);
    stream.extend(all[1..].iter().flat_map(|frame| sealer.sealed(frame)));
    vec![first, stream]
}

/// Returns messages between PEs and the coordinator.
pub(super) fn control() -> Vec<Vec<u8>> {
    let link = pb::Link {
        latency_ns: 1e4,
        ns_per_byte: 0.5,
        burst_bytes: 4096.0,
        ..Default::default()
    };
    let assignment = pb::Assignment {
        version: 2,
        // P4 is absent.
        parents: vec![0, 0, 1, 4],
        left_out: vec![1],
        parent_listen: "127.0.0.1:4711".to_owned(),
        collective: pb::Collective::Gather.into(),
        flit_bytes: 65_536,
        links: vec![pb::ShapedEdge {
            child: 2,
            down: Some(link),
            up: Some(link),
            ..Default::default()
        }],
        lanes: vec![pb::Lane {
            parents: vec![0, 1, 2, 4],
            parent_listen: "127.0.0.2:4711".to_owned(),
            ..Default::default()
        }],
        payload: Some(pb::assignment::Payload::Synthetic(pb::SyntheticPayload {
            lengths: vec![1, 0, 1 << 40, 0],
            ..Default::default()
        })),
        ..Default::default()
    };
    let files = pb::Assignment {
        payload: Some(pb::assignment::Payload::Files(pb::FilePayload {
            input: b"in/../x".to_vec().into(),
            output: b"/out".to_vec().into(),
            ..Default::default()
        })),
        versions: vec![pb::Version {
            message: 3,
            bytes: 9,
            state: 1,
            digest: vec![7; 16].into(),
            ..Default::default()
        }],
        ..assignment.clone()
    };
    let message = |id: u32, bytes| pb::Message {
        id: id.into(),
        destination: Some(id),
        bytes,
        ..Default::default()
    };
    let prepare = pb::Prepare {
        schedule: Some(pb::PeSchedule {
            collective: pb::Collective::Scatter.into(),
            role: pb::Role::StaticSchedule.into(),
            parts: 1,
            flit_bytes: 65_536,
            pace: Some(pb::Pace {
                pacing: pb::Pacing::Turns.into(),
                control_ns: 5,
                up: Some(pb::Passage {
                    ns_per_byte: 0.25,
                    flit_bytes: 65_536,
                    ..Default::default()
                }),
                below: vec![pb::ChildPace::default()],
                ..Default::default()
            }),
            sends: vec![message(3, 70_000), message(1, 1)],
            receives: vec![message(2, 1 << 40)],
            subtree_messages: 2,
            child_messages: vec![1, 0],
            child_ranks: vec![1, 0],
            hops: vec![pb::ScheduledHop {
                message: 3,
                flits: 2,
                to: 1,
                first_step: 1,
                ..Default::default()
            }],
            ..Default::default()
        }),
        prefixes: vec![3],
        prefix_bytes: vec![1 << 30],
        rounds: 3,
        lanes: vec![pb::PeSchedule {
            collective: pb::Collective::Scatter.into(),
            role: pb::Role::StaticSchedule.into(),
            parts: 1,
            flit_bytes: 65_536,
            pace: Some(pb::Pace::default()),
            ..Default::default()
        }],
    };
    let counts = pb::Counts {
        edges: vec![pb::EdgeCounts {
            peer: 2,
            received_bytes: 1 << 40,
            sent_flits: 9,
            ..Default::default()
        }],
        rounds_begun: 3,
        slip_ns: 70_000,
        resident_bytes: 8 << 20,
        ..Default::default()
    };
    let pong = pb::Pong {
        quiet_ms: 400,
        files_quiet_ms: 70_000,
        doing: pb::pong::Doing::Receiving.into(),
        peer: 2,
        unreached: vec![2],
        counts: Some(counts.clone()),
        ..Default::default()
    };
    let report = pb::Report {
        counts: Some(counts),
        round: 3,
        complete: true,
        arrivals: vec![pb::Arrival {
            source: 4,
            bytes_total: 100,
            ..Default::default()
        }],
        digests: vec![7; 16].into(),
        own_start: Some(pb::OwnStart {
            due_ns: 5,
            began_ns: 6,
            ..Default::default()
        }),
        order: Some(pb::TransmitOrder {
            after_ns: 7,
            at_ns: 8,
            ..Default::default()
        }),
        streams: vec![pb::ChildStream {
            child: 2,
            lag_ns: 9,
            ..Default::default()
        }],
        ..Default::default()
    };
    let register = pb::Register {
        cluster: 7,
        pe: 3,
        min_version: 1,
        max_version: 2,
        listen: "[::1]:4711".to_owned(),
        secret: vec![7; 32].into(),
        pid: 4711,
        ..Default::default()
    };
    let fault = pb::Fault {
        round: 2,
        peer: Some(3),
        reason: "P3 closed the connection".to_owned(),
        changed: vec![2],
        ..Default::default()
    };
    let abort = pb::Abort {
        round: 2,
        reason: "P3 died".to_owned(),
    };
    let kinds = [
        Kind::Assignment(assignment),
        Kind::Assignment(files),
        Kind::Prepare(prepare),
        Kind::Report(report),
        Kind::Pong(pong),
        Kind::Register(register),
        Kind::Fault(fault),
        Kind::Abort(abort),
        Kind::Stop(pb::Stop { over: true }),
        Kind::ReadClock(pb::ReadClock {}),
        Kind::ClockRead(pb::ClockRead { at_ns: 9 }),
        Kind::Trigger(pb::Trigger { round: 4, at_ns: 5 }),
        Kind::Collect(pb::Collect { round: 4 }),
        Kind::Ready(pb::Ready {
            message_bytes: vec![1, 0, 1 << 40],
            made_of: vec![pb::MadeOf {
                entries: 3,
                cold_bytes: 4096,
            }],
            file_system: 65_024,
            states: vec![1, 0, 2],
            delivered: vec![3],
            delivered_digests: vec![7; 16].into(),
            prefixes: vec![1],
            prefix_bytes: vec![1 << 30],
            ..Default::default()
        }),
        Kind::FilesMeasured(pb::FilesMeasured {
            costs: vec![1.5; 11],
        }),
        Kind::CheckPrefixes(pb::CheckPrefixes {
            messages: vec![3, 1],
            bytes: vec![70, 1 << 40],
        }),
        Kind::PrefixesChecked(pb::PrefixesChecked {
            digests: vec![7; 32].into(),
        }),
        Kind::MeasureHost(pb::MeasureHost { encrypted: true }),
        Kind::HostMeasured(pb::HostMeasured {
            found: "{\"rounds\": 3}".to_owned(),
        }),
        Kind::Run(pb::Run {
            words: vec![b"wc".to_vec().into(), b"-w".to_vec().into()],
            work: b"/tmp/.flitcast-map-7".to_vec().into(),
            pes: 8,
            time_limit_ns: 3_000_000_000,
        }),
        Kind::Line(pb::Line {
            text: "no such file".to_owned(),
        }),
        Kind::Ran(pb::Ran {
            end: Some(pb::ran::End::Code(3)),
            took_ns: 1_000_000,
            wrote_bytes: 42,
            last_lines: vec!["no such file".to_owned()],
            not_taken: vec!["`pipe` is a fifo".to_owned()],
        }),
        Kind::Clear(pb::Clear {
            work: b"/tmp/.flitcast-map-7".to_vec().into(),
        }),
        Kind::Cleared(pb::Cleared {
            left: "busy".to_owned(),
        }),
    ];
    let body = |kind| pb::Control { kind: Some(kind) }.encode_to_vec();
    kinds.into_iter().map(body).collect()
}

pub(super) fn admissions() -> Vec<Vec<u8>> {
    let issued = IssuedCredentials {
        authority: vec![0x30, 1].into(),
        certificate: vec![0x30, 2].into(),
        key: vec![0x30, 3].into(),
    };
    let admission = |credentials| Admission {
        cluster: 7,
        secret: Secret::new([9; Secret::BYTES]),
        credentials,
    };
    vec![admission(None).written(), admission(Some(issued)).written()]
}

pub(super) fn tree_files() -> Vec<Vec<u8>> {
    texts(&[
        "parents = [0, 0, 1]\n",
        "root = 0\n[[pe]]\nid = 0\n[[pe]]\nid = 1\nparent = 0\n",
        "parents = [0, 1]\n[[edges]]\nchild = 1\nrate = \"1mbit\"\nlatency = \"3ms\"\n",
        "parents = [2, 1]\n",
        "[[pe]]\nid = 1\nparent = 5\n[[pe]]\nid = 1\n",
    ])
}

pub(super) fn cluster_files() -> Vec<Vec<u8>> {
    texts(&[
        "name = \"two\"\ncoordinator = \"127.0.0.1\"\n[launch]\nkind = \"local\"\n\
         [[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\nrun = [\"env\", \"-i\"]\n\
         [[pe]]\nname = \"b\"\naddress = \"127.0.0.2\"\nparent = \"a\"\n\
         parent_address = \"127.0.0.3\"\n",
        "[[pe]]\nname = \"a\"\n[[pe]]\nname = \"a\"\nparent = \"c\"\n",
        "link = \"rate=1mbit,latency=1ms\"\n[security]\ncredentials = \"keys\"\n\
         [timeouts]\nsilence = \"5s\"\n[network]\nedges = [[\"a\", \"ä\"]]\n\
         [[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\n\
         [[pe]]\nname = \"ä\"\naddress = \"127.0.0.2\"\nlink = \"rate=1mbit\"\n",
    ])
}

pub(super) fn edge_files() -> Vec<Vec<u8>> {
    texts(&["0 1\n1 2\n# three\n0 2\n", "0 0\n7\n", "0 4294967296\n"])
}

pub(super) fn lengths() -> Vec<Vec<u8>> {
    texts(&[
        "1,2,3KiB,0,5MB",
        "uniform:1KiB..3MiB:7",
        "equal:64KiB",
        "ramp:10",
        "onebig:1GiB",
        "halfnull:3",
        "uniform:0..18446744073709551615:0",
    ])
}

pub(super) fn links() -> Vec<Vec<u8>> {
    texts(&[
        "rate=200mbit,latency=1ms",
        "latency=3us",
        "rate=unlimited",
        "rate=1.5gbit",
    ])
}

pub(super) fn records() -> Vec<Vec<u8>> {
    let text = "version = 2\nundertaking = \"00000000000000ab\"\noperation = \"gather\"\nalgorithm = \"certification\"\n\
        sync = \"serial\"\npacing = \"turns\"\ntree = \"path:4\"\nparents = [0, 1, 2]\n\
        network = \"ring:4\"\nnodes = [0, 1, 2, 3]\nflit_bytes = 65536\n\
        timeouts = \"silence=5s\"\ninput = \"/in\"\noutput = \"/out\"\nspread = false\n\
        bytes = [1, 0, 7]\ndelivered = [3]\n[[link]]\npe = 1\ndown = \"rate=1mbit\"\n\
        up = \"latency=1ms\"\n[[dead]]\npe = 2\nwhy = \"silent\"\n";
    vec![text.into()]
}
