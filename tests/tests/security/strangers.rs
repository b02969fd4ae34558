//! PEs that join without credentials do not authenticate the coordinator: they read, write, run and
//! remove nothing.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use flitcast_proto::ops::Collective;
use flitcast_proto::wire::MAX_VERSION;
use flitcast_proto::wire::control::{
    Assignment, End, FilePayload, FromPe, Job, Payload, Peer, Ran, Run, ToPe,
};
use flitcast_proto::{PeId, Tree};
use flitcast_tests::files::{fill, names};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::kept::Kept;
use flitcast_tests::processes::until;
use flitcast_tests::stranger::Stranger;
use flitcast_tests::{rows, scratch, start};

/// Returns the assignment of a PE on this tree, with nothing that is optional.
fn assignment(parents: &[Option<u32>], listen: SocketAddr, of: Collective) -> Assignment {
    let parents = parents.iter().map(|parent| parent.map(PeId)).collect();
    Assignment {
        version: MAX_VERSION,
        tree: Arc::new(Tree::from_parents(parents).expect("it is one")),
        parent_listen: Some(listen.to_string()),
        peers: Vec::new(),
        collective: of,
        flit_bytes: 1 << 16,
        payload: Payload::Synthetic {
            lengths: vec![0; 9],
        },
        links: Vec::new(),
        record_spans: false,
        left_out: Vec::new(),
        job: Job {
            id: 0,
            recorded: false,
            later_output: None,
        },
        lanes: Vec::new(),
        own_links: false,
        versions: Vec::new(),
        dry_run: false,
        max_bits_per_second: 0,
    }
}

/// The name of a file that a job keeps beside its deliveries.
const RECEIPT: &str = ".flitcast-0000000000000000-p1.receipt";

/// Makes a PE without credentials read, write, run and remove things, by requests of any process that
/// listens where it calls; `dir` is a folder of the test.
fn tempt(listener: &TcpListener, dir: &Path) {
    let at = |name: &str| dir.join(name);
    let work = at(".flitcast-map-0000000000000001");
    for pe in 0..2 {
        std::fs::create_dir_all(work.join(format!("in/p{pe}"))).expect("it can be made");
        std::fs::write(at(&format!("p{pe}")), "private").expect("it can be written");
    }
    let mut stranger = Stranger::welcome(listener);
    let marker = at("marker");
    let words = ["touch".into(), marker.clone().into_os_string()];
    stranger.send(&ToPe::Run(Run {
        words: words.into(),
        work: work.clone(),
        pes: 2,
        time_limit_ns: 0,
        shard: "p1".into(),
        home: None,
        linked: false,
    }));
    let unknown = "its coordinator is not authenticated";
    let ran = stranger.receive();
    let is_refused = |end: &End| matches!(end, End::Failed(why) if why.contains(unknown));
    assert!(
        matches!(&ran, FromPe::Ran(Ran { end, .. }) if is_refused(end)),
        "{ran:?}"
    );
    assert!(!marker.exists());
    stranger.send(&ToPe::Clear {
        work: work.clone(),
        gathered: work.clone(),
    });
    let FromPe::Cleared { left } = stranger.receive() else {
        panic!("it clears");
    };
    assert!(left.contains(unknown), "{left}");
    assert!(work.join("in/p0").exists() && work.join("in/p1").exists());
    // The files that a job keeps beside its deliveries, and removes at its end.
    std::fs::create_dir(at("written")).expect("it can be made");
    std::fs::write(at("written").join(RECEIPT), "another's").expect("it can be written");
    for collective in [Collective::Scatter, Collective::Gather] {
        let listen = listener.local_addr().expect("it listens");
        stranger.send(&ToPe::Assignment(Assignment {
            payload: Payload::Files(FilePayload {
                input: dir.to_owned(),
                output: at("written"),
                replace: true,
                ..FilePayload::default()
            }),
            ..assignment(&[None, Some(0)], listen, collective)
        }));
        let FromPe::Fault { reason, .. } = stranger.receive() else {
            panic!("it plays");
        };
        let expected = "synthetic messages only: give both ends --credentials DIR";
        assert!(reason.contains(expected), "{reason}");
        stranger.send(&ToPe::Stop { over: true });
        // It stays, and joins the next process that listens.
        stranger = Stranger::welcome(listener);
    }
    stranger.send(&ToPe::Stop { over: true });
    assert_eq!(names(&at("written")), [RECEIPT]);
}

