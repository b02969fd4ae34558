//! Rows 3, 8 and 11: processes that are alive but inactive, and processes that are missing.

use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use flitcast_tests::impostor::Stage;
use flitcast_tests::processes::eventually;
use flitcast_tests::{run, scratch, start};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use rustix::process::Signal;

use crate::{alone, beside, endless, failing, measured, words};

#[test]
fn row_03_a_pe_is_stopped() {
    let _alone = alone();
    for (line, pe) in [
        ("gather --tree kary:2:7 --size 400GiB", 1),
        ("scatter --tree kary:2:7 --size 400GiB", 6),
        ("gather --tree path:4 --size 400GiB", 0),
    ] {
        let case = format!("SIGSTOP P{pe}, {}", &line[..7].trim());
        let finished = failing("3", &case, Some(3.5), endless(words(line)), |running| {
            running.pe(pe).signal(Signal::STOP);
        });
        let cause = format!("error: P{pe} has been silent for 3.0 s\n  where: P{pe}, process ");
        finished.says(&[&cause, "when: round 1 of the "]);
    }
}

/// A pause shorter than the limit is not a death.
#[test]
fn row_03_a_pe_pauses_and_goes_on() {
    let _beside = beside();
    let line = "gather --tree kary:2:7 --size 20MiB --link rate=400mbit -vv";
    let mut running = start(words(line));
    running.wait_for(&["P0| ", "message"]);
    let began = Instant::now();
    let victim = running.pe(1);
    victim.signal(Signal::STOP);
    std::thread::sleep(std::time::Duration::from_millis(1500));
    victim.signal(Signal::CONT);
    running.finish().ok();
    measured("3", "SIGSTOP for 1.5 s, then done", None, began.elapsed());
}

/// The coordinator cannot kill a PE behind another program. When that program ends, the PE continues
/// and leaves.
#[test]
fn row_03_a_stopped_pe_behind_another_program_leaves() {
    let _alone = alone();
    let dir = scratch();
    let file = dir.path().join("cluster.toml");
    // In a separate session, so that signals of the launcher do not reach it.
    let text = "name = \"three\"\ncoordinator = \"127.0.0.1\"\n\
        [[pe]]\nname = \"a\"\naddress = \"127.0.1.1\"\n\
        [[pe]]\nname = \"b\"\naddress = \"127.0.2.1\"\nparent = \"a\"\n\
        run = [\"sh\", \"-c\", \"exec 3<&0; setsid \\\"$@\\\" <&3 & wait\", \"sh\"]\n\
        [[pe]]\nname = \"c\"\naddress = \"127.0.3.1\"\nparent = \"b\"\n";
    std::fs::write(&file, text).expect("it can be written");
    let line = format!("gather --size 400GiB --cluster {}", file.display());
    let mut running = endless(words(&line));
    let victim = running
        .processes()
        .into_iter()
        .find(|process| process.arguments[0].ends_with("flitcast") && process.pe() == Some(1))
        .expect("the shell has started it");
    let began = Instant::now();
    victim.signal(Signal::STOP);
    let finished = running.coordinator_ends();
    measured(
        "3",
        "SIGSTOP behind another program",
        Some(3.5),
        began.elapsed(),
    );
    finished.fails(1, &["error: P1 has been silent for 3.0 s"]);
    let began = Instant::now();
    eventually("it has left", || {
        running.processes().is_empty().then_some(())
    });
    measured(
        "3",
        "the end of the other program: it leaves",
        Some(4.0),
        began.elapsed(),
    );
}

#[test]
fn row_08_a_peer_never_reads() {
    let _alone = alone();
    let stage = Stage::path(3, 2);
    let line = "scatter --lengths 0,400GiB --format json -v";
    let mut running = start(stage.arguments(line));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let mut edge = impostor.call_parent(&assignment);
    impostor.get_ready(&mut edge, Vec::new());
    running.wait_for(&["triggered"]);
    let began = Instant::now();
    let relay = running.pe(1);
    let memory = std::thread::spawn(move || {
        // Its peak until its end.
        let mut peak = 0;
        while let Ok(status) = std::fs::read_to_string(format!("/proc/{}/status", relay.pid)) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
            peak = peak.max(kib.unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        peak
    });
    let impostor = std::thread::spawn(move || impostor.serve());
    let finished = running.finish();
    measured("8", "a peer never reads", Some(10.0), began.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = [
        "error: P2 at 127.0.7.3:",
        " takes nothing from P1 at 127.0.7.2:",
        "nothing has moved for ",
    ];
    finished.says(&told);
    assert_eq!(finished.report().number("/error/pe"), 2);
    let peak = memory.join().expect("it can be read");
    assert!((1..24 << 10).contains(&peak), "the relay had {peak} KiB");
    impostor.join().expect("it can be played");
}

/// Returns a socket of the impostor that does not listen.
fn bound(stage: &Stage) -> TcpListener {
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).expect("there are some");
    bind(&bound, &stage.address()).expect("the loopback has it");
    bound.into()
}

#[test]
fn row_11_a_parent_refuses() {
    let _alone = alone();
    let stage = Stage::path(2, 0);
    let running = start(stage.arguments("gather --size 1KiB --format json"));
    let began = Instant::now();
    let impostor = stage.enter_at(bound(&stage));
    let impostor = std::thread::spawn(move || {
        let _ = impostor.assignment();
        impostor.serve();
    });
    let finished = running.finish();
    measured("11", "connection refused", Some(5.0), began.elapsed());
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let told = [
        "error: P1: cannot reach P0 at 127.0.7.1:",
        "refused",
        "reading the input and connecting",
    ];
    finished.says(&told);
    assert_eq!(finished.report().value("/error/phase"), "connect");
    impostor.join().expect("it can be played");
}

/// A socket whose queue is full does not answer. It is full before any PE receives its address.
#[test]
fn row_11_a_parent_is_a_black_hole() {
    let _alone = alone();
    let stage = Stage::path(2, 0);
    let hole = bound(&stage);
    listen(&hole, 0).expect("it is bound");
    let address = hole.local_addr().expect("it is bound");
    let _first = TcpStream::connect(address).expect("one is let in");
    let running = start(stage.arguments("gather --size 1KiB"));
    let began = Instant::now();
    let impostor = stage.enter_at(hole);
    let impostor = std::thread::spawn(move || {
        let _ = impostor.assignment();
        impostor.serve();
    });
    let finished = running.finish();
    measured("11", "black hole", Some(5.0), began.elapsed());
    finished.fails(
        1,
        &["error: P1: cannot reach P0 at 127.0.7.1:", "timed out"],
    );
    impostor.join().expect("it can be played");
}

#[test]
fn row_11_a_name_is_no_address() {
    let _alone = alone();
    let dir = scratch();
    let file = dir.path().join("cluster.toml");
    let text = "name = \"one\"\ncoordinator = \"127.0.0.1\"\n\
        [[pe]]\nname = \"a\"\naddress = \"no.such.host.invalid\"\n";
    std::fs::write(&file, text).expect("it can be written");
    let began = Instant::now();
    let finished = run(words(&format!(
        "gather --size 1KiB --cluster {}",
        file.display()
    )));
    measured("11", "bad DNS name", Some(5.0), began.elapsed());
    finished.fails(2, &["no.such.host.invalid", "cluster.toml:5:"]);
}
