//! `flitcast check`: it shows the content of a valid file, and all faults of an invalid one with
//! their positions. `--reach` tries the hosts.

use std::net::TcpListener;
use std::path::Path;

use flitcast_tests::files::set_mode;
use flitcast_tests::run::start_with;
use flitcast_tests::{Finished, Folder, rows, run, scratch};

const HOSTS: &str = r#"name = "three hosts"
coordinator = "10.0.0.9"

[security]
credentials = "keys"

[timeouts]
silence = "5s"

[[pe]]
name = "alpha"
address = "10.0.0.1"

[[pe]]
name = "beta"
address = "10.0.0.2"
parent = "alpha"

[[pe]]
name = "gamma"
address = "10.0.0.3"
parent = "alpha"
"#;

const NETWORK: &str = r#"link = "rate=200mbit,latency=1ms"
pe = [
    { name = "a", address = "127.0.0.1" },
    { name = "b", address = "127.0.0.2" },
    { name = "c", address = "127.0.0.3" },
    { name = "d", address = "127.0.0.4", link = "rate=50mbit" },
]
[network]
edges = [["a", "b"], ["b", "c"], ["c", "a"], ["c", "d"]]
"#;

#[track_caller]
fn folder_of(text: &str) -> Folder {
    let folder = scratch();
    folder.put("c.toml", text);
    folder
}

fn issue(folder: &Folder, pes: u32) {
    folder.run(&format!("ca init @/keys --pes {pes}")).ok();
}

#[test]
fn listed_hosts_are_shown() {
    let of = |line: &str| scratch().run(line).ok().stdout;
    let listed = of("check -w 127.0.0.[2-3]");
    assert!(listed.contains("P2 127.0.0.3"), "{listed}");
    assert_eq!(listed, of("check hosts:127.0.0.[2-3]"));
}

/// A name without an address may have one in the configuration of ssh.
#[test]
fn names_may_be_known_to_ssh_alone() {
    let folder = folder_of(HOSTS);
    let ssh = "#!/bin/sh\nname=$3\n[ $3 != fc.invalid ] || name=127.0.0.7\necho user me\necho hostname $name\n";
    set_mode(&folder.put("bin/ssh", ssh), 0o755);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).expect("no folder has a colon");
    let check = |line: &str| start_with(folder.words(line), &[("PATH", Path::new(&path))]).finish();
    check("check hosts:fc.invalid")
        .ok()
        .prints(&["P1 fc.invalid", "127.0.0.7"]);
    check("check hosts:fd.invalid").fails(2, &["no host `fd.invalid` is found"]);
}

#[track_caller]
fn check(folder: &Folder, more: &str) -> Finished {
    folder.run(&format!("check @/c.toml {more}"))
}

