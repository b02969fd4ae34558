//! `[launch] kind = "ssh"`: real ssh servers, each on a host with a separate network and home.
//! Needs root, and Debian's iproute2 and openssh-server.

mod apart;
mod listed;
mod spread;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flitcast_tests::files::{assert_same_below, fill, identity, long, names, names_if_any};
use flitcast_tests::processes::MARK_VARIABLE;
use flitcast_tests::run::start_with;
use flitcast_tests::ssh::{Hosts, program};
use flitcast_tests::{Running, flitcast, run, start};
use rustix::process::Signal;

/// Lengths of messages that take more than a day.
const ENDLESS: &str = "--lengths 400GiB,400GiB,400GiB";

fn arguments(cluster: &Path, line: &str) -> Vec<String> {
    let cluster = cluster.to_str().expect("its path is UTF-8").to_owned();
    let words = line.split(' ').map(str::to_owned);
    words.chain(["--cluster".to_owned(), cluster]).collect()
}

/// Returns the key of `[launch]` for the whole program, whose copies take their time.
fn whole() -> String {
    format!("binary = '{}'", flitcast().display())
}

/// Starts a round of four PEs that does not end.
#[track_caller]
fn endless(cluster: &Path, operation: &str) -> Running {
    let line = format!("{operation} {ENDLESS} -v");
    let mut running = start(arguments(cluster, &line));
    running.wait_for(&["triggered"]);
    running
}

/// Returns the names of Flitcast's hidden entries in a folder.
fn hidden(folder: &Path) -> Vec<String> {
    let mut names = names_if_any(folder);
    names.retain(|name| name.starts_with(".flitcast-"));
    names
}

/// Two of the five PEs are on one host.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn files_are_scattered_and_gathered_and_the_program_is_copied_once() {
    let hosts = Hosts::up(4);
    // A place that no shell should stumble over.
    let place = "it's \"the\" $HOME; place";
    let launch = format!("directory = '''~/{place}'''\nenvironment = ['{MARK_VARIABLE}']");
    let cluster = hosts.cluster(&[0, 1, 2, 3, 3], &launch);
    let input = hosts.home(0).join("in put's");
    for (pe, bytes) in [(1, 100 * 1024), (2, 1), (3, 0), (4, 300 * 1024)] {
        fill(&input.join(format!("pe {pe}/file")), bytes);
    }
    fill(&input.join("pe 4/folder/another one"), 11 * 1024);

    let mut scatter = arguments(&cluster, "scatter --format json --output /root/out");
    scatter.push("--input=/root/in put's".to_owned());
    let done = run(&scatter).ok();
    done.prints(&["\"security\": \"tls\""]);
    let programs = || {
        [0, 1, 2, 3].map(|host| {
            let program = program(&hosts.home(host), place).expect("it was copied");
            let found = program.metadata().expect("it is there");
            assert_eq!(found.permissions().mode() & 0o7777, 0o700);
            (identity(&program), program)
        })
    };
    let was = programs();
    // Each message is on its own host only.
    for (host, there) in [
        (0, &[][..]),
        (1, &["pe 1"]),
        (2, &["pe 2"]),
        (3, &["pe 3", "pe 4"]),
    ] {
        let found = names_if_any(&hosts.home(host).join("out"));
        assert_eq!(found, there, "on host {host}");
    }

    let gather = "gather --format json --input /root/out --output /root/back";
    run(arguments(&cluster, gather)).ok();
    assert_same_below(&input, &hosts.home(0).join("back"));
    assert_eq!(programs(), was, "they were not copied again");
}

/// From a host that is not the first, over TLS.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn every_host_gets_a_copy_of_what_another_one_has() {
    let hosts = Hosts::up(4);
    let launch = format!("environment = ['{MARK_VARIABLE}']");
    let cluster = hosts.cluster(&[0, 1, 2, 3], &launch);
    let weights = hosts.home(2).join("weights");
    fill(&weights.join("some"), 300_000);
    let line = "broadcast --from P2 --input /root/weights --output /root/copies";
    run(arguments(&cluster, line)).ok();
    for host in [0, 1, 3] {
        assert_same_below(&weights, &hosts.home(host).join("copies"));
    }
    assert!(!hosts.home(2).join("copies").exists());
    hosts.are_quiet();

    // Existing entries are detected on each host before anything is sent, and replaced on request.
    fs::remove_dir_all(hosts.home(1).join("copies")).expect("it is there");
    fill(&weights.join("more"), 1);
    let refused = run(arguments(&cluster, line)).with_code(2);
    for place in ["/root/copies at P0 pe 0\n", "/root/copies at P3 pe 3\n"] {
        refused.stderr_has(&[place]);
    }
    assert!(!hosts.home(1).join("copies").exists());
    run(arguments(&cluster, &format!("{line} --force"))).ok();
    for host in [0, 1, 3] {
        assert_same_below(&weights, &hosts.home(host).join("copies"));
        assert_eq!(hidden(&hosts.home(host)), [""; 0], "on host {host}");
    }
}