#[test]
fn strangers_cannot_read_write_or_run_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it can");
    let at = listener.local_addr().expect("it listens");
    for pe in 0..2 {
        let dir = scratch();
        let line = format!("node --pe {pe} --join {at} --insecure --stay");
        let node = start(line.split_whitespace());
        tempt(&listener, dir.path());
        dismiss(vec![node]);
    }
}

#[test]
fn kept_pes_without_certificates_obey_no_strangers() {
    let mut cluster = Kept::tree();
    fill(&cluster.path("in/p1"), 1000);
    cluster.up("up FILE --insecure").ok();
    cluster.run("scatter --cluster FILE --size 1KiB").ok();
    let refused = cluster.run("scatter --cluster FILE --input in --output out");
    let expected = "leave out --insecure, and take the cluster down and up again";
    refused.fails(2, &[expected]);
    let status = cluster.run("status FILE --format json").ok().report();
    let at = status.value("/coordinator").as_str().expect("it is a text");
    let others = [0, 2, 3].map(|pe| cluster.pe(pe));
    // Only P1 continues to call.
    for other in &others {
        other.signal(rustix::process::Signal::STOP);
    }
    let listener = TcpListener::bind(at).expect("no command listens there");
    tempt(&listener, &cluster.path("in"));
    drop(listener);
    for other in &others {
        other.signal(rustix::process::Signal::CONT);
    }
    cluster.run("down FILE").ok();
    until("nothing is left", || cluster.processes().is_empty());
}

#[test]
fn files_and_commands_ask_for_credentials_where_pes_join() {
    let cluster = Joining::new(&[0, 0], "60s");
    std::fs::create_dir(cluster.path("in")).expect("it can be");
    let expected = "PEs that join with --insecure play synthetic messages only";
    for [operation, command] in rows(
        "
        scatter |
        scatter --spread |
        gather |
        map --work @/work | -- cat
    ",
    ) {
        let files = "--input @/in --output @/out --cluster @/cluster.toml --insecure";
        let refused = cluster.dir.run(&format!("{operation} {files} {command}"));
        refused.fails(2, &[expected]);
    }
    assert!(!cluster.path("out").exists() && !cluster.path("work").exists());
}

/// A PE connects to other PEs of its tree, once to each: not to itself, to a tree neighbour or to an
/// absent PE.
#[test]
fn peers_are_other_pes_of_the_tree() {
    for peers in [vec![1], vec![0], vec![3], vec![2, 2]] {
        refuse_peers(&peers);
    }
}

fn refuse_peers(peers: &[u32]) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("it can");
    let at = listener.local_addr().expect("it listens");
    let node = start(format!("node --pe 1 --join {at} --insecure --stay").split(' '));
    let mut stranger = Stranger::welcome(&listener);
    let peer = |pe: &u32| Peer {
        pe: PeId(*pe),
        listen: Some(at.to_string()),
        link: None,
    };
    stranger.send(&ToPe::Assignment(Assignment {
        peers: peers.iter().map(peer).collect(),
        ..assignment(&[None, Some(0), Some(0)], at, Collective::Exchange)
    }));
    let FromPe::Fault { reason, .. } = stranger.receive() else {
        panic!("it plays");
    };
    let expected = "with peers that it cannot connect to";
    assert!(reason.contains(expected), "{peers:?}: {reason}");
    stranger.send(&ToPe::Stop { over: true });
    dismiss(vec![node]);
}
