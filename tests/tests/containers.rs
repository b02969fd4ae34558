//! The tree of `deploy/compose.yaml`, a container for each PE: the deliveries, and the reports when one
//! is killed, paused or cut off. Not part of the suite, because it needs Docker:
//!
//!     cargo test -p flitcast-tests --test suite containers:: -- --ignored

use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use flitcast_tests::containers::{Containers, docker};
use flitcast_tests::files::assert_same_below;

/// A command that does not end during a test.
const LONG: &str = "gather --size 400GiB -v";

/// A stopped process is noticed within 3.5 s, a broken link within 4.5 s; then the others have 2 s
/// to report deliveries and 3 s to leave; the rest is for Docker.
const BOUND: Duration = Duration::from_secs(20);

#[test]
#[ignore = "needs Docker and docker-compose"]
fn files_are_scattered_and_gathered_between_containers() {
    let containers = Containers::prepare();
    // A build that is quick rather than small is twice as long.
    let limit = match env::var("FLITCAST_BUILD").as_deref() {
        Ok("release") => 30_000_000,
        _ => 15_000_000,
    };
    let bytes = containers.image_bytes;
    assert!(bytes < limit, "the image has {bytes} bytes");
    for service in ["scatter", "gather"] {
        containers.done(&["up", "--exit-code-from", service, service]);
    }
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/sample/shards");
    assert_same_below(&sample, &containers.path("p0/gathered"));
    // Each has its own message and no other.
    for pe in [1, 2, 4, 5, 6, 7] {
        let here = containers.path(&format!("p{pe}/scattered"));
        let names = flitcast_tests::files::names(&here);
        assert_eq!(names, [format!("p{pe}")]);
    }
}

/// `deploy/compose.toml`: the coordinator is a command on this machine.
#[test]
#[ignore = "needs Docker and docker-compose"]
fn a_cluster_file_has_compose_start_the_pes() {
    let containers = Containers::prepare();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/sample/shards");
    containers.commanded("scatter --input /shards --output /data/scattered");
    assert_eq!(containers.done(&["ps", "-q"]), "", "none was up before");
    // Containers that were started before all keep running.
    containers.done(&["up", "-d", "p7"]);
    containers.commanded("gather --input /data/scattered --output /data/gathered");
    assert_same_below(&sample, &containers.path("p0/gathered"));
    assert_eq!(containers.done(&["ps", "-q"]).lines().count(), 8);
}

#[test]
fn both_cluster_files_have_the_same_pes() {
    let pes = |text: &'static str| text.split_once("[[pe]]").expect("it has PEs").1;
    let compose = pes(include_str!("../../deploy/compose.toml"));
    assert_eq!(compose, pes(include_str!("../../deploy/containers.toml")));
}

/// Disturbs P1 during a round, and checks the reports and their time limit.
fn mishap(happens: impl FnOnce(&Containers, &str), ends: impl FnOnce(&str), expected: &[&str]) {
    let containers = Containers::prepare();
    containers.done(&["up", "-d", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"]);
    let mut running = containers.command(LONG);
    running.wait_for("triggered");
    let victim = containers.container(1);
    happens(&containers, &victim);
    let began = Instant::now();
    let (code, stderr) = running.finish();
    let took = began.elapsed();
    ends(&victim);
    assert_eq!(code, Some(1), "{stderr}");
    for part in expected {
        assert!(stderr.contains(part), "no `{part}` in\n{stderr}");
    }
    assert!(took < BOUND, "{took:?}: {stderr}");
}

#[test]
#[ignore = "needs Docker and docker-compose"]
fn a_killed_container_is_reported() {
    let below = "cut off with it: P3, P4, P7";
    mishap(
        |_, victim| drop(docker(&["kill", victim])),
        |_| {},
        &["P1 is gone: its ", "joined from 10.117.0.11:", below],
    );
}

#[test]
#[ignore = "needs Docker and docker-compose"]
fn a_paused_container_is_reported_as_silent() {
    mishap(
        |_, victim| drop(docker(&["pause", victim])),
        |victim| drop(docker(&["unpause", victim])),
        &["P1 has been silent for 3.0 s", "joined from 10.117.0.11:"],
    );
}

/// The edge from P0 to P1 breaks: both are alive, and answer the coordinator.
#[test]
#[ignore = "needs Docker and docker-compose"]
fn a_cut_link_is_reported() {
    mishap(
        |containers, victim| {
            let edge = containers.network("edge1");
            drop(docker(&["network", "disconnect", &edge, victim]));
        },
        |_| {},
        &["P0", "P1", "10.117.1.", " cannot be reached"],
    );
}
