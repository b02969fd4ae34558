//! Memory that an authenticated peer can claim: a small multiple of the bytes that it sends.

use std::net::TcpListener;

use flitcast_proto::wire::control::{FromPe, Report};
use flitcast_proto::wire::{max_frame_of_pe, pb};
use flitcast_proto::{PeId, RoundId};
use flitcast_tests::impostor::Stage;
use flitcast_tests::joining::dismiss;
use flitcast_tests::processes::peak_memory_kib;
use flitcast_tests::start;
use flitcast_tests::stranger::Stranger;
use pb::control::Kind;
use prost::Message as _;

/// Bytes of each frame that claims memory.
const SENT_BYTES: usize = 10 << 20;
/// Memory of a PE that decodes one of them: the frame, four bytes for each of its bytes, and the
/// process itself.
const MEMORY_KIB: u64 = 160 << 10;

/// Returns `count` elements that have two bytes on the wire each.
fn empty<T: Clone + Default>() -> Vec<T> {
    vec![T::default(); SENT_BYTES / 2]
}

fn body(kind: Kind) -> Vec<u8> {
    pb::Control { kind: Some(kind) }.encode_to_vec()
}

#[test]
fn a_pe_that_joined_takes_no_more_memory_than_its_coordinator_sends() {
    let assignment = |it| body(Kind::Assignment(it));
    let schedule = Some(pb::PeSchedule {
        hops: empty(),
        ..Default::default()
    });
    let bodies = [
        assignment(pb::Assignment {
            lanes: empty(),
            ..Default::default()
        }),
        assignment(pb::Assignment {
            peers: empty(),
            ..Default::default()
        }),
        assignment(pb::Assignment {
            parents: vec![0; SENT_BYTES],
            ..Default::default()
        }),
        body(Kind::Prepare(pb::Prepare {
            schedule,
            ..Default::default()
        })),
    ];
    // Listens before the PE connects, which waits for its welcome.
    let listener = TcpListener::bind("127.0.0.1:0").expect("it can");
    let at = listener.local_addr().expect("it listens");
    let node = start(format!("node --pe 1 --join {at} --insecure --stay").split(' '));
    for body in bodies {
        let mut stranger = Stranger::welcome(&listener);
        stranger.send_body(&body);
    }
    // The PE joins again.
    drop(Stranger::welcome(&listener));
    let peak = peak_memory_kib(node.pid()).expect("it lives");
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    dismiss(vec![node]);
}

/// The message is not expected, so the coordinator describes it while it has all of it.
#[test]
fn a_coordinator_takes_no_more_memory_than_its_pes_can_have_to_report() {
    let of = |arrivals| {
        body(Kind::Report(pb::Report {
            arrivals: vec![pb::Arrival::default(); arrivals],
            ..Default::default()
        }))
    };
    let most = max_frame_of_pe(2);
    let mut few = Vec::new();
    let report = Report::blank(RoundId(1), Vec::new());
    FromPe::Report(report).put(&mut few);
    let too_long = format!("bytes is announced; the limit is {most}");
    for (body, why) in [
        (of(most), &too_long[..]),
        (of(most / 2 - 10), "its lists would take more than the "),
        (few.split_off(4), "P1: unexpected message: Report"),
    ] {
        let stage = Stage::path(2, 1);
        let line = "gather --algorithm shoulder-tap --size 0";
        let running = start(stage.arguments(line));
        let impostor = stage.enter();
        assert_eq!(impostor.pe, PeId(1));
        let assignment = impostor.assignment();
        let _parent = impostor.call_parent(&assignment);
        impostor.send_body(&body);
        // The process continues: the coordinator evaluates the message, not the end of the process.
        let failed = running.finish();
        failed.fails(1, &[why, "P1"]);
        assert!(failed.stderr.len() < 4_000, "{}", failed.stderr.len());
    }
}