/// Neither the host of the source nor that of the destination is the first.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn files_are_scattered_from_and_gathered_to_any_host() {
    let hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    let pieces = hosts.home(2).join("pieces");
    for host in [0, 1, 3] {
        fill(
            &pieces.join(format!("pe {host}/file")),
            100_000 * (host + 1),
        );
    }
    let line = "scatter --from P2 --input /root/pieces --output /root/out";
    run(arguments(&cluster, line)).ok();
    for host in [0, 1, 3] {
        let name = format!("pe {host}");
        let out = hosts.home(host).join("out");
        assert_eq!(names(&out), [name.as_str()]);
        assert_same_below(&pieces.join(&name), &out.join(&name));
    }

    let line = "gather --to P2 --input /root/out --output /root/back";
    run(arguments(&cluster, line)).ok();
    assert_same_below(&pieces, &hosts.home(2).join("back"));
}

/// Hosts of a cluster file reach each other: all pairs are connected.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn everybody_sends_to_everybody() {
    let hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    let pairs = || {
        let all = (0..4).flat_map(|from| (0..4).map(move |to| (from, to)));
        all.filter(|(from, to)| from != to)
    };
    for (from, to) in pairs() {
        let home = hosts.home(from);
        let piece = home.join(format!("pieces/pe {to}"));
        fill(&piece, 40_000 * (from + 1) + to);
        fill(&home.join("shard"), 50_000 * (from + 1));
    }
    for (operation, input, algorithm) in [
        ("gossip", "shard", "circulate"),
        ("exchange", "pieces", "rounds"),
    ] {
        let line =
            format!("{operation} --input /root/{input} --output /root/{operation} --format json");
        let report = run(arguments(&cluster, &line)).ok().report();
        assert_eq!(report.value("/algorithm"), algorithm);
        for (from, to) in pairs() {
            let sent = match operation {
                "gossip" => "shard".to_owned(),
                _ => format!("pieces/pe {to}"),
            };
            let arrived = hosts.home(to).join(format!("{operation}/pe {from}"));
            let sent = fs::read(hosts.home(from).join(sent)).expect("it was filled");
            let is_alike = fs::read(&arrived).is_ok_and(|bytes| bytes == sent);
            assert!(is_alike, "{arrived:?}");
        }
    }
}

