//! Rows 14 to 17, 19, 21 and 22: messages that no correct PE sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use flitcast_proto::items::Control;
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::seal::HEAD_BYTES;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_VERSION, MIN_VERSION, Secret, flit};
use flitcast_proto::{PeId, RoundId};
use flitcast_tests::edge::{Edge, is_flit, written};
use flitcast_tests::impostor::Stage;
use flitcast_tests::processes::peak_memory_kib;
use flitcast_tests::relay::{OnUp, relay};
use flitcast_tests::{Finished, start};

use crate::{alone, beside, measured, served, timed};

/// Runs a gather of a message of P2 over P0 - P1 - P2, in which P1 forwards the frames from P2 as
/// `on_up` changes them.
#[track_caller]
pub fn gather_through(line: &str, on_up: OnUp) -> (Finished, Duration) {
    let stage = Stage::path(3, 1);
    let line = format!("gather {line} --format json -v");
    let mut running = start(stage.arguments(&line));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let mut parent = impostor.call_parent(&assignment);
    let child = impostor.accept_child();
    impostor.get_ready(&mut parent, vec![0]);
    relay(parent, child, on_up);
    running.wait_for(&["triggered"]);
    let began = Instant::now();
    let finished = served(running, impostor);
    (finished, began.elapsed())
}

/// The message in frames of 4 KiB: the first flit has the head, the last the digest.
pub const FLITS: &str = "--algorithm shoulder-tap --lengths 0,10000 --flit-size 4000B";

#[test]
fn row_14_one_bit_is_flipped() {
    let _beside = beside();
    // Bits in the payload of the first flit, and in all of the bytes before it: one of 29, which
    // covers all positions in a byte. (`wire/seal.rs` has its own test, of every bit.)
    let mut prefix = Vec::new();
    let message = flitcast_proto::items::Message::between(PeId(2), PeId::ROOT, 10_000);
    flit::put_prefix(Some((RoundId(1), message)), None, 4000, &mut prefix);
    let header = prefix.len() - LENGTH_BYTES + HEAD_BYTES;
    // The checksum covers the start of the payload; the digest covers the rest.
    let digested = 12_345..;
    let mut slowest = [Duration::ZERO; 2];
    let of_header = (0..header * 8).step_by(29).map(|bit| (bit, false));
    let of_payload = [0, 1, 12_345, 31_999];
    let of_payload = of_payload.map(|bit| (header * 8 + bit, digested.contains(&bit)));
    for (bit, is_payload) in of_header.chain(of_payload) {
        let flip = OnUp::one_frame(true, 0, move |frame| {
            frame[bit / 8] ^= 1 << (bit % 8);
            true
        });
        let (finished, took) = gather_through(FLITS, flip);
        let expected = ["error: P0: ", "not gathered: P2, ", "delivered: nothing"];
        finished.fails(1, &expected);
        let announced = "bytes is announced; the limit";
        match is_payload {
            true => finished.stderr_has(&["the message of P2 is damaged"]),
            // There is no wait for an invalid length.
            false if bit < LENGTH_BYTES * 8 && finished.stderr.contains(announced) => {}
            false => finished.stderr_has(&["P1 at 127.", "the checksum of a frame is wrong"]),
        }
        let slowest = &mut slowest[usize::from(is_payload)];
        *slowest = took.max(*slowest);
    }
    let [header, payload] = slowest;
    measured("14", "a flipped bit, any of the header", Some(1.0), header);
    measured("14", "a flipped bit in the payload", Some(1.0), payload);
}

/// In the certificate of the second round: in its seal, and in the round's number, which could
/// otherwise become that of an earlier round.
#[test]
fn row_14_one_bit_of_a_control_item_is_flipped() {
    let _beside = beside();
    let mut slowest = Duration::ZERO;
    for bit in (LENGTH_BYTES * 8..).step_by(37).take(5) {
        let line = "--algorithm certification --lengths 0,10000 --rounds 2";
        let flip = OnUp::one_frame(false, 1, move |frame| {
            assert!(frame.len() * 8 > bit, "{} bytes", frame.len());
            frame[bit / 8] ^= 1 << (bit % 8);
            true
        });
        let (finished, took) = gather_through(line, flip);
        finished.fails(1, &["round 2 of the ", "the checksum of a frame is wrong"]);
        slowest = took.max(slowest);
    }
    measured("14", "a flipped bit in a control item", Some(1.0), slowest);
}

#[test]
fn row_15_a_frame_is_cut_off() {
    let _beside = beside();
    let cut = OnUp::one_frame(true, 0, |frame| {
        frame.truncate(512);
        false
    });
    let (finished, took) = gather_through(FLITS, cut);
    measured("15", "a truncated frame, then FIN", Some(1.0), took);
    let expected = "closed the connection inside a frame, 512 of 40";
    finished.fails(
        1,
        &["error: P0: P1 at 127.", expected, "delivered: nothing"],
    );
}

