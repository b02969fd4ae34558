//! Running clusters of `flitcast up`: their use, restarts, status and end.

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::kept::Kept;
use flitcast_tests::processes::{eventually, until};
use flitcast_tests::{Finished, Running, rows};
use rustix::process::Signal;

fn down(cluster: &Kept) {
    cluster.run("down FILE").ends(0, &["kept", " is down"]);
    nothing_is_left(cluster);
}

fn nothing_is_left(cluster: &Kept) {
    // The daemon releases its lock at the very end.
    until("nothing is left", || cluster.processes().is_empty());
    assert_eq!(cluster.known(), [""; 0]);
}

fn tree_up() -> Kept {
    let mut cluster = Kept::tree();
    cluster.up("up FILE").ok();
    cluster
}

#[track_caller]
fn gathers(cluster: &Kept) {
    cluster.run("gather --cluster FILE --size 1KiB").ok();
}

/// Starts a round that does not end during a test.
fn endless(cluster: &Kept, operation: &str) -> Running {
    let mut running = cluster.start(&format!("{operation} --cluster FILE --size 400GiB -v"));
    running.wait_for(&["triggered"]);
    running
}

#[test]
fn it_is_used_by_one_command_after_the_other() {
    let mut cluster = Kept::tree();
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000)] {
        fill(&cluster.path(&format!("in/h{pe}")), bytes);
    }
    cluster.up("up FILE").ends(0, &["kept is up, 4 PEs"]);
    let (processes, known) = (cluster.processes(), cluster.known());
    assert_eq!((processes.len(), known.len()), (5, 1), "{processes:?}");
    // The PEs work in another folder.
    std::fs::create_dir(cluster.path("elsewhere")).unwrap();
    for line in [
        "scatter --input in --output out",
        "gather --input out --output back",
        "bench gather --size 1KiB --rounds 3 --algorithms certification-pipelined",
        "calibrate --output profile.toml --seconds 1",
        "gather --size 1MiB --profile profile.toml",
    ] {
        cluster.run(&format!("{line} --cluster FILE")).ok();
    }
    for output in ["out", "back"] {
        assert_same_below(&cluster.path("in"), &cluster.path(output));
    }
    assert_eq!(cluster.processes(), processes, "they are the same");
    let status = cluster.run("status FILE --format json").ok().report();
    assert_eq!(status.value("/commands/0/what"), "scatter by fdf");
    for pe in 0..4 {
        assert_eq!(status.value(&format!("/pes/{pe}/is_here")), true);
        assert_eq!(status.number(&format!("/pes/{pe}/starts")), 1);
        assert!(status.number(&format!("/pes/{pe}/lag_ns")) > 0);
        assert!(status.number(&format!("/pes/{pe}/resident_bytes")) > 1 << 20);
    }
    let finished = cluster.run("status FILE").ok();
    finished.ends(0, &["P3", "h3", "gather by certification, 1 round, "]);
    cluster.run("status").ends(0, &["kept", "cluster.toml"]);
    cluster.run("up FILE").ends(0, &["kept is up already"]);
    assert_eq!(cluster.processes(), processes);
    down(&cluster);
    cluster.run("status").ends(0, &["no cluster is up"]);
    for line in ["down FILE", "status FILE"] {
        let expected = "cluster.toml: this cluster is not up";
        cluster.run(line).ends(2, &[expected]);
    }
    // And without it, a separate cluster.
    gathers(&cluster);
}

#[test]
fn a_dead_pe_is_restarted_for_the_next_round() {
    let cluster = tree_up();
    let victim = cluster.pe(1);
    victim.signal(Signal::KILL);
    until("it is gone", || !cluster.processes().contains(&victim));
    cluster.run("gather --cluster FILE --size 1MiB").ok();
    let status = cluster.run("status FILE").ok();
    status.ends(0, &["was started again: was killed by signal 9 (SIGKILL)"]);
    // In mid-round.
    let running = endless(&cluster, "gather");
    let used = "in use    by gather by certification, process ";
    cluster.run("status FILE").ends(0, &[used]);
    let second = cluster.run("scatter --cluster FILE --size 1KiB");
    let expected = "error: kept is in use: gather by certification, process ";
    second.ends(1, &[expected]);
    cluster.pe(2).signal(Signal::KILL);
    let failed = running.finish();
    failed.ends(1, &["error: P2 h2 is gone: ", "joined from 127."]);
    cluster.run("scatter --cluster FILE --size 1MiB").ok();
    let status = cluster.run("status FILE --format json").ok().report();
    assert_eq!(status.number("/pes/1/starts"), 2);
    assert_eq!(status.number("/pes/2/starts"), 2);
    down(&cluster);
}

