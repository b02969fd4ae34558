//! Row 23: processes with a false identity. `join` and `security` have certificates that are not good.

use std::io::Write as _;
use std::net::TcpStream;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Register};
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, Secret};
use flitcast_tests::edge::Edge;
use flitcast_tests::impostor::{Stage, framed_reply};
use flitcast_tests::{scratch, start};

use crate::hostile::hung_up;
use crate::{beside, served, timed};

/// No neighbour has a certificate that the PE with both authorities trusts.
#[test]
fn row_23_a_process_of_another_authority() {
    let _beside = beside();
    let (dir, other) = (scratch(), scratch());
    for dir in [&dir, &other] {
        dir.run("ca init @/ca --pes 2").ok();
    }
    // It finds the assigned credentials elsewhere.
    let (from, to) = (dir.display(), other.display());
    let text = format!("from={from} to={to}\nexec \"${{@/#$from/$to}}\"\n");
    let script = dir.put("elsewhere", text);
    let text = format!(
        "[[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\n\
         [[pe]]\nname = \"b\"\naddress = \"127.0.0.1\"\nparent = \"a\"\n\
         run = [\"bash\", \"{}\"]\n",
        script.display()
    );
    dir.put("cluster.toml", text);
    let line = "gather --size 1KiB --credentials @/ca --cluster @/cluster.toml";
    let case = "a process of another authority";
    let finished = timed("23", case, Some(2.0), || dir.run(line));
    finished.with_code(1).stderr_has(&[
        "the cluster did not come up: P1 b ended with exit status 1",
        "cannot reach the coordinator at 127.0.0.1:",
        "the certificate was issued by another authority",
    ]);
}

#[test]
fn row_23_another_version() {
    let _beside = beside();
    // A later build, and one from before.
    for (min, max) in [(90, 99), (MIN_VERSION - 1, MIN_VERSION - 1)] {
        let stage = Stage::path(3, 1);
        // It checks that no process is left, either.
        let finished = timed("23", "another version", Some(2.0), || {
            let running = start(stage.arguments("gather --size 1KiB"));
            served(running, stage.enter_speaking(min, max))
        });
        let theirs = format!("P1: the peer speaks protocol versions {min} to {max}, ");
        let ours = format!("this side {MIN_VERSION} to {MAX_VERSION}");
        finished.fails(1, &[&theirs, &ours, " at 127.0.7.2:"]);
    }
}

#[test]
fn row_23_two_processes_with_one_id() {
    let _beside = beside();
    let stage = Stage::limited(3, 1, 2, "exec sleep 600");
    timed("23", "two processes with one id", Some(2.0), || {
        let running = start(stage.arguments("gather --size 1KiB"));
        let both = [stage.enter(), stage.enter()];
        let finished = running.finish();
        let [first, second] = both.map(|it| it.address().to_string());
        finished.fails(1, &["P1: registered twice, from ", &first, &second]);
    });
}

/// The client has everything but the secret of the launch: neither the coordinator nor a PE
/// answers.
#[test]
fn row_23_a_process_without_the_secret() {
    let _beside = beside();
    let wrong = Secret::new([0; Secret::BYTES]);
    let stage = Stage::limited(3, 1, 2, "exec sleep 600");
    let mut running = start(stage.arguments("gather --size 1KiB"));
    let impostor = stage.enter();
    let register = impostor.register((MIN_VERSION, MAX_VERSION));
    let lying = FromPe::Register(Register {
        pe: PeId(2),
        secret: wrong,
        ..register
    });
    timed("23", "no secret, at the coordinator", Some(2.0), || {
        let mut stranger = TcpStream::connect(impostor.coordinator()).expect("it listens");
        stranger
            .write_all(&framed_reply(&lying))
            .expect("it is open");
        hung_up(&mut stranger);
    });
    let expected = "does not know the secret of this launch";
    running.wait_for(&["turned a connection away", expected]);
    // The third PE never registers: a PE that registers twice ends the wait.
    let _again = stage.enter();
    running.finish().with_code(1);

    let stage = Stage::path(3, 1);
    let mut running = start(stage.arguments("gather --size 0"));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let parent = assignment.parent_listen.as_ref().expect("it has a parent");
    let lying = EdgeFrame::Hello(Hello {
        secret: wrong,
        ..impostor.hello()
    });
    timed("23", "no secret, at a PE", Some(2.0), || {
        let mut edge = Edge::new(TcpStream::connect(parent).expect("it listens"));
        edge.send(&lying);
        hung_up(&mut edge.incoming.stream);
    });
    running.wait_for(&["P0| ", expected]);
    running.interrupt();
}