/// Two of the PEs are on one host, where one name would be ambiguous: so all have names.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn pes_that_share_a_host_have_their_messages_side_by_side() {
    let hosts = Hosts::up(2);
    let cluster = hosts.cluster(&[0, 1, 1], "");
    for (pe, host) in [(0, 0), (1, 1), (2, 1)] {
        fill(&hosts.home(host).join(format!("shards/pe {pe}")), 1000 + pe);
    }
    let line = "gossip --input /root/shards --output /root/out";
    run(arguments(&cluster, line)).ok();
    assert_eq!(names(&hosts.home(0).join("out")), ["pe 0"]);
    for pe in [1, 2] {
        let mut others = vec!["pe 0", "pe 1", "pe 2"];
        others.remove(pe);
        assert_eq!(names(&hosts.home(1).join(format!("out/pe {pe}"))), others);
    }
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_login_shell_may_be_noisy() {
    let hosts = Hosts::up(2);
    for host in 0..2 {
        let noise = "echo welcome; echo and beware >&2; seq 1000; printf 'without an end'\n";
        fs::write(hosts.home(host).join(".bashrc"), noise).expect("it can be written");
    }
    let cluster = hosts.cluster(&[0, 1], "");
    for _copied_and_there in 0..2 {
        let done = run(arguments(&cluster, "gather --size 10KiB --format json")).ok();
        done.report().assert_all_arrived();
        assert_eq!(done.stderr, "", "none of it is the user's business");
    }
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn the_environment_and_exit_statuses_are_passed_on() {
    let hosts = Hosts::up(4);
    let launch = format!("environment = ['{MARK_VARIABLE}', 'FLITCAST_IS_NOT_SET']");
    let cluster = hosts.cluster(&[0, 1, 2, 3], &launch);
    let running = endless(&cluster, "scatter");
    let environment = |pe| fs::read(format!("/proc/{}/environ", hosts.pe(pe).pid));
    let variables = environment(3).expect("it runs");
    let variables: Vec<_> = variables.split(|&byte| byte == 0).collect();
    let its = fs::read(format!("/proc/{}/environ", running.pid())).expect("it runs");
    let name = format!("{MARK_VARIABLE}=").into_bytes();
    let mut its = its.split(|&byte| byte == 0);
    let mark = its.find(|one| one.starts_with(&name));
    assert!(variables.contains(&mark.expect("it was given")));
    let unset = |one: &&[u8]| one.starts_with(b"FLITCAST_IS_NOT_SET");
    assert!(!variables.iter().any(unset));
    running.interrupt();
    hosts.are_quiet();

    // If another command is run instead of a PE, its output is reported.
    let mut text = fs::read_to_string(&cluster).expect("it was written");
    text.push_str("run = ['sh', '-c', 'echo no such luck >&2; exit 42']\n");
    fs::write(&cluster, text).expect("it can be written");
    let ended = run(arguments(&cluster, "scatter --size 1KiB"));
    let expected = "P3 pe 3 ended with exit status 42 on fcssh3 before it registered: no such luck";
    ended.fails(1, &[expected]);
    let stderr = &ended.stderr;
    let names_stopped = stderr.contains("cannot reach");
    assert!(!names_stopped, "nor of whom it stopped: {stderr}");
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn unreachable_hosts_are_named_with_a_remedy() {
    let mut hosts = Hosts::up(2);
    let line = "scatter --size 1KiB";
    let denied = run(arguments(&hosts.cluster_with_another_key(&[1]), line));
    let host = "P0 pe 0 cannot be started: ssh fcssh1, connecting: ";
    let help = "by a key that is in its authorized_keys";
    denied.fails(1, &[host, "Permission denied", help]);

    let cluster = hosts.cluster(&[0, 1], "");
    hosts.stop_serving(1);
    let refused = run(arguments(&cluster, line));
    let host =
        "P1 pe 1 cannot be started: ssh fcssh1, connecting: connect to host 10.118.0.2 port 22";
    refused.fails(1, &[host, "Connection refused; no ssh server is there"]);
    // No process that was started meanwhile is left.
    hosts.are_quiet();

    let text = fs::read_to_string(&cluster).expect("it was written");
    let text = text.replace("'fcssh1'", "'nowhere.invalid'");
    fs::write(&cluster, text).expect("it can be written");
    let unknown = run(arguments(&cluster, line));
    let help = "ssh = \"USER@HOST\"";
    unknown.fails(1, &["ssh nowhere.invalid", "Could not resolve", help]);
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_death_on_a_host_is_named() {
    let mut hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    for (operation, pe) in [("scatter", 1), ("gather", 3), ("scatter", 0)] {
        let running = endless(&cluster, operation);
        hosts.pe(pe).signal(Signal::KILL);
        let cause = format!("error: P{pe} pe {pe} was killed by signal 9 (SIGKILL) on fcssh{pe}\n");
        let place = format!("where: P{pe} pe {pe} at 10.118.0.{}:", pe + 1);
        running.finish().fails(1, &[&cause, &place]);
        hosts.are_quiet();
    }
    let running = endless(&cluster, "gather");
    hosts.stop_serving(2);
    let cause = "error: P2 pe 2 is cut off: `ssh fcssh2` ended with exit status 255";
    running.finish().fails(1, &[cause, "closed by remote host"]);
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn every_end_of_the_coordinator_cleans_up_the_hosts() {
    let hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    let running = endless(&cluster, "scatter");
    running.interrupt();
    hosts.are_quiet();
    endless(&cluster, "gather").kill();
    hosts.are_quiet();
    // The same during the launch.
    let cluster = hosts.cluster(&[0, 1, 2, 3], &whole());
    let mut running = start(arguments(&cluster, "scatter --size 1KiB -v"));
    running.wait_for(&["copying flitcast"]);
    running.interrupt();
    hosts.are_quiet();
    let half = |name: &String| name.ends_with(".new");
    for host in 0..4 {
        let cache = hosts.home(host).join(".cache/flitcast");
        let left = names_if_any(&cache);
        assert!(!left.iter().any(half), "{left:?}");
    }
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_failed_round_is_resumed_over_ssh() {
    let hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    let (input, output) = (hosts.path("input"), hosts.path("output"));
    for (pe, bytes) in [(1, 100 * 1024), (2, 70)] {
        fill(&input.join(format!("pe {pe}/file")), bytes);
    }
    long(&input.join("pe 3"), 512 << 20);
    let (from, to) = (input.display(), output.display());
    let line = format!("scatter --input {from} --output {to} -v");
    let mut running = start(arguments(&cluster, &line));
    running.wait_for(&["triggered"]);
    hosts.pe(3).signal(Signal::KILL);
    let failed = running.finish();
    failed.fails(1, &["P3 pe 3 was killed by signal 9 (SIGKILL) on fcssh3"]);
    let mut lines = failed.stderr.lines();
    let record = lines.find_map(|line| line.strip_prefix("to go on: flitcast "));
    let record = record.expect("the command is printed");
    run(record.split(' ').chain(["--revive"])).ok();
    // P3's hidden partial files at its death may be left beside the messages.
    for message in ["pe 1", "pe 2", "pe 3"] {
        assert_same_below(&input.join(message), &output.join(message));
    }
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn commands_with_several_clusters_launch_them_over_ssh() {
    let mut hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    let bench = "bench gather --size 10KiB --rounds 3 --algorithms certification-pipelined";
    run(arguments(&cluster, bench)).ok();
    let profile = hosts.home(0).join("profile.toml");
    let calibrate = format!("calibrate --seconds 0.5 --output {}", profile.display());
    run(arguments(&cluster, &calibrate)).ok();
    let gather = format!("gather --size 10KiB --profile {}", profile.display());
    run(arguments(&cluster, &gather)).ok();

    // A host disappears while its endless message is in transit; the others get theirs.
    let line = "scatter --lengths 10KiB,400GiB,10KiB --retry 1 -v";
    let mut running = start(arguments(&cluster, line));
    running.wait_for(&["triggered"]);
    hosts.stop_serving(2);
    let retried = running.finish();
    let cause = "P2 pe 2 is dead (cut off: `ssh fcssh2` ended with exit status 255";
    retried.fails(1, &[cause, "dead: P2 pe 2's message was not delivered"]);
    retried.prints(&[" without P2 by fdf: 3 PEs"]);
    // The same for a host that disappeared before: PEs below it get their messages over another
    // path.
    hosts.serve(2);
    hosts.stop_serving(1);
    let retried = run(arguments(&cluster, "scatter --size 10KiB --retry 1"));
    let cause = "P1 pe 1 is dead (cannot be started: ssh fcssh1";
    retried.fails(1, &[cause, "dead: P1 pe 1's message"]);
    retried.prints(&["P2 pe 2, P3 pe 3 moved to P0 pe 0"]);
}

/// Between commands, until the cluster is stopped or its daemon is gone.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_cluster_that_is_up_stays_on_its_hosts() {
    let hosts = Hosts::up(3);
    let cluster = hosts.cluster(&[0, 1, 2], "");
    let folder = hosts.path("run");
    fs::create_dir(&folder).expect("it can be");
    let file = cluster.to_str().expect("its path is UTF-8");
    let command = |line: &str| {
        let words = line.split(' ').map(|word| word.replace("FILE", file));
        start_with(words, &[("XDG_RUNTIME_DIR", &folder)])
    };
    let mut up = command("up FILE");
    up.coordinator_ends().with_code(0);
    let done = command("gather --cluster FILE --size 1MiB").finish().ok();
    done.prints(&["TLS 1.3 both ways"]);
    hosts.pe(2).signal(Signal::KILL);
    command("scatter --cluster FILE --size 1MiB").finish().ok();
    let status = command("status FILE").finish().ok();
    let again = "was started again: was killed by signal 9 (SIGKILL) on ";
    status.prints(&[again]);
    let mut processes = up.processes();
    processes.retain(|process| process.arguments.iter().any(|argument| argument == "keep"));
    assert_eq!(processes.len(), 1, "it has a daemon");
    processes[0].signal(Signal::KILL);
    hosts.are_quiet();

    let mut up = command("up FILE");
    assert_eq!(up.coordinator_ends().code, Some(0));
    assert!(!hosts.running().is_empty());
    command("down FILE").finish().ok();
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn all_hosts_that_fail_in_a_launch_are_named() {
    let mut hosts = Hosts::up(4);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    hosts.stop_serving(1);
    hosts.stop_serving(3);
    let line = "scatter --size 1KiB";
    let refused = "connect to host 10.118.0";
    let named =
        |pe| format!("P{pe} pe {pe} cannot be started: ssh fcssh{pe}, connecting: {refused}");
    let failed = run(arguments(&cluster, line));
    failed.fails(1, &[&named(1), &named(3), "\n  also: P"]);
    hosts.are_quiet();

    let failed = run(arguments(&cluster, &format!("{line} --format json")));
    let report = failed.report();
    let first = report.number("/error/pe");
    assert_eq!(report.list("/error/others").len(), 1, "{failed:?}");
    let other = report.number("/error/others/0/pe");
    assert_eq!([first.min(other), first.max(other)], [1, 3]);
    // Programs find the name beside the message.
    let message = report.value("/error/others/0/message").as_str();
    let begin = format!("P{other} cannot be started: ssh fcssh{other}, connecting: {refused}");
    assert!(message.is_some_and(|message| message.starts_with(&begin)));

    // Both are excluded at once.
    let retried = run(arguments(&cluster, &format!("{line} --retry 1")));
    let dead = ["dead: P1 pe 1's message", "dead: P3 pe 3's message"];
    retried.fails(1, &dead);
    retried.prints(&[" without P1, P3 by fdf: 2 PEs"]);
}
