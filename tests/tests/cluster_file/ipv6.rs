//! All operations over IPv6: on `::1`, and on other addresses in a network namespace, which needs
//! root and `ip`.

use std::net::TcpListener;
use std::process::Command;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::processes::eventually;
use flitcast_tests::run::begin;
use flitcast_tests::run::run_program;
use flitcast_tests::scrape::{address, scrape};
use flitcast_tests::{Running, flitcast, start};

use super::ClusterFile;

/// Describes P0 with P1 and P2, and P3 below P1; P_i is at the address that `of` returns.
fn text(coordinator: &str, more: &str, of: impl Fn(usize) -> String) -> String {
    let mut text = format!("name = \"six\"\ncoordinator = \"{coordinator}\"\n{more}\n");
    let parents = ["", "parent = \"h0\"", "parent = \"h0\"", "parent = \"h1\""];
    for (pe, parent) in parents.into_iter().enumerate() {
        let address = of(pe);
        text += &format!("[[pe]]\nname = \"h{pe}\"\naddress = \"{address}\"\n{parent}\n");
    }
    text
}

/// Creates a cluster with messages for all PEs, and certificates.
fn furnished(text: &str) -> ClusterFile {
    let cluster = ClusterFile::of(text);
    for (pe, bytes) in [(1, 1), (2, 300_000), (3, 3_000_000)] {
        fill(&cluster.path(&format!("in/h{pe}")), bytes);
    }
    cluster.0.run("ca init @/ca --pes 4").ok();
    cluster
}

/// Runs all operations: files there and back, and a command in between.
#[track_caller]
fn all_operations(cluster: &ClusterFile, more: &str, begin: impl Fn(Vec<String>) -> Running) {
    let number = more.len();
    let complete = |line: &str, command: &str| {
        let line = line.replace("NUMBER", &number.to_string());
        let words = cluster.words(&format!("{line} {more}")).into_iter();
        let command = command.split_whitespace().map(str::to_owned);
        begin(words.chain(command).collect()).finish().ok();
    };
    complete("scatter --input @/in --output @/outNUMBER", "");
    complete("gather --input @/outNUMBER --output @/backNUMBER", "");
    for name in ["out", "back"] {
        let there = cluster.path(&format!("{name}{number}"));
        assert_same_below(&cluster.path("in"), &there);
    }
    let map = "map --input @/in --output @/countedNUMBER --work @/workNUMBER";
    complete(map, "-- wc -c");
    let count = cluster.0.read(&format!("counted{number}/h2/stdout"));
    assert_eq!(count.trim(), "300000");
}

#[test]
fn on_the_loopback() {
    let cluster = furnished(&text("::1", "", |_| "::1".to_owned()));
    all_operations(&cluster, "", start);
    all_operations(&cluster, "--credentials @/ca", start);
    let line = "gather --size 400GiB --metrics [::1]:0 -v";
    let mut running = start(cluster.words(line));
    let at = address(&mut running);
    assert!(at.is_ipv6(), "{at}");
    running.wait_for(&["triggered"]);
    let page = eventually("it is served", || scrape(at));
    assert!(page.text.contains("flitcast_"), "{}", page.text);
    running.interrupt();
}

#[test]
fn pes_join_over_it() {
    let free = TcpListener::bind("[::1]:0").expect("there is an IPv6 loopback");
    let at = free.local_addr().expect("it listens").to_string();
    let join = "[launch]\nkind = \"join\"\nwait = \"60s\"";
    let cluster = furnished(&text(&at, join, |_| "::1".to_owned()));
    let join = |pe: usize, shown: &str| {
        let line = format!("node --pe {pe} --join {at} --stay --metrics [::1]:0 {shown}");
        cluster.0.start(&line)
    };
    drop(free);
    let plain: Vec<_> = (0..4).map(|pe| join(pe, "--insecure")).collect();
    cluster.run("gather --size 100KiB --insecure").ok();
    flitcast_tests::joining::dismiss(plain);
    let guarded = "--credentials @/ca";
    let with_files = format!("--commands --files @ {guarded}");
    let mut nodes: Vec<_> = (0..4).map(|pe| join(pe, &with_files)).collect();
    all_operations(&cluster, guarded, start);
    let page = scrape(address(&mut nodes[3])).expect("it listens");
    assert!(page.text.contains("flitcast_"), "{}", page.text);
    flitcast_tests::joining::dismiss(nodes);
}

/// A network namespace with addresses outside of loopback, which is removed on drop.
struct Namespace(String);

impl Namespace {
    #[track_caller]
    fn new(addresses: &[String]) -> Namespace {
        let namespace = Namespace(format!("fc6-{}", std::process::id()));
        let name = &namespace.0;
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        for address in addresses {
            ip(&format!("-n {name} addr add {address}/128 dev lo nodad"));
        }
        namespace
    }

    /// Starts `flitcast` in it.
    fn start(&self, words: Vec<String>) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(flitcast());
        command.args(words);
        begin(command)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

#[track_caller]
fn ip(line: &str) {
    run_program(Command::new("ip").args(line.split_whitespace())).ok();
}

#[test]
#[ignore = "needs root and iproute2"]
fn on_addresses_that_are_nobodys_loopback() {
    let of = |pe: usize| format!("fd00:f1:17::{}", pe + 1);
    let namespace = Namespace::new(&(0..4).map(of).collect::<Vec<_>>());
    let cluster = furnished(&text("fd00:f1:17::1", "", of));
    let begin = |words| namespace.start(words);
    // With certificates for this run, because other hosts could listen in.
    all_operations(&cluster, "", begin);
    let line = "gather --size 1MiB --insecure --format json";
    let plain = namespace.start(cluster.words(line)).finish().ok().report();
    assert_eq!(plain.value("/security"), "insecure");
    let map = "map --insecure --input @/in --output @/never --work @/work";
    let mut words = cluster.words(map);
    words.extend(["--", "true"].map(str::to_owned));
    let expected = "anybody on the way could run commands on the hosts of the PEs";
    namespace.start(words).finish().fails(2, &[expected]);
}

/// Without a route, addresses that are reserved for documentation do not answer.
#[test]
#[ignore = "needs root and iproute2"]
fn of_the_addresses_of_a_name_one_that_answers_is_chosen() {
    let cluster = ClusterFile::of(
        "pe = [{ name = 'a', address = '127.0.0.1' },
            { name = 'twice', parent = 'a' }, { name = 'six', parent = 'a' }]",
    );
    let names = "192.0.2.1 twice\n127.0.0.2 twice\n2001:db8::1 six\n127.0.0.3 six\n";
    let names = cluster.0.put("hosts", names);
    let script = "ip link set lo up && mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "sh", "-c", script]);
    command.arg(names).arg(flitcast()).arg("check");
    command.arg(cluster.path("cluster.toml"));
    let checked = begin(command).finish().ok();
    checked.prints(&["P1 twice  127.0.0.2\n", "P2 six    127.0.0.3\n"]);
}
