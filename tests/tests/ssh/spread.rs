//! Copies of the program: from host to host over the tree, and what is on a host already.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

use flitcast_tests::files::{fill, names, names_if_any, set_mode};
use flitcast_tests::ssh::{Hosts, program};
use flitcast_tests::{Finished, run, start};

use super::{arguments, whole};

/// Number of hosts that copy it from each other.
const HOSTS: usize = 8;
const LINE: &str = "scatter --size 1KiB -v";

/// Returns the log lines of a `-v` run about copies, with source and destination.
fn log_lines<'a>(finished: &'a Finished, text: &str) -> Vec<&'a str> {
    let lines = finished.stderr.lines();
    lines.filter(|line| line.contains(text)).collect()
}

/// Removes the program and its folder from hosts.
#[track_caller]
fn forget(hosts: &Hosts, on: Range<usize>) {
    for host in on {
        fs::remove_dir_all(hosts.home(host).join(".cache")).expect("it is there");
    }
}

/// Checks that each host has the program unchanged, and no other.
#[track_caller]
fn all_have_it(hosts: &Hosts, on: Range<usize>) {
    let expected = fs::read(hosts.path("flitcast")).expect("it was made");
    for host in on {
        let program = program(&hosts.home(host), ".cache/flitcast").expect("it is there");
        assert!(fs::read(&program).expect("it is there") == expected);
    }
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn the_program_is_copied_to_many_hosts_over_the_tree() {
    let hosts = Hosts::up(HOSTS);
    let all: Vec<usize> = (0..HOSTS).collect();
    let done = run(arguments(&hosts.cluster(&all, ""), LINE)).ok();
    let copied = log_lines(&done, "copying flitcast");
    assert_eq!(copied.len(), 1, "{done:?}");
    assert!(copied[0].contains("\"fcssh0\""), "{copied:?}");
    let taken = log_lines(&done, "taking flitcast");
    assert_eq!(taken.len(), HOSTS - 1, "{done:?}");
    for pe in 1..HOSTS {
        let fields = format!("destination=\"fcssh{pe}\" from=\"fcssh{}\"", pe / 2);
        assert!(taken.iter().any(|line| line.contains(&fields)), "{done:?}");
    }
    assert!(
        log_lines(&done, "cannot take flitcast").is_empty(),
        "{done:?}"
    );
    all_have_it(&hosts, 0..HOSTS);
    hosts.are_quiet();
    forget(&hosts, 0..HOSTS);

    // In a line, copies from host to host would not be faster.
    let in_line = hosts.cluster_in_line(&all, "");
    let done = run(arguments(&in_line, LINE)).ok();
    assert_eq!(
        log_lines(&done, "copying flitcast").len(),
        HOSTS,
        "{done:?}"
    );
    assert!(log_lines(&done, "taking flitcast").is_empty(), "{done:?}");
    forget(&hosts, 0..HOSTS);

    // Several PEs on a host count once, so there are too few hosts.
    let few = hosts.cluster(&[0, 1, 2, 3, 4, 5, 6, 6, 5], "");
    let done = run(arguments(&few, LINE)).ok();
    assert_eq!(log_lines(&done, "copying flitcast").len(), 7, "{done:?}");
    assert!(log_lines(&done, "taking flitcast").is_empty(), "{done:?}");
    // One host without the program is added.
    let done = run(arguments(&hosts.cluster(&all, ""), LINE)).ok();
    assert!(log_lines(&done, "copying flitcast").is_empty(), "{done:?}");
    assert_eq!(log_lines(&done, "taking flitcast").len(), 1, "{done:?}");
    all_have_it(&hosts, 0..HOSTS);
}

#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn given_up_half_way_nothing_is_left() {
    let hosts = Hosts::up(HOSTS);
    let all: Vec<usize> = (0..HOSTS).collect();
    let mut running = start(arguments(&hosts.cluster(&all, &whole()), LINE));
    running.wait_for(&["taking flitcast"]);
    running.interrupt();
    hosts.are_quiet();
    for host in 0..HOSTS {
        let cache = hosts.home(host).join(".cache/flitcast");
        let left = names_if_any(&cache);
        assert!(!left.iter().any(|name| name.ends_with(".new")), "{left:?}");
    }
}