#[test]
fn row_16_a_frame_declares_four_gibibytes() {
    let _beside = beside();
    let longest = OnUp::one_frame(true, 0, |frame| {
        frame[..LENGTH_BYTES].fill(0xFF);
        true
    });
    let (finished, took) = gather_through(FLITS, longest);
    measured("16", "a length of 0xFFFFFFFF", Some(1.0), took);
    let expected = "a frame of 4294967295 bytes is announced; the limit is ";
    finished.fails(1, &[expected]);
}

/// At P0 and at P2, in all of their roles in a gather. The storm doubles the frames of every algorithm.
#[test]
fn row_21_every_frame_arrives_twice() {
    let _beside = beside();
    for line in [FLITS, "--algorithm certification --lengths 0,100000"] {
        let (finished, took) = gather_through(&format!("{line} --rounds 2"), OnUp::Twice);
        measured("21", "every frame twice, then done", None, took);
        let report = finished.ok().report();
        report.assert_all_arrived();
        // In each round a call or a certificate, an order, the flits of the message, its receipt.
        let dropped = report.number("/round/repeated_frames");
        assert!(dropped >= 8, "{dropped}");
    }
}

/// In the second round, all frames of the first are repeated.
#[test]
fn row_22_frames_of_an_old_round_are_dropped() {
    let _beside = beside();
    let mut first = Vec::new();
    let mut replayed = false;
    let replay = OnUp::Frames(Box::new(move |frame| {
        if first.len() < 3 && is_flit(&frame) {
            first.push(frame.clone());
            return vec![frame];
        }
        if !is_flit(&frame) || std::mem::replace(&mut replayed, true) {
            return vec![frame];
        }
        let (round, item) = (RoundId(1), Control::Receipt);
        let mut frames = vec![written(&EdgeFrame::Control { round, item })];
        frames.append(&mut first);
        frames.push(frame);
        frames
    }));
    let line = &format!("{FLITS} --rounds 2");
    let (finished, took) = gather_through(line, replay);
    measured("22", "frames of an old round, then done", None, took);
    let report = finished.ok().report();
    report.assert_all_arrived();
    assert_eq!(report.number("/round/late_frames"), 4);
}

/// Runs `visit` as an unauthenticated client of P0's listener, while P0 waits for P1.
#[track_caller]
fn with_strangers(row: &str, case: &str, bound: Option<f64>, visit: impl FnOnce(&str, i32)) {
    let stage = Stage::path(2, 1);
    let running = start(stage.arguments("gather --algorithm shoulder-tap --size 0 --format json"));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let address = assignment.parent_listen.clone().expect("it has a parent");
    let pid = running.pe(0).pid;
    timed(row, case, bound, || visit(&address, pid));
    // Authorized processes are accepted afterwards.
    let mut edge = impostor.call_parent(&assignment);
    impostor.get_ready(&mut edge, vec![0]);
    served(running, impostor).ok();
}

/// Waits until the other end has hung up.
#[track_caller]
pub fn hung_up(stream: &mut TcpStream) {
    let read = stream.read(&mut [0; 100]);
    assert!(matches!(read, Ok(0) | Err(_)), "it was answered");
}

#[test]
fn row_17_a_thousand_declare_the_maximum() {
    let _alone = alone();
    let case = "1,000 connections declare the maximum";
    with_strangers("17", case, Some(2.0), |address, pid| {
        let declaring = |_| {
            let mut stranger = TcpStream::connect(address).expect("it listens");
            let sent = stranger.write_all(&[0xFF; LENGTH_BYTES]);
            sent.expect("it is open");
            stranger
        };
        let mut strangers: Vec<TcpStream> = (0..1000).map(declaring).collect();
        strangers.iter_mut().for_each(hung_up);
        let kib = peak_memory_kib(pid as u32).expect("it lives");
        assert!(kib < 12 << 10, "{kib} KiB");
    });
}

#[test]
fn row_19_a_handshake_takes_forever() {
    let _beside = beside();
    with_strangers("19", "a byte a second", Some(2.0), |address, _| {
        let mut stranger = TcpStream::connect(address).expect("it listens");
        let mut drip = stranger.try_clone().expect("it can be");
        std::thread::spawn(move || {
            // The length of a Hello, and then the Hello.
            for byte in [0, 0, 0, 20, 10, 18] {
                if drip.write_all(&[byte]).is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        hung_up(&mut stranger);
    });
    with_strangers("19", "a flood of empty frames", Some(2.0), |address, _| {
        let mut stranger = TcpStream::connect(address).expect("it listens");
        let _ = stranger.write_all(&[0; 400_000]);
        hung_up(&mut stranger);
    });
}

#[test]
fn row_22_another_cluster_is_turned_away() {
    let _beside = beside();
    with_strangers("22", "a PE of another cluster", None, |address, _| {
        let mut stranger = TcpStream::connect(address).expect("it listens");
        let hello = EdgeFrame::Hello(Hello {
            cluster: 1,
            pe: PeId(1),
            min_version: MIN_VERSION,
            max_version: MAX_VERSION,
            secret: Secret::new([0; Secret::BYTES]),
            lane: 0,
        });
        Edge::new(stranger.try_clone().expect("it can be")).send(&hello);
        hung_up(&mut stranger);
    });
}
