//! Invalid trees.

use flitcast_tests::run::start_with;
use flitcast_tests::scratch;

use super::{refused_each_in, refused_in};

#[test]
fn a_tree_file_that_is_no_tree() {
    let dir = scratch();
    dir.put("t.toml", "parents = [0,\n0");
    refused_each_in(
        &dir,
        "scatter --size 1 --tree",
        "
        file:@/none.toml | /none.toml | No such file
        file:@/t.toml | t.toml:2:
        file:@ | cannot read the tree file
    ",
    );
}

#[test]
fn a_cluster_file_that_is_none() {
    let dir = scratch();
    dir.put("c.toml", "coordinator = 'not here'\n[[pe]]\nname = 'a'\n");
    let all = [
        "--cluster: ",
        "c.toml:1:15: coordinator must be the address or the name of one host, in quotes, not",
        "c.toml:2:1: a has no address",
    ];
    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --cluster @/c.toml --size 1 --flit-size big");
        refused_in(&dir, &line, &all);
        refused_in(&dir, &line, &["--flit-size"]);
    }
    let others = "plan scatter --lengths 1,1,1; compare gather --lengths 1,1,1; tree";
    for other in others.split("; ") {
        refused_in(&dir, &format!("{other} --cluster @/c.toml"), &all);
    }
    refused_each_in(
        &dir,
        "scatter --size 1 --cluster",
        "
        @/none.toml | cannot read the cluster file | /none.toml | No such file
        @/c.toml --tree path:2 | --tree and --cluster: use one of them
    ",
    );
}

/// One error lists all hosts; this machine is not among them.
#[test]
fn hosts_that_are_not_found() {
    let dir = scratch();
    let path = ".config/clustershell/groups.d/local.cfg";
    dir.put(path, "lab: g[01-03].invalid\n");
    let home = [("HOME", dir.path())];
    for (hosts, missing) in [
        ("-w n[1-3].invalid", "n[1-3].invalid"),
        ("-w me@n[1-2].invalid,127.0.0.1", "n[1-2].invalid"),
        ("-g lab", "g[01-03].invalid"),
        ("-g @lab -x g02.invalid", "g[01,03].invalid"),
        ("-g lab -w n7.invalid", "g[01-03].invalid,n7.invalid"),
    ] {
        let line = format!("scatter {hosts} --size 1");
        let run = start_with(line.split(' '), &home).finish();
        run.fails(2, &[&format!(": no host `{missing}` is found: ")]);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    let check = "check -w n[1-3].invalid";
    dir.run(check)
        .fails(2, &["no host `n[1-3].invalid` is found: "]);
    let both = "check c.toml -w n1.invalid";
    dir.run(both).fails(2, &["cannot be used with"]);
}
