//! Inputs with wildcards, which each PE expands in its own entry.

use flitcast_tests::files::{fill, names};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::{hosts, rows, scratch};

/// Each PE sends the files that match in its own entry, by its number or its name.
#[test]
fn a_gather_takes_what_matches() {
    let dir = scratch();
    for (pe, files) in [(0, 1), (1, 2), (3, 3)] {
        for file in 0..files {
            fill(&dir.join(format!("host/p{pe}/var/{file}.log")), 1000 * file);
            fill(&dir.join(format!("host/p{pe}/var/deep/{file}.log")), 10);
        }
        fill(&dir.join(format!("host/p{pe}/var/other.txt")), 10);
    }
    let logs = "gather --tree kary:2:4 --input @/host/p*/var/*.log --output @/logs";
    // P0 has no message.
    dir.run(logs).ok();
    assert_eq!(names(&dir.join("logs")), ["p1", "p3"]);
    assert_eq!(names(&dir.join("logs/p1")), ["0.log", "1.log"]);
    assert_eq!(names(&dir.join("logs/p3")), ["0.log", "1.log", "2.log"]);
    for (pe, file) in [(1, 0), (1, 1), (3, 0), (3, 1), (3, 2)] {
        let sent = std::fs::read(dir.join(format!("host/p{pe}/var/{file}.log")));
        let received = std::fs::read(dir.join(format!("logs/p{pe}/{file}.log")));
        assert_eq!(sent.expect("it was written"), received.expect("it arrived"));
    }
    // A repeated command sends nothing.
    dir.run(logs).ok();
    // All PEs are found by their entries, if no option says how many there are.
    dir.run("gossip --input @/host/p*/var/d*p --output @/all")
        .ok();
    assert!(dir.join("all/p1/p3/deep/2.log").exists());
    assert!(dir.join("all/p3/p0/deep/0.log").exists());
    let broadcast = "broadcast --tree star:3 --input @/host/p3/var/?.log --output @/copies";
    dir.run(broadcast).ok();
    dir.run(broadcast).ok();
    assert!(dir.join("copies/p2/2.log").exists());
    for [line, why] in rows(
        "
        gather --tree kary:2:4 --input @/host/p[2x]/var/*.log | nothing matches
        gather --tree kary:2:4 --input @/host/p*/nothing/* | nothing matches
        gather --tree kary:2:4 --input @/ho*/p* | write p* for the entry of each PE
        scatter --tree star:4 --input @/host/p*/var | has wildcards, which a gather
    ",
    ) {
        dir.run(&format!("{line} --output @/none")).fails(2, &[why]);
    }
    assert!(!dir.join("none").exists());
}

/// Sets of characters and `*` choose among the entries of PEs, by their numbers or names.
#[test]
fn wildcards_choose_entries() {
    let dir = scratch();
    for pe in ["p1", "p2", "p3", "a[1]", "other"] {
        dir.put(&format!("host/{pe}/app.log"), pe);
        dir.put(&format!("single/{pe}"), pe);
    }
    dir.run("gather --input @/host/p[13]/*.log --output @/sets")
        .ok();
    assert_eq!(names(&dir.join("sets")), ["p1", "p3"]);
    assert_eq!(dir.read("sets/p3/app.log"), "p3");
    dir.run("gather --input @/host/*/*.log --output @/all").ok();
    assert_eq!(names(&dir.join("all")), ["p1", "p2", "p3"]);
    // An entry that is a file stays one.
    dir.run("gather --input @/single/p[!1] --output @/files")
        .ok();
    assert_eq!(dir.read("files/p2"), "p2");
    // A folder that is called like a pattern is meant itself.
    dir.put("b[d]/p1", "literal");
    dir.put("bd/p1", "matched");
    dir.run("gather --input @/b[d] --output @/literal").ok();
    assert_eq!(dir.read("literal/p1"), "literal");
    let network = "[network]\nkind = 'complete:4'\n";
    dir.put("c.toml", network.to_owned() + &hosts(&[""; 4]));
    for name in ["b", "c", "d"] {
        dir.put(&format!("nb/{name}"), name);
    }
    let named = "gather --cluster @/c.toml --input @/nb/[bd] --output @/named";
    dir.run(named).ok();
    assert_eq!(names(&dir.join("named")), ["b", "d"]);
    dir.run("gather --cluster @/c.toml --input @/nb/[xy] --output @/none")
        .fails(2, &["nothing matches", "(b, c, d)"]);
    dir.run("gather --input @/nb/[bd] --output @/none")
        .fails(2, &["none of 3 entries is named like a PE"]);
}

/// On other hosts only a PE itself finds that nothing matches.
#[test]
fn pes_elsewhere_without_a_match_are_named() {
    let cluster = Joining::new(&[0, 0, 1], "60s");
    for name in ["in/p1/a.log", "in/p2/b.txt", "in/p3/c.txt"] {
        fill(&cluster.path(name), 1000);
    }
    let nodes = cluster.nodes("--stay");
    let gather = |input: &str, output: &str| {
        let line = format!("gather --input DIR/in/{input} --output DIR/{output}");
        cluster.guarded(&line).finish().ok()
    };
    for _ in ["sent", "there already"] {
        let some = gather("p*/*.log", "logs");
        some.stderr_has(&[
            "warning: --input ",
            "/in/p*/*.log`: nothing matches at P2 h2, P3 h3\n",
        ]);
    }
    assert_eq!(names(&cluster.path("logs")), ["h1"]);
    let all = gather("p*/?.*", "all");
    assert!(!all.stderr.contains("warning"), "{}", all.stderr);
    dismiss(nodes);
}
