//! Rows 3, 8 and 11: processes that are alive but inactive, and processes that are missing.

use std::net::{TcpListener, TcpStream};

use flitcast_tests::impostor::Stage;
use flitcast_tests::processes::{Process, peak_memory_kib, until};
use flitcast_tests::{hosts, scratch, start};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use rustix::process::Signal;

use crate::deaths::both_guards;
use crate::{alone, beside, endless, failing, served, timed, words};

#[test]
fn row_03_a_pe_is_stopped() {
    let _alone = alone();
    let dir = scratch();
    let [clear, _, _, guarded] = both_guards(&dir);
    let root = clear.clone();
    for ((case, line), pe) in [(clear, 1), (guarded, 6), (root, 0)] {
        let case = format!("SIGSTOP P{pe}, {case}");
        let finished = failing("3", &case, Some(3.5), endless(words(&line)), |running| {
            running.pe(pe).signal(Signal::STOP);
        });
        let cause = format!("error: P{pe} has been silent for 3.0 s\n  where: P{pe}, process ");
        finished.stderr_has(&[&cause, "when: round 1 of the "]);
    }
}

/// A pause shorter than the limit is not a death.
#[test]
fn row_03_a_pe_pauses_and_continues() {
    let _beside = beside();
    let line = "gather --tree kary:2:7 --size 20MiB --link rate=400mbit -vv";
    let mut running = start(words(line));
    running.wait_for(&["P0| ", "message"]);
    timed("3", "SIGSTOP for 1.5 s, then done", None, || {
        let victim = running.pe(1);
        victim.signal(Signal::STOP);
        std::thread::sleep(std::time::Duration::from_millis(1500));
        victim.signal(Signal::CONT);
        running.finish().ok();
    });
}

/// The coordinator cannot kill a PE behind another program. When that program ends, the PE continues
/// and leaves.
#[test]
fn row_03_a_stopped_pe_behind_another_program_leaves() {
    let _alone = alone();
    let dir = scratch();
    // In a separate session, so that signals of the launcher do not reach it.
    let behind = "run = ['sh', '-c', 'exec 3<&0; setsid \"$@\" <&3 & wait', 'sh']";
    dir.put(
        "c.toml",
        hosts(&["", &format!("parent = 'a'\n{behind}"), "parent = 'b'"]),
    );
    let mut running = endless(dir.words("gather --size 400GiB --cluster @/c.toml"));
    let is_it = |it: &Process| it.arguments[0].ends_with("flitcast") && it.pe() == Some(1);
    let victim = running.processes().into_iter().find(is_it);
    let victim = victim.expect("the shell has started it");
    let case = "SIGSTOP behind another program";
    let finished = timed("3", case, Some(3.5), || {
        victim.signal(Signal::STOP);
        running.coordinator_ends()
    });
    finished.fails(1, &["error: P1 b has been silent for 3.0 s"]);
    timed("3", "the other program ends: it leaves", Some(4.0), || {
        until("it has left", || running.processes().is_empty());
    });
}

#[test]
fn row_08_a_peer_never_reads() {
    let _beside = beside();
    let stage = Stage::path(3, 2);
    let line = "scatter --lengths 0,400GiB --format json -v";
    let mut running = start(stage.arguments(line));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let mut edge = impostor.call_parent(&assignment);
    impostor.get_ready(&mut edge, Vec::new());
    running.wait_for(&["triggered"]);
    let relay = running.pe(1);
    let memory = std::thread::spawn(move || {
        // Its peak until its end.
        let mut peak = 0;
        while let Some(kib) = peak_memory_kib(relay.pid as u32) {
            peak = peak.max(kib);
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        peak
    });
    let finished = timed("8", "a peer never reads", Some(10.0), || {
        served(running, impostor)
    });
    let blamed = "error: P2 at 127.0.7.3:";
    let by = " takes nothing from P1 at 127.0.7.2:";
    finished.fails(1, &[blamed, by, "nothing has moved for "]);
    assert_eq!(finished.report().number("/error/pe"), 2);
    let peak = memory.join().expect("it can be read");
    assert!((1..12 << 10).contains(&peak), "the relay had {peak} KiB");
}

/// Returns a socket of the impostor that does not listen.
fn bound(stage: &Stage) -> TcpListener {
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are some");
    bind(&bound, &stage.address()).expect("the loopback has it");
    bound.into()
}

/// Runs a gather in which P1 cannot connect to P0, which has this socket.
fn unreached(stage: &Stage, case: &str, socket: TcpListener, expected: &[&str]) {
    let running = start(stage.arguments("gather --size 1KiB --format json"));
    let finished = timed("11", case, Some(5.0), || {
        let impostor = stage.enter_at(socket);
        impostor.assignment();
        served(running, impostor)
    });
    finished.fails(1, &["error: P1: cannot reach P0 at 127.0.7.1:"]);
    finished.stderr_has(expected);
    assert_eq!(finished.report().value("/error/phase"), "connect");
}

#[test]
fn row_11_a_parent_refuses() {
    let _beside = beside();
    let stage = Stage::path(2, 0);
    let expected = ["refused", "reading the input and connecting"];
    unreached(&stage, "connection refused", bound(&stage), &expected);
}

/// A socket whose queue is full does not answer. It is full before any PE receives its address.
#[test]
fn row_11_a_parent_is_a_black_hole() {
    let _beside = beside();
    let stage = Stage::path(2, 0);
    let hole = bound(&stage);
    listen(&hole, 0).expect("it is bound");
    let address = hole.local_addr().expect("it is bound");
    let _first = TcpStream::connect(address).expect("one is let in");
    unreached(&stage, "black hole", hole, &["timed out"]);
}

#[test]
fn row_11_a_name_is_no_address() {
    let _alone = alone();
    let dir = scratch();
    let text = "name = \"one\"\ncoordinator = \"127.0.0.1\"\n\
        [[pe]]\nname = \"a\"\naddress = \"no.such.host.invalid\"\n";
    dir.put("cluster.toml", text);
    let line = "gather --size 1KiB --cluster @/cluster.toml";
    let finished = timed("11", "bad DNS name", Some(5.0), || dir.run(line));
    finished.fails(2, &["no.such.host.invalid", "cluster.toml:5:"]);
}