/// A PE receives credentials from its daemon, and then a notification of each command.
#[test]
fn each_command_notifies_the_pes() {
    let run = r#"run = ["sh", "-c", "tee \"$PWD/heard\" | \"$0\" \"$@\""]"#;
    let mut cluster = Kept::new(1, "", |_| run.to_owned());
    let calls = |cluster: &Kept| {
        let received = std::fs::read(cluster.path("heard")).unwrap();
        let from_the_end = received.iter().rev();
        from_the_end.take_while(|byte| **byte == b'\n').count()
    };
    cluster.up("up FILE").ok();
    for _ in 0..3 {
        let before = calls(&cluster);
        gathers(&cluster);
        until("the command has called", || calls(&cluster) > before);
    }
    down(&cluster);
}

#[test]
fn no_process_is_left_without_the_daemon() {
    let mut cluster = tree_up();
    cluster.keeper().signal(Signal::KILL);
    until("the PEs have left", || cluster.processes().is_empty());
    // The daemon may end a little later than its PEs.
    let status = || Some(cluster.run("status FILE")).filter(|status| status.code == Some(2));
    let status = eventually("it is not up", status);
    status.ends(2, &["this cluster is not up"]);
    gathers(&cluster);
    cluster.up("up FILE").ends(0, &["kept is up, 4 PEs"]);
    gathers(&cluster);
    down(&cluster);
}

#[test]
fn taken_down_in_mid_round_the_round_fails() {
    let cluster = tree_up();
    let running = endless(&cluster, "scatter");
    down(&cluster);
    running.finish().ends(1, &["error: P", "is gone"]);
}

#[test]
fn strangers_do_not_join_and_are_not_joined() {
    let cluster = tree_up();
    let status = cluster.run("status FILE --format json").ok().report();
    let at = status.value("/coordinator").as_str().expect("it is a text");
    // P3's place becomes free, because a stopped daemon does not restart it.
    cluster.keeper().signal(Signal::STOP);
    let victim = cluster.pe(3);
    victim.signal(Signal::KILL);
    until("it is gone", || !cluster.processes().contains(&victim));
    let mut waiting = cluster.start("gather --cluster FILE --size 1KiB -v");
    waiting.wait_for(&["waiting up to 10 s for P3 h3 to join"]);
    let plain = cluster.run(&format!("node --pe 3 --join {at} --insecure --wait 1s"));
    plain.ends(1, &["P3 may not join", "it wants certificates"]);
    cluster.run("ca init others --pes 4").ok();
    let join = format!("node --pe 3 --join {at} --credentials others --wait 1s");
    cluster.run(&join).ends(1, &["P3 may not join"]);
    cluster.keeper().signal(Signal::CONT);
    waiting.finish().ok();
    // They do not join another process that listens there when no command does.
    let text = std::fs::read_to_string(cluster.path("cluster.toml")).unwrap();
    let (_, pes) = text.split_once("[[pe]]").unwrap();
    let launch = "[launch]\nkind = \"join\"\nwait = \"2s\"\n[[pe]]";
    let text = format!("coordinator = \"{at}\"\n{launch}{pes}");
    std::fs::write(cluster.path("others.toml"), text).unwrap();
    for guard in ["--insecure", "--credentials others"] {
        let nobody = cluster.run(&format!("gather --size 1 --cluster others.toml {guard}"));
        nobody.ends(1, &["P0 h0, P1 h1, P2 h2, P3 h3 "]);
    }
    gathers(&cluster);
    down(&cluster);
}

