//! `--hosts`: hosts that ssh reaches, without a cluster file; P0 is on this machine.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use flitcast_tests::Finished;
use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::run::start_with;
use flitcast_tests::ssh::Hosts;

/// Runs a command whose `ssh` reads the hosts' configuration, as a user's own would.
fn run(hosts: &Hosts, line: &str) -> Finished {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let all = std::iter::once(hosts.path("bin")).chain(folders);
    let path = std::env::join_paths(all).expect("no folder has a colon");
    start_with(line.split(' '), &[("PATH", Path::new(&path))]).finish()
}

/// Puts an `ssh` into a folder, with a configuration that has the hosts.
fn put_ssh(hosts: &Hosts) {
    // Only its configuration of ssh is used.
    hosts.cluster(&[0], "");
    let config = hosts.path("ssh_config");
    let ssh = hosts.path("bin/ssh");
    std::fs::create_dir(hosts.path("bin")).expect("it can be made");
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n",
        config.display()
    );
    std::fs::write(&ssh, script).expect("it can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&ssh, executable).expect("it is ours");
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn hosts_are_tried_without_a_pe() {
    let mut hosts = Hosts::up(3);
    put_ssh(&hosts);
    let list = "check hosts:10.118.0.[1-3] --reach";
    let done = run(&hosts, list).ok();
    for address in ["10.118.0.1", "10.118.0.2", "10.118.0.3"] {
        let version = env!("CARGO_PKG_VERSION");
        done.prints(&[&format!("ssh {address}  {address}    flitcast {version}\n")]);
    }
    // Names that only ssh's configuration has.
    let named = run(&hosts, "check hosts:fcssh[0-1] --reach").ok();
    named.prints(&["ssh fcssh0  10.118.0.1 ", "ssh fcssh1  10.118.0.2 "]);
    hosts.are_quiet();
    hosts.stop_serving(1);
    let failed = run(&hosts, list).with_code(1);
    failed.prints(&["ssh 10.118.0.2  10.118.0.2    no\n"]);
    failed.stderr_has(&[
        "error: P2 10.118.0.2: ssh 10.118.0.2, connecting: ",
        "no ssh server is there",
    ]);
    hosts.are_quiet();

    let cluster = hosts.cluster(&[0, 2], "");
    let text = std::fs::read_to_string(&cluster).expect("it was written");
    std::fs::write(&cluster, text.replace("'10.118.0.3'", "'10.118.0.4'")).expect("it is ours");
    let failed = run(&hosts, &format!("check {} --reach", cluster.display()));
    let expected = "error: P1 pe 1: ssh fcssh2: cannot listen on 10.118.0.4 there: ";
    failed.fails(1, &[expected, "correct `address` in its [[pe]]"]);
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn shards_are_scattered_to_listed_hosts_and_gathered() {
    let hosts = Hosts::up(4);
    put_ssh(&hosts);
    let (input, back) = (hosts.path("in"), hosts.path("back"));
    for (name, bytes) in [("p1", 100_000), ("10.118.0.4", 1)] {
        fill(&input.join(name), bytes);
    }
    let list = "-w 10.118.0.[1-4] -x 10.118.0.[2-3]";
    let input = format!("--input {}", input.display());
    let scatter = format!("scatter {list} {input} --output /root/out");
    let done = run(&hosts, &scatter).ok();
    done.prints(&["P2 10.118.0.4", "security", "TLS 1.3"]);
    assert_eq!(names(&hosts.home(0).join("out")), ["10.118.0.1"]);
    assert_eq!(names(&hosts.home(3).join("out")), ["10.118.0.4"]);
    assert!(!hosts.home(1).join("out").exists());

    let gather = format!(
        "gather {list} --input /root/out --output {}",
        back.display()
    );
    run(&hosts, &gather).ok();
    std::fs::rename(hosts.path("in/p1"), hosts.path("in/10.118.0.1")).expect("it was sent");
    assert_same_below(&hosts.path("in"), &back);

    // A star leaves a choice when the links are measured.
    let done = run(&hosts, "gather -w 10.118.0.[1-4] --size 1KiB --format json").ok();
    let report: serde_json::Value = serde_json::from_str(&done.stdout).expect("it is JSON");
    assert_eq!(report["parents"], serde_json::json!([null, 0, 0, 0, 0]));
    assert_eq!(report["choice"]["ways"], 3, "{}", report["choice"]);

    let none = format!("scatter -w 10.118.0.1 -x 10.118.0.1 {input} --output /root/out");
    run(&hosts, &none).fails(2, &["--hosts: ", "names no host"]);
    let unknown = format!("scatter -w no-such-host.invalid {input} --output /root/out");
    run(&hosts, &unknown).fails(2, &["no host `no-such-host.invalid` is found"]);
}
