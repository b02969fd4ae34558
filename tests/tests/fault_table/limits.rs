//! Rows 12 and 18: descriptors, and unknown fields.

use std::io::Read as _;
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use flitcast_proto::wire::LENGTH_BYTES;
use flitcast_tests::crowd::Crowd;
use flitcast_tests::edge::is_flit;
use flitcast_tests::impostor::Stage;
use flitcast_tests::joining::{Joining, leave};
use flitcast_tests::processes::{Process, descriptors, eventually, listener_of, until};
use flitcast_tests::relay::OnUp;
use flitcast_tests::run::{begin, run_program};
use flitcast_tests::{flitcast, start};

use crate::hostile::{FLITS, gather_through};
use crate::{alone, beside, measured, served, timed};

/// Returns `flitcast` with limits that a shell sets.
fn limited(limits: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]);
    command.arg(flitcast());
    command
}

#[test]
fn row_12_too_few_descriptors() {
    let _alone = alone();
    let mut command = limited("ulimit -Sn 60; ulimit -Hn 60");
    command.args(["scatter", "--tree", "star:30", "--size", "1KiB"]);
    let failed = timed("12", "too few descriptors", Some(1.0), || {
        run_program(&mut command)
    });
    let expected = "122 file descriptors are needed for 30 PEs, the limit is 60";
    failed.fails(2, &[expected]);
}

/// P0 has few free descriptors, and clients take them all: it continues to accept.
#[test]
fn row_12_an_accept_loop_out_of_descriptors_survives() {
    let _beside = beside();
    let stage = Stage::limited(2, 1, 0, "ulimit -n 18");
    let mut running = start(stage.arguments("gather --size 0 -v"));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let address = assignment.parent_listen.clone().expect("it has a parent");
    let case = "out of descriptors, then a child joins";
    let mut edge = timed("12", case, None, || {
        let connect = |_| TcpStream::connect(&address).expect("the system takes it");
        let strangers: Vec<TcpStream> = (0..20).map(connect).collect();
        running.wait_for(&["P0| ", "cannot accept a connection"]);
        for mut stranger in strangers {
            let patience = stranger.set_read_timeout(Some(Duration::from_secs(30)));
            patience.expect("it can be set");
            let read = stranger.read(&mut [0]);
            assert!(matches!(read, Ok(0)), "cut off, and not {read:?}");
        }
        impostor.call_parent(&assignment)
    });
    impostor.get_ready(&mut edge, vec![0]);
    served(running, impostor).ok();
}

/// P0 has the default limit of 1024 descriptors and reads its input while more unauthenticated
/// clients connect; the descriptors for the round remain available.
#[test]
fn row_12_strangers_leave_the_input_its_descriptors() {
    let _alone = alone();
    let stage = Stage::limited(2, 1, 0, "ulimit -n 1024");
    let input = stage.path_of("in");
    // Enough folders that a thousand clients connect while they are measured.
    for folder in 0..5_000 {
        let folder = input.join(format!("p1/{folder}"));
        std::fs::create_dir_all(&folder).expect("it can be made");
    }
    let (input, output) = (input.display(), stage.path_of("out"));
    let files = format!("--input {input} --output {}", output.display());
    let line = format!("scatter {files} --timeouts handshake=60s -v");
    let mut running = start(stage.arguments(&line));
    let is_p0 = |pe: &Process| pe.pe() == Some(0);
    let p0 = eventually("P0 runs", || running.pes().into_iter().find(is_p0));
    // They connect before P0 authenticates any client.
    let address = listener_of(p0.pid);
    let connect = |_| TcpStream::connect(address).expect("the system takes it");
    let strangers: Vec<TcpStream> = (0..1500).map(connect).collect();
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let mut edge = impostor.call_parent(&assignment);
    drop(strangers);
    impostor.get_ready(&mut edge, Vec::new());
    running.wait_for(&["triggered"]);
    impostor.leave();
    let finished = running.finish();
    finished.stderr_has(&["error: P1 was killed by signal 15"]);
}

/// The coordinator has some more descriptors than its PEs need, and more unauthenticated clients
/// connect.
#[test]
fn row_12_strangers_leave_the_coordinator_its_descriptors() {
    let _alone = alone();
    let cluster = Joining::new(&[0, 0], "60s");
    let mut command = limited("ulimit -n 256");
    let line = "scatter --insecure --size 1KiB --format json --timeouts handshake=60s --cluster";
    command
        .args(line.split(' '))
        .arg(cluster.path("cluster.toml"));
    let running = begin(command);
    let at = cluster.at().parse().expect("it is an address");
    eventually("it listens", || TcpStream::connect(at).ok());
    let own = descriptors(running.pid());
    let crowd = Crowd::at(at, 500, |_| Vec::new());
    until("its door is full", || crowd.received() > 1000);
    // All but 32, and three for each PE.
    let strangers = descriptors(running.pid()) - own;
    assert!((150..=256 - 41).contains(&strangers), "{strangers} of 256");
    let nodes: Vec<_> = (0..3).map(|pe| cluster.node(pe, "--insecure")).collect();
    running.finish().ok().report().assert_all_arrived();
    leave(nodes);
}

/// Returns a flit's frame with these bytes before its fields.
fn with_fields(frame: &[u8], fields: &[u8]) -> Vec<u8> {
    let body = &frame[LENGTH_BYTES..];
    // The key of the flit, and its length: below 16 KiB, two bytes.
    let inner = [fields, &body[3..]].concat();
    let length = inner.len();
    let mut flit = vec![body[0], (length & 0x7F) as u8 | 0x80, (length >> 7) as u8];
    flit.extend_from_slice(&inner);
    [&(flit.len() as u32).to_be_bytes()[..], &flit].concat()
}

/// Inserts these bytes before the fields of the first flit, with a valid seal.
fn in_first_flit(fields: Vec<u8>) -> OnUp {
    let mut fields = Some(fields);
    OnUp::Frames(Box::new(move |frame| {
        let fields = fields.take_if(|_| is_flit(&frame));
        let changed = fields.map(|fields| with_fields(&frame, &fields));
        vec![changed.unwrap_or(frame)]
    }))
}

#[test]
fn row_18_fields_that_no_version_knows() {
    let _beside = beside();
    // Field 20 with a number and with bytes; field 1, the head, a second time: the last one counts.
    let unknown = vec![0xA0, 0x01, 0x07, 0xA2, 0x01, 0x02, 1, 2];
    let repeated = vec![0x0A, 0x02, 0x08, 0x01];
    for (case, fields) in [("unknown fields", unknown), ("a repeated head", repeated)] {
        let (finished, took) = gather_through(FLITS, in_first_flit(fields));
        measured("18", &format!("{case}, skipped"), Some(1.0), took);
        finished.ok().report().assert_all_arrived();
    }
    // Groups within groups, and a number of eleven bytes.
    let nested = [0xA3, 0x01].repeat(30);
    let overlong = [&[0xA0, 0x01][..], &[0xFF; 11], &[0x01]].concat();
    for (case, fields) in [("nested groups", nested), ("an overlong number", overlong)] {
        let (finished, took) = gather_through(FLITS, in_first_flit(fields));
        measured("18", &format!("{case}, refused"), Some(1.0), took);
        finished.fails(1, &["error: P0: from P1 at 127.", "cannot be decoded"]);
    }
}
