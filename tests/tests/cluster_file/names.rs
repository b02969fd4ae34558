//! Names of PEs: entries of inputs, options, reports and errors.

use flitcast_tests::files::{assert_same_below, fill, names, record, wait_for_partial};
use flitcast_tests::{Report, reported, resume, run, start};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{ClusterFile, PER_EDGE};

#[test]
fn entries_have_names_or_numbers() {
    let cluster = ClusterFile::of(PER_EDGE);
    for (name, number) in [("relay", "p1"), ("p2", "p2"), ("beside", "p3")] {
        cluster.0.put(&format!("named/{name}"), number);
    }
    let assert_numbered = |files: [&str; 3]| {
        assert_eq!(files.map(|file| cluster.0.read(file)), ["p1", "p2", "p3"]);
    };
    cluster
        .run("scatter --input @/named --output @/scattered")
        .ok();
    assert_numbered(["scattered/relay", "scattered/leaf", "scattered/beside"]);
    cluster
        .run("gather --input @/named --output @/gathered")
        .ok();
    cluster
        .run("scatter --input @/gathered --output @/again")
        .ok();
    assert_same_below(&cluster.path("gathered"), &cluster.path("again"));
    assert_same_below(&cluster.path("scattered"), &cluster.path("again"));
    assert_eq!(names(&cluster.path("again")), ["beside", "leaf", "relay"]);
    // A second run replaces what the first one has delivered, and nothing else is there.
    cluster.0.put("named/p2", "new");
    let line = "scatter --input @/named --output @/again --force";
    cluster.run(line).ok();
    assert_eq!(cluster.0.read("again/leaf"), "new");
    assert_eq!(names(&cluster.path("again")), ["beside", "leaf", "relay"]);
    cluster.0.put("named/p2", "p2");
    cluster.run(&line.replace("--force", "--update")).ok();
    assert_eq!(cluster.0.read("again/leaf"), "p2");
    // An entry with the number of a PE that has a name is the user's own.
    cluster.0.put("again/p1", "the user's");
    cluster
        .run("gather --input @/named --output @/again")
        .fails(2, &["it holds files already", "again/p1"]);
    let mut words = cluster.words("map --work @/work --input @/named --output @/mapped");
    words.extend(["--", "cat"].map(str::to_owned));
    run(words).ok();
    assert_numbered([
        "mapped/relay/stdout",
        "mapped/p2/stdout",
        "mapped/beside/stdout",
    ]);
    let mut words = cluster.words("map --spread --work @/work --input @/named --output @/spread");
    words.extend(["--", "ls"].map(str::to_owned));
    run(words).ok();
    assert_eq!(names(&cluster.path("spread")), ["beside", "leaf", "relay"]);
}

#[test]
fn folders_of_an_exchange_and_their_entries_have_names() {
    let cluster = ClusterFile::of(PER_EDGE);
    for path in ["root/leaf", "p1/beside", "leaf/p0"] {
        fill(&cluster.path(&format!("in/{path}")), 5);
    }
    cluster.run("exchange --input @/in --output @/out").ok();
    for (arrived, sent) in [
        ("leaf/root", "root/leaf"),
        ("beside/relay", "p1/beside"),
        ("root/leaf", "leaf/p0"),
    ] {
        let of = |path: &str| std::fs::read(cluster.path(path)).expect("it is there");
        assert_eq!(of(&format!("out/{arrived}")), of(&format!("in/{sent}")));
    }
    fill(&cluster.path("in/p2/p0"), 5);
    fill(&cluster.path("in/p1/nobody"), 5);
    cluster.run("exchange --input @/in --output @/other").fails(
        2,
        &[
            "in/leaf` and `",
            "in/p2` are both the entry of P2; remove one of them",
            "`p1/nobody` names no PE; this tree has p0..p3 (root, relay, leaf, beside)",
        ],
    );
}

#[test]
fn a_shard_of_a_gossip_has_a_name() {
    let cluster = ClusterFile::of(PER_EDGE);
    fill(&cluster.path("in/leaf"), 70_000);
    cluster.run("gossip --input @/in --output @/out").ok();
    for pe in ["root", "relay", "beside"] {
        assert_eq!(names(&cluster.path(&format!("out/{pe}"))), ["leaf"]);
    }
}

#[test]
fn entries_that_do_not_fit_are_refused() {
    let cluster = ClusterFile::of(PER_EDGE);
    for name in ["root", "relay", "p1", "other"] {
        fill(&cluster.path(&format!("in/{name}")), 1);
    }
    for line in ["scatter", "gather"] {
        let refused = cluster.run(&format!("{line} --input @/in --output @/out"));
        refused.fails(
            2,
            &[
                "`root` is the root of the tree, which has no message",
                "in/p1` and `",
                "in/relay` are both the entry of P1; remove one of them",
                "`other` names no PE; this tree has p1..p3 (relay, leaf, beside)",
            ],
        );
    }
}

