//! PEs that die on separate hosts: the remaining ones continue, and the missing messages are
//! delivered later. Each host has its own part of the files, and the user is logged in on the first
//! host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{assert_same_below, fill, identity, names_if_any};
use flitcast_tests::processes::eventually;
use flitcast_tests::ssh::Hosts;
use rustix::process::Signal;

use super::{arguments, hidden};

const HOSTS: u32 = 4;
const MIB: usize = 1 << 20;

/// A message: the PE that has it, and the one that it is for.
type Pair = (u32, u32);

/// An operation, with the input and the output of its messages below the homes of their hosts.
struct Operation {
    line: &'static str,
    input: &'static str,
    output: &'static str,
    /// Returns the message's names at both ends, if the operation has a message between these PEs.
    message: fn(Pair) -> Option<[String; 2]>,
}

const BROADCAST: Operation = Operation {
    line: "broadcast",
    input: "weights",
    output: "copy",
    message: |(from, _)| (from == 0).then(|| [String::new(), String::new()]),
};
const GOSSIP: Operation = Operation {
    line: "gossip",
    input: "shard",
    output: "shards",
    message: |(from, _)| Some([String::new(), format!("pe {from}")]),
};
const EXCHANGE: Operation = Operation {
    line: "exchange",
    input: "pieces",
    output: "pieces of others",
    message: |(from, to)| Some([format!("pe {to}"), format!("pe {from}")]),
};
const SCATTER: Operation = Operation {
    line: "scatter --from P2",
    input: "parts",
    output: "part",
    message: |(from, to)| (from == 2).then(|| [format!("pe {to}"), format!("pe {to}")]),
};
const GATHER: Operation = Operation {
    line: "gather --to P2",
    input: "result",
    output: "results",
    message: |(from, to)| (to == 2).then(|| [format!("pe {from}"), format!("pe {from}")]),
};

impl Operation {
    /// Returns the source and the destination of each message.
    fn places(&self, hosts: &Hosts) -> BTreeMap<Pair, [PathBuf; 2]> {
        let pairs = (0..HOSTS).flat_map(|from| (0..HOSTS).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to);
        let at = |pe: u32, folder: &str, name: &str| {
            let folder = hosts.home(pe as usize).join(folder);
            match name.is_empty() {
                true => folder,
                false => folder.join(name),
            }
        };
        let place = |(from, to): Pair| {
            let [sent, received] = (self.message)((from, to))?;
            let ends = [at(from, self.input, &sent), at(to, self.output, &received)];
            Some(((from, to), ends))
        };
        pairs.filter_map(place).collect()
    }

    /// Returns the delivered messages, each with values that differ if it is written again.
    fn there(&self, hosts: &Hosts) -> BTreeMap<Pair, (u64, i64)> {
        let mut there = BTreeMap::new();
        for (pair, [sent, received]) in self.places(hosts) {
            if received.exists() {
                assert_same_below(&sent, &received);
                there.insert(pair, identity(&received));
            }
        }
        there
    }

    /// Begins the operation and kills a PE while messages arrive. The remaining PEs then have all
    /// of each other's messages if a retry is requested and possible; all others can be delivered
    /// later, and nothing is sent twice.
    fn is_survived(&self, hosts: &Hosts, cluster: &Path, dies: u32, is_repaired: bool) {
        let context = format!("{}, P{dies} dies", self.line);
        let places = self.places(hosts);
        for ((from, _), [sent, _]) in &places {
            fill(&sent.join("file"), if *from == 3 { 20_000 } else { MIB });
        }
        let (from, to) = (self.input, self.output);
        let mut words = arguments(cluster, &format!("{} --retry 1 -v", self.line));
        words.extend([
            format!("--input=/root/{from}"),
            format!("--output=/root/{to}"),
        ]);
        let mut running = hosts.command_on(0, &words);
        running.wait_for(&["triggered"]);
        let victim = hosts.pe(dies);
        // Deliveries on this host give no information about the others.
        let here = places.iter().filter(|((_, to), _)| *to == 0);
        let here: Vec<&Path> = here.map(|(_, [_, received])| received.as_path()).collect();
        eventually("a message arrives, and of several one is here", || {
            let folders = places
                .values()
                .filter_map(|[_, received]| received.parent());
            let mut names = folders.flat_map(names_if_any);
            let arrives = names.any(|name| name.ends_with(".partial"));
            let is_here = here.len() < 2 || here.iter().any(|received| received.exists());
            (arrives && is_here).then_some(())
        });
        victim.signal(Signal::KILL);
        let failed = running.finish();
        assert_eq!(failed.code, Some(1), "{context}: {}", failed.stderr);
        hosts.are_quiet();

        let before = self.there(hosts);
        let survives = |pair: &&Pair| pair.0 != dies && pair.1 != dies;
        for pair in places.keys().filter(survives).filter(|_| is_repaired) {
            let stderr = &failed.stderr;
            assert!(before.contains_key(pair), "{context}: {pair:?}: {stderr}");
        }
        assert!(before.len() < places.len(), "{context}: nothing is missing");

        let printed = failed.stderr.lines().find_map(|line| {
            let record = line.strip_prefix("to go on: flitcast resume ")?;
            let record = record.strip_suffix(" --revive").unwrap_or(record);
            Some(record.trim_matches('\'').to_owned())
        });
        let record = printed.unwrap_or_else(|| panic!("{context}: {}", failed.stderr));
        let words = ["resume".to_owned(), record, "--revive".to_owned()];
        hosts.command_on(0, &words).finish().ok();
        hosts.are_quiet();
        let after = self.there(hosts);
        assert!(after.keys().eq(places.keys()), "{context}: {after:?}");
        for (pair, written) in &before {
            assert_eq!(after.get(pair), Some(written), "{context}: {pair:?}");
        }
        // Nothing of it is left except the dead PE's partial files.
        for host in 0..HOSTS {
            let home = hosts.home(host as usize);
            let output = home.join(self.output);
            let left = [&output, &home].into_iter().flat_map(|folder| {
                let left = hidden(folder).into_iter();
                left.map(|name| folder.join(name))
            });
            let left: Vec<PathBuf> = left.collect();
            assert!(host == dies || left.is_empty(), "{context}: {left:?}");
            for path in left.iter().chain([&output]).filter(|path| path.exists()) {
                match path.is_dir() {
                    true => fs::remove_dir_all(path).expect("it is there"),
                    false => fs::remove_file(path).expect("it is there"),
                }
            }
        }
    }
}

/// P1 is above P2 and P3. `among_all` has other algorithms and deaths, on one machine.
#[test]
#[ignore = "needs root, iproute2 and openssh-server"]
fn a_round_over_several_hosts_survives_a_dead_pe() {
    let hosts = Hosts::up(HOSTS as usize);
    let cluster = hosts.cluster(&[0, 1, 2, 3], "");
    flitcast_tests::run(arguments(&cluster, "gather --size 1KiB")).ok();
    hosts.send_at("20mbit");
    for (operation, dies, is_repaired) in [
        (BROADCAST, 1, true),
        (BROADCAST, 0, false),
        (GOSSIP, 1, true),
        (EXCHANGE, 0, false),
        (SCATTER, 2, false),
        (GATHER, 1, true),
    ] {
        operation.is_survived(&hosts, &cluster, dies, is_repaired);
    }
}