/// Returns the output without the folder, whose name differs each time.
fn without_path(folder: &Folder, output: &str) -> String {
    output.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn a_good_file_is_shown() {
    let folder = folder_of(HOSTS);
    issue(&folder, 2);
    let shown = check(&folder, "").ok();
    let expected = "\
three hosts
c.toml is good

  launch      local: all processes are started from this machine
  coordinator 10.0.0.9
  security    TLS 1.3 both ways, certificates in keys
              there and good: the coordinator, P0 alpha, P1 beta
              not there: P2 gamma; each must have its own where it runs
  timeouts    silence 5s (not 3s)

  P0 alpha     10.0.0.1
  ├─ P1 beta   10.0.0.2
  └─ P2 gamma  10.0.0.3

  PEs         3, 2 leaves
  depth       1
  children    at most 2 (none: 2 PEs, 2: 1)
  broadcast   B = 2
  hosts       not tried; --reach tries them
";
    assert_eq!(without_path(&folder, &shown.stdout), expected);
    assert_eq!(shown.stderr, "");
    let report = check(&folder, "--format json").ok().report();
    for [pointer, expected] in rows(
        r#"
        /good | true
        /security | "tls"
        /timeouts/silence | "5s"
        /timeouts/write | "10s"
        /pes/2/parent | 0
        /pes/2/name | "gamma"
        /pes/2/parent_address | "10.0.0.1"
        /certificates/2/is_here | true
        /certificates/3/is_here | false
        /broadcast_steps | 2
    "#,
    ) {
        assert_eq!(report.value(pointer).to_string(), expected, "{pointer}");
    }
}

#[test]
fn a_network_is_shown_from_its_root() {
    let folder = folder_of(NETWORK);
    let shown = check(&folder, "--root c --spanning broadcast").ok();
    let expected = "\
cluster:c.toml root c broadcast
c.toml is good

  launch      local: all processes are started from this machine
  coordinator 127.0.0.1
  security    a secret drawn for each launch; all is on loopback
  timeouts    the usual ones
  links       200mbit, 1ms, but to P3 d 50mbit

  P0 c        127.0.0.3
  ├─ P1 a     127.0.0.1
  │  └─ P2 b  127.0.0.2
  └─ P3 d     127.0.0.4

  PEs         4, 2 leaves
  depth       2
  children    at most 2 (none: 2 PEs, 1: 1, 2: 1)
  broadcast   B = 2, which no tree of this network beats
";
    assert_eq!(without_path(&folder, &shown.stdout), expected);
    // The PE's number gives the same result.
    let numbered = check(&folder, "--root 2 --spanning broadcast");
    assert_eq!(numbered.ok().stdout, shown.stdout);
    let shown = check(&folder, "--format json").ok().report();
    assert_eq!(shown.value("/pes/3/link"), "rate=50mbit");
    assert_eq!(shown.value("/pes/2/link"), "rate=200mbit,latency=1ms");
    assert_eq!(shown.value("/depth"), 2);
    for root in ["e", "4", "1.5"] {
        let expected =
            "is called so; write a name, or a number from 0 to 3 in the order of the file";
        check(&folder, &format!("--root {root}")).fails(2, &[expected]);
    }
}

#[test]
fn every_fault_is_shown_in_its_place() {
    let folder = folder_of(
        "coordinator = \"not here\"\n\
         [network]\n\
         edges = [[\"ä\", \"b\"], [\"b\", \"x\"], [\"x\", \"b\"]]\n\
         [[pe]]\nname = \"ä\"\naddress = \"10.0.0.1\"\n\
         [[pe]]\nname = \"b\"\naddress = \"10.0.0.2\"\nparent = \"ä\"\n\
         link = \"rate=1mbit\"\n",
    );
    let refused = check(&folder, "--format json").with_code(2);
    let expected = "\
error: c.toml:1:15: coordinator must be the address or the name of one host, in quotes, not `\"not here\"`
  1 | coordinator = \"not here\"
    |               ^
error: c.toml:3:28: no [[pe]] is called `x`
  3 | edges = [[\"ä\", \"b\"], [\"b\", \"x\"], [\"x\", \"b\"]]
    |                            ^
error: c.toml:10:10: b has a parent, and there is a [network]: both describe connections; give one of them
  10 | parent = \"ä\"
     |          ^
error: c.toml:11:8: link: only links between processes of one host are shaped, by the clock that all of them read, and ä has an address of a network, 10.0.0.1; take the link out
  11 | link = \"rate=1mbit\"
     |        ^
c.toml: 4 faults
";
    assert_eq!(without_path(&folder, &refused.stderr), expected);
    let report = refused.report();
    assert_eq!(report.value("/good"), false);
    assert_eq!(report.value("/faults/1/line"), 3);
    assert_eq!(report.value("/faults/1/column"), 28);
    assert_eq!(report.value("/faults/1/fault"), "no [[pe]] is called `x`");
    assert_eq!(report.value("/faults").as_array().map(Vec::len), Some(4));
}

/// Each error is reported at the position of the folder in the file, and an error of all of them
/// once.
#[test]
fn invalid_certificates_are_reported() {
    let folder = folder_of(HOSTS);
    let place = "error: c.toml:5:15: credentials: keys/";
    let faults = |expected: &[&str]| {
        let refused = check(&folder, "").with_code(2);
        let stderr = without_path(&folder, &refused.stderr);
        let faults = stderr.lines().filter(|line| line.starts_with("error: "));
        let faults: Vec<&str> = faults.collect();
        assert_eq!(faults.len(), expected.len(), "{stderr}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(&format!("{place}{expected}")), "{stderr}");
        }
    };
    faults(&["ca.pem: No such file"]);
    issue(&folder, 3);
    check(&folder, "").ok();
    for file in ["pem", "key"] {
        let [from, to] = ["p1", "p2"].map(|pe| folder.join(format!("keys/{pe}.{file}")));
        std::fs::copy(from, to).expect("it can be");
    }
    std::fs::remove_file(folder.join("keys/p0.key")).expect("it is there");
    let other = "p2.pem: the certificate is for P1, not for P2";
    faults(&["p0.key: No such file", other]);
    // A round also reports errors in the credentials of the coordinator.
    std::fs::remove_file(folder.join("keys/coordinator.pem")).expect("it is there");
    let gather = "gather --size 1 --cluster @/c.toml";
    let round = folder.run(gather).with_code(2);
    let stderr = without_path(&folder, &round.stderr);
    let expected = format!("{place}coordinator.pem: No such file");
    assert!(stderr.starts_with(&expected), "{stderr}");
    // The command line overrides the file.
    let typed = folder.run(&format!("{gather} --credentials /none"));
    let expected = "error: --credentials: /none/ca.pem: No such file";
    assert!(typed.stderr.starts_with(expected), "{}", typed.stderr);
}

#[test]
fn a_missing_file_and_a_wrong_option_are_reported() {
    let none = scratch().run("check /no/such/file").with_code(2);
    let expected = "error: cannot read the cluster file /no/such/file: No such file";
    assert!(none.stderr.starts_with(expected), "{}", none.stderr);
    let tree = check(&folder_of(HOSTS), "--root beta");
    tree.fails(2, &["--root belongs to --network: a --tree has its root"]);
}

/// Three PEs of this machine, of which the last one has these further keys.
#[track_caller]
fn three(last: &str) -> Folder {
    let pe = |name: &str, more: &str| {
        format!(
            "[[pe]]\nname = '{name}'\naddress = '127.0.0.{}'\n{more}\n",
            name.len()
        )
    };
    folder_of(&[pe("a", ""), pe("bb", "parent = 'a'"), pe("ccc", last)].concat())
}

#[test]
fn hosts_are_tried_without_a_pe() {
    let shown = check(&three("parent = 'a'\nrun = ['nice']"), "--reach").ok();
    let table = "
  PE               over  address    reached
  the coordinator  here  127.0.0.1  can listen
  P0 a             here  127.0.0.1  flitcast VERSION
  P1 bb            here  127.0.0.2  flitcast VERSION
  P2 ccc           here  127.0.0.3  flitcast VERSION
";
    let table = table.replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert!(shown.stdout.ends_with(&table), "{}", shown.stdout);

    let missing = three("parent = 'a'\nrun = ['/no/such']");
    let failed = check(&missing, "--reach --format json");
    let expected = "error: P2 ccc: cannot start /no/such: No such file or directory";
    failed.fails(1, &[expected]);
    let report = failed.report();
    assert_eq!(report.value("/good"), true);
    assert_eq!(report.value("/reach/3/pes/0"), 2);
    assert_eq!(report.value("/reach/3/found"), &serde_json::Value::Null);
    let fault = report.value("/reach/3/fault").to_string();
    assert!(fault.contains("cannot start /no/such"), "{fault}");

    // Documentation addresses belong to no machine.
    let elsewhere = folder_of(&HOSTS.replace("10.0.0.9", "192.0.2.9"));
    issue(&elsewhere, 3);
    let expected = "error: the coordinator: cannot listen on 192.0.2.9:0: ";
    check(&elsewhere, "--reach").fails(1, &[expected, "name an address of this machine"]);
}

#[test]
fn a_host_reports_unusable_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let here = listener.local_addr().expect("it listens");
    let expected = "cannot listen on 192.0.2.9 there: ";
    run(["self-reach", "192.0.2.9", &here.to_string()]).fails(1, &[expected, "correct `address`"]);
    let file = format!("coordinator = '{here}'\ntree = 'star:3'\n[launch]\nkind = 'join'\n");
    let expected = format!("error: the coordinator: {here} is in use: end the command");
    check(&folder_of(&file), "--reach").fails(1, &[&expected]);
    drop(listener);
    let expected = format!("{here} is not reached from there: ");
    run(["self-reach", "127.0.0.1", &here.to_string()])
        .fails(1, &[&expected, "correct `coordinator`"]);
}