/// P1's host has no tool to download with, and P2's host has another program.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_host_without_a_source_gets_the_program_from_the_coordinator() {
    let mut hosts = Hosts::up(HOSTS);
    let all: Vec<usize> = (0..HOSTS).collect();
    let tools = hosts.home(1).join("tools");
    fs::create_dir(&tools).expect("it can be made");
    let needed = "cat chmod dd head ls mkdir mv rm sh sha256sum timeout uname wc";
    for tool in needed.split(' ') {
        let paths = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        let path = paths.iter().find(|path| path.exists());
        symlink(path.expect("a host has it"), tools.join(tool)).expect("it can be made");
    }
    fs::write(hosts.home(1).join(".bashrc"), "PATH=/root/tools\n").expect("it can be written");
    // It could run as a PE and has the same length, but it is another program.
    run(arguments(&hosts.cluster(&[2, 3], ""), LINE)).ok();
    forget(&hosts, 3..4);
    let other = program(&hosts.home(2), ".cache/flitcast").expect("it was copied");
    let mut content = fs::read(&other).expect("it is there");
    *content.last_mut().expect("it is long") ^= 1;
    fs::write(&other, content).expect("it can be written");

    let cluster = hosts.cluster(&all, "");
    let done = run(arguments(&cluster, LINE)).ok();
    let refused = log_lines(&done, "cannot take flitcast");
    let refused = |host: usize, why: &str| {
        let host = format!("destination=\"fcssh{host}\"");
        let mut lines = refused.iter();
        lines.any(|line| line.contains(&host) && line.contains(why))
    };
    assert!(refused(1, "there is no bash, python3 or nc"), "{done:?}");
    let copied = log_lines(&done, "copying flitcast");
    assert_eq!(copied.len(), 2, "P0's and P1's: {done:?}");
    // P2's copy is replaced, too; P4 and P5, which are below it, copy from there.
    all_have_it(&hosts, 0..HOSTS);
    hosts.are_quiet();

    // An unreachable host does not prevent copies to the others.
    forget(&hosts, 3..HOSTS);
    hosts.stop_serving(3);
    let line = format!("{LINE} --retry 1");
    let retried = run(arguments(&cluster, &line));
    retried.fails(1, &["P3 pe 3 is dead (cannot be started: ssh fcssh3"]);
    retried.prints(&[" without P3 by fdf: 7 PEs"]);
    // P6 and P7 are below it.
    assert!(
        !log_lines(&retried, "fcssh3 has none").is_empty(),
        "{retried:?}"
    );
    all_have_it(&hosts, 4..HOSTS);
}

/// Another build is stored beside it, and a file that is not a program any more does not count.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn another_program_is_put_beside() {
    let hosts = Hosts::up(2);
    let cluster = hosts.cluster(&[0, 1], "");
    let cache = hosts.home(1).join(".cache/flitcast");
    fill(&cache.join("flitcast-0.0.9-0123456789abcdef"), 100);
    let line = "scatter --size 10KiB";
    run(arguments(&cluster, line)).ok();
    let both = names(&cache);
    assert_eq!(both.len(), 2, "{both:?}");
    assert_eq!(both[0], "flitcast-0.0.9-0123456789abcdef");
    // A program that cannot be run counts as missing.
    let other = cache.join(&both[1]);
    set_mode(&other, 0o600);
    run(arguments(&cluster, line)).ok();
    assert_eq!(names(&cache), both);

    // A program that is not one is not kept.
    let script = hosts.home(0).join("other");
    fs::write(&script, "#!/bin/sh\nexit 3\n").expect("it can be written");
    let binary = format!("binary = '{}'", script.display());
    let refused = run(arguments(&hosts.cluster(&[0, 1], &binary), line));
    refused.fails(1, &["copying flitcast there", "it does not run there"]);
    assert_eq!(names(&cache), both);
}

/// Files that another user has put in the place of the program, or could have.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_program_of_another_user_is_not_run() {
    const ANOTHER: Option<u32> = Some(65534);
    let hosts = Hosts::up(2);
    let shared = hosts.path("shared");
    let launch = format!("directory = '{}'", shared.display());
    let cluster = hosts.cluster(&[0, 1], &launch);
    let line = "scatter --size 10KiB";
    run(arguments(&cluster, line)).ok();
    let ours = program(&hosts.path(""), "shared").expect("both hosts have it there");
    let (marker, real) = (hosts.path("it-ran"), fs::read(&ours).expect("it is ours"));
    let theirs = format!(
        "#!/bin/sh\ntouch {}\nexec {} \"$@\"\n",
        marker.display(),
        hosts.path("flitcast").display()
    );
    let put_theirs = |owner, mode| {
        fs::remove_file(&ours).expect("it is there");
        fs::write(&ours, &theirs).expect("it can be written");
        chown(&ours, owner, owner).expect("this test needs root");
        set_mode(&ours, mode);
    };
    // Files that belong to other users, or to which others had write access.
    for (owner, mode) in [(ANOTHER, 0o755), (Some(0), 0o775)] {
        put_theirs(owner, mode);
        run(arguments(&cluster, line)).ok();
        let is_ours = fs::read(&ours).expect("it is there") == real;
        assert!(is_ours, "{owner:?} {mode:o}: it was replaced");
    }

    // Others still have write access, or could get it at any time.
    put_theirs(Some(0), 0o755);
    for (owner, mode) in [(ANOTHER, 0o755), (Some(0), 0o775), (Some(0), 0o1777)] {
        chown(&shared, owner, owner).expect("this test needs root");
        set_mode(&shared, mode);
        let refused = run(arguments(&cluster, line));
        let expected = format!("others can write in {}", shared.display());
        refused.fails(1, &["ssh fcssh", &expected, "[launch] directory"]);
    }
    assert!(!marker.exists(), "what is not ours was run");
}