#[test]
fn options_take_names() {
    let cluster = ClusterFile::of(PER_EDGE);
    for line in [
        "scatter --from leaf",
        "gather --to leaf",
        "broadcast --from leaf",
    ] {
        let done = cluster.run(&format!("{line} --size 1KiB")).ok();
        done.prints(&[" seen from P2", "\n  P2 leaf    -  "]);
        let refused = cluster.run(&format!("{} --size 1", line.replace("leaf", "nobody")));
        refused.fails(2, &["`nobody` is not a PE: write 3, P3, or its name"]);
    }
    for order in ["given:beside,relay,leaf", "given:3,1,P2"] {
        let done = cluster.run(&format!("scatter --size 1KiB --order {order} -v"));
        done.ok().prints(&["as given: "]);
    }
    let order = "gather --size 1KiB --algorithm certification --order given:beside,nobody";
    cluster.run(order).fails(
        2,
        &["--order: `nobody` is not a PE: write 3, P3, or its name"],
    );
    for line in [
        "plan scatter --lengths equal:1 --from LEAF",
        "plan scatter --lengths equal:1 --order given:LEAF,P1,3",
        "plan scatter --lengths equal:1 --setup 1 --order given:3,LEAF,P1",
        "plan gather --lengths equal:1 --order given:3,1,LEAF",
        "plan broadcast --size 1 --from LEAF",
        "compare broadcast --size 1 --from LEAF",
    ] {
        let by = |pe: &str| cluster.run(&line.replace("LEAF", pe)).ok().stdout;
        let [by_name, by_number] = ["leaf", "2"].map(by);
        assert_eq!(by_name, by_number);
    }
}

#[test]
fn log_lines_have_names() {
    let cluster = ClusterFile::of(PER_EDGE);
    let done = cluster.run("gather --size 1KiB -vv").ok();
    done.stderr_has(&["pe{pe=P1 relay}", "pe{pe=P2 leaf}"]);
    let done = cluster.run("gather --size 1KiB -vv --log-format json").ok();
    let mut names: Vec<Value> = Vec::new();
    for line in done.stderr.lines() {
        let line: Value = serde_json::from_str(line).expect("it is an object");
        let target = line["target"].as_str().unwrap_or_default();
        let is_from_a_pe = target.starts_with("flitcast_node");
        assert!(!is_from_a_pe || line["span"].is_object(), "{line}");
        if line["span"]["pe"] == "P3" {
            names.push(line["span"]["pe_name"].clone());
        }
    }
    assert!(!names.is_empty() && names.iter().all(|name| name == "beside"));
}

#[test]
fn reports_have_names() {
    let cluster = ClusterFile::of(PER_EDGE);
    let done = cluster.run("gather --size 1KiB").ok();
    done.prints(&["\n  P0 root ", "\n  P1 relay ", "\n  P3 beside  P0 "]);
    let report = cluster.report("gather --size 1KiB");
    let of = |report: &Report| -> Vec<_> {
        let pes = report.list("/pes").iter();
        pes.map(|pe| pe["name"].clone()).collect()
    };
    assert_eq!(of(&report), ["root", "relay", "leaf", "beside"]);
    let report = reported("gather --size 1KiB --tree star:2");
    assert_eq!(of(&report), [json!(null), json!(null)]);
}

#[test]
fn a_dead_pe_is_named_and_its_message_is_sent_later() {
    let cluster = ClusterFile::of(PER_EDGE);
    for name in ["relay", "leaf", "beside"] {
        fill(&cluster.path(&format!("in/{name}")), 3 << 20);
    }
    let line = "scatter --link rate=20mbit --input @/in --output @/out";
    let running = start(cluster.words(line));
    let output = cluster.path("out");
    wait_for_partial(&output);
    running.pe(2).signal(Signal::KILL);
    let expected = [
        "error: P2 leaf was killed by signal 9",
        "where: P2 leaf, process ",
    ];
    running.finish().fails(1, &expected);
    resume(&record(&output), "--revive").ok();
    assert_same_below(&cluster.path("in"), &cluster.path("out"));
}

#[test]
fn an_entry_whose_pe_is_called_like_another_entry_has_the_number() {
    let cluster = ClusterFile::of(
        "name = \"odd\"\n[network]\nkind = \"complete:4\"\n\
         [[pe]]\nname = \"root\"\naddress = \"127.0.1.1\"\n\
         [[pe]]\nname = \"p2\"\naddress = \"127.0.2.1\"\n\
         [[pe]]\nname = \"a/b\"\naddress = \"127.0.3.1\"\n\
         [[pe]]\nname = \".flitcast-map-x\"\naddress = \"127.0.4.1\"\n",
    );
    for name in ["p1", "p2", "p3"] {
        cluster.0.put(&format!("in/{name}"), name);
    }
    cluster.run("scatter --input @/in --output @/out").ok();
    assert_same_below(&cluster.path("in"), &cluster.path("out"));
}