#[test]
fn a_file_that_has_changed_is_another_cluster() {
    let cluster = tree_up();
    let path = cluster.path("cluster.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.clone() + "\n# changed\n").unwrap();
    let refused = cluster.run("gather --cluster FILE --size 1KiB");
    refused.ends(2, &["cluster.toml has changed since `flitcast up`: take"]);
    std::fs::write(&path, &text).unwrap();
    for option in ["--insecure", "--credentials run"] {
        let refused = cluster.run(&format!("gather --cluster FILE --size 1KiB {option}"));
        let expected = "this cluster is up with the security that `flitcast up` fixed";
        refused.ends(2, &[expected]);
    }
    std::fs::remove_file(&path).unwrap();
    down(&cluster);
}

/// The processes belong to the cluster and execute the next round.
#[test]
fn an_interrupted_round_leaves_the_cluster_up() {
    let cluster = tree_up();
    let processes = cluster.processes();
    let cut = endless(&cluster, "gather").interrupt();
    cut.ends(130, &["interrupted: the cluster stays up"]);
    assert!(!cut.stderr.contains("was stopped"), "{}", cut.stderr);
    assert_eq!(cluster.processes(), processes, "they are the same");
    gathers(&cluster);
    down(&cluster);
}

#[test]
fn a_network_is_spanned_as_it_was() {
    let network = "[network]\nedges = [[\"h0\", \"h1\"], [\"h1\", \"h2\"], [\"h2\", \"h0\"]]";
    let mut cluster = Kept::new(3, network, |_| String::new());
    cluster.up("up FILE --root h1").ok();
    for [line, code, expected] in rows(
        "
        gather | 0 | kept root h1
        scatter | 0 | kept root h1
        gather --root h2 | 2 | --root: this cluster is up with --root h1
        gather --spanning broadcast | 2 | --spanning: this cluster is up with --spanning bfs
    ",
    ) {
        let finished = cluster.run(&format!("{line} --cluster FILE --size 1KiB -v"));
        finished.ends(code.parse().unwrap(), &[expected]);
    }
    down(&cluster);
}

#[test]
fn a_failed_start_leaves_nothing() {
    let ends = "parent = \"h0\"\nrun = [\"sh\", \"-c\", \"echo no licence >&2; exit 3\"]";
    let keys = ["", ends, "parent = \"h0\""];
    let mut cluster = Kept::new(3, "", |pe| keys[pe].to_owned());
    let failed = cluster.up("up FILE");
    let expected = "ended with exit status 3, having said: no licence";
    failed.ends(1, &["P1", expected]);
    assert_eq!(cluster.processes(), []);
    assert_eq!(cluster.known(), [""; 0]);
    let cluster = Kept::new(1, "[launch]\nkind = \"join\"", |_| String::new());
    let path = cluster.path("cluster.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, text.replace(".100\"", ".100:7119\"")).unwrap();
    let refused = cluster.run("up FILE");
    refused.ends(2, &["others start the PEs of this cluster"]);
    cluster.run("up nothing.toml").ends(2, &["nothing.toml"]);
}

/// The daemon does not receive the request to stop. Its PEs never join, and leave when it does.
#[test]
fn a_keeper_that_hangs_is_killed_when_up_is_given_up() {
    let never = r#"run = ["sh", "-c", "cat > /dev/null"]"#;
    let cluster = Kept::new(1, "", |_| never.to_owned());
    let mut up = cluster.start("up FILE");
    let keeper = eventually("it waits for its PEs", || {
        let mut all = up.processes().into_iter();
        let keeper =
            all.find(|process| process.arguments.iter().any(|argument| argument == "keep"))?;
        let known = cluster.path("run/flitcast").join(cluster.known().pop()?);
        let user = std::fs::read_to_string(known.join("use")).ok()?;
        user.contains("flitcast up").then_some(keeper)
    });
    keeper.signal(Signal::STOP);
    up.signal(Signal::INT);
    up.coordinator_ends().ends(130, &["interrupted"]);
    nothing_is_left(&cluster);
}

/// Two commands are started at the same moment again and again: one starts the cluster, and the
/// other reports that. The second does not change what the first has created.
#[test]
fn of_two_that_bring_it_up_at_once_one_does() {
    let mut cluster = Kept::tree();
    for turn in 0..8 {
        let mut all = cluster.up_twice("up FILE");
        all.sort_by_key(|finished| finished.code);
        let [first, second] = &all;
        first.ends(0, &["kept is up"]);
        match second.code {
            // This command came after the end of the other one.
            Some(0) => {
                let is_late = |it: &Finished| it.stdout.contains("kept is up already");
                assert!(all.iter().any(is_late), "turn {turn}: {all:?}");
            }
            _ => {
                let expected = "cluster.toml: this cluster is being brought up by another";
                second.ends(1, &[expected]);
            }
        }
        assert_eq!(cluster.known().len(), 1, "turn {turn}");
        assert_eq!(cluster.processes().len(), 5, "turn {turn}");
        gathers(&cluster);
        down(&cluster);
    }
}

/// In either order, the result is a complete cluster, or none.
#[test]
fn it_is_taken_down_and_brought_up_at_once() {
    let mut cluster = Kept::tree();
    for turn in 0..5 {
        cluster.up("up FILE").ok();
        let taking = cluster.start("down FILE");
        let up = cluster.up("up FILE");
        taking.finish().ends(0, &["kept is down"]);
        up.ends(0, &["kept is up"]);
        if up.stdout.contains("already") {
            nothing_is_left(&cluster);
            continue;
        }
        assert_eq!(cluster.processes().len(), 5, "turn {turn}");
        gathers(&cluster);
        down(&cluster);
    }
}
