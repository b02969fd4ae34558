//! Good files, and files in which every fault must be found at once.

use super::*;
use crate::files::user_file::printed;

fn parents(text: &str) -> Vec<u32> {
    let tree = match parse(text) {
        Ok(file) => file.tree,
        Err(faults) => panic!("{faults:?}"),
    };
    let parents = tree.pes().filter_map(|pe| tree.parent(pe));
    parents.map(|pe| pe.0).collect()
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    assert_eq!(printed(parse(text).unwrap_err()), expected);
}

#[test]
fn the_long_form_in_any_order() {
    let text = "# a tree of 4 PEs\nroot = 0\n[[pe]]\nid = 2\nparent = 0\n\
                [[pe]]\nid = 0\n[[pe]]\nid = 3\nparent = 2\n[[pe]]\nid = 1\nparent = 0\n";
    assert_eq!(parents(text), [0, 0, 2]);
    assert_eq!(parents("pe = [{id = 0}, {id = 1, parent = 0}]"), [0]);
    assert!(parents("[[pe]]\r\nid = 0\r\n").is_empty());
}

#[test]
fn the_short_form() {
    assert_eq!(parents("parents = [0, 0, 1]"), [0, 0, 1]);
    let lines = "root = 0\nparents = [\n  0, # P1\n  0x1,\n]";
    assert_eq!(parents(lines), [0, 1]);
    assert!(parents("parents = []").is_empty());
}

#[test]
fn five_faults_are_five_lines() {
    let text = "\
root = 0
colour = \"red\"
[[pe]]
id = 0
[[pe]]
id = 1
parent = 9
[[pe]]
id = 2
parent = 3
[[pe]]
id = 3
parent = 2
[[pe]]
id = 4
parent = 3
[[pe]]
id = 5
[[pe]]
id = 5
parent = 0
weight = 3
[[pe]]
parent = 0
";
    let expected = [
        "t:2:1: unknown key `colour`; known here: root, pe, parents, edges",
        "t:7:10: P1: parent P9 does not exist (the last PE is P5)",
        "t:10:10: cycle: P2 -> P3 -> P2 (each names the next as its parent); P4 hangs below it",
        "t:18:6: several roots: P5 has no parent, and only P0 may have none",
        "t:20:6: P5: there is a [[pe]] with this id in line 18 already; \
         no [[pe]] is given for P6, P7",
        "t:22:1: unknown key `weight`; known here: id, parent",
        "t:23:1: this [[pe]] has no id; no [[pe]] is given for P6, P7",
    ];
    refused(text, &expected);
}

#[test]
fn the_short_form_names_the_line_of_the_element() {
    let text = "parents = [\n  0,\n  7,\n  3,\n  \"x\",\n  -1,\n  6,\n]\n";
    let expected = [
        "t:3:3: P2: parent P7 does not exist (the last PE is P6)",
        "t:4:3: P3 is its own parent",
        "t:5:3: the parent of P4 must be a whole number from 0 to 1048575, not `\"x\"`",
        "t:6:3: the parent of P5 must be a whole number from 0 to 1048575, not `-1`",
        "t:7:3: P6 is its own parent",
    ];
    refused(text, &expected);
}

#[test]
fn a_gap_in_the_ids_is_one_fault() {
    // P2 became P20 by a slip; its child and the rest are not at fault.
    let text = "pe = [{id = 0}, {id = 1, parent = 0},\n{id = 20, parent = 1},\n\
                {id = 3, parent = 20}]";
    let fault = "t:2:7: P20: with 4 PEs, the ids must be 0 to 3; no [[pe]] is given for P2";
    refused(text, &[fault]);
    // Numbered from 1.
    let text = "[[pe]]\nid = 1\nparent = 2\n[[pe]]\nid = 2";
    let expected = [
        "t:5:6: P2: with 2 PEs, the ids must be 0 to 1; no [[pe]] is given for P0",
        "t:5:6: several roots: P2 has no parent, and only P0 may have none",
    ];
    refused(text, &expected);
    let errors = printed(parse(&"[[pe]]\nid = 9\n".repeat(9)).unwrap_err());
    assert!(errors[0].ends_with("no [[pe]] is given for P0, P1, P2, P3 ..."));
}

#[test]
fn two_on_a_line_with_one_id_are_two_of_that_id() {
    let text = "pe = [{id = 0}, {id = 1, parent = 0}, {id = 1, parent = 0}]";
    let fault = "t:1:45: P1: there is a [[pe]] with this id in line 1 already; \
                 no [[pe]] is given for P2";
    refused(text, &[fault]);
}

#[test]
fn the_root_is_p0_without_a_parent() {
    let fault = "t:1:8: root must be 0: every tree's root is P0 (number the PEs so that it is)";
    refused("root = 1\nparents = [0]", &[fault]);
    let text = "[[pe]]\nid = 0\nparent = 1\n[[pe]]\nid = 1\nparent = 0";
    let fault = "t:3:10: no root: every PE has a parent; P0 must have none, and has P1";
    refused(text, &[fault]);
    let fault = "t:3:10: parent must be a whole number from 0 to 1048575, not `\"none\"`";
    refused("[[pe]]\nid = 0\nparent = \"none\"", &[fault]);
}

#[test]
fn pes_that_are_missing_or_given_twice_are_refused() {
    let no_pes = "no PEs: give a [[pe]] table for each, or parents = [...]";
    refused("", &[&format!("t: {no_pes}")]);
    refused("\npe = []", &[&format!("t:2:6: {no_pes}")]);
    let text = "parents = [0]\n[[pe]]\nid = 0";
    let fault = "t:1:1: the PEs are given twice: use either [[pe]] or parents = [...]";
    refused(text, &[fault]);
    let fault = "t:1:1: pe must be [[pe]] tables, in double brackets, not `[pe]`";
    refused("[pe]\nid = 0", &[fault]);
    refused(
        "parents = 3",
        &["t:1:11: parents must be a list of indices, not `3`"],
    );
    let fault = "t:1:7: pe must be a table with id and parent, not `1`";
    refused("pe = [1, {id = 0}]", &[fault]);
}

#[test]
fn all_that_is_not_toml_is_listed_too() {
    let errors = printed(parse("root = = 0\n[[pe]]\nid 0\n").unwrap_err());
    assert!(errors[0].starts_with("t:1:8: "), "{errors:?}");
    assert!(errors[2].starts_with("t:3:"), "{errors:?}");
    refused("[[pe]]\nid = 0\nid = 1\n", &["t:3:1: duplicate key"]);
    // Deep nesting is refused, not recursed into.
    assert!(parse(&format!("parents = {}", "[".repeat(200_000))).is_err());
}

#[test]
fn links_are_read_with_the_tree() {
    let text = "parents = [0, 0, 1]\n\
                [[edges]]\nchild = 3\nrate = \"50mbit\"\nlatency = \"3ms\"\n\
                up = { rate = \"10mbit\" }\n\
                [[edges]]\nchild = 1\n[edges.down]\nlatency = \"1us\"\n";
    let links = parse(text).unwrap().links;
    let printed = links.iter().map(|(pe, link)| format!("{pe}: {link}"));
    let expected = [
        "P1: 1us down and unlimited rate up",
        "P3: 50mbit, 3ms down and 10mbit, 3ms up",
    ];
    assert_eq!(printed.collect::<Vec<_>>(), expected);
    assert!(parse("parents = [0]\nedges = []").unwrap().links.is_empty());
}

#[test]
fn all_faults_of_links_are_reported_by_line() {
    let text = "\
parents = [0, 0]
[[edges]]
child = 2
rate = 50
latency = \"3\"
colour = 1
[[edges]]
child = 0
rate = \"1mbit\"
[[edges]]
rate = \"1kb\"
[[edges]]
child = 2
down = { rate = \"2mbit\", delay = 3 }
up = \"1ms\"
[[edges]]
child = 1
[[edges]]
child = 7
rate = \"1gbit\"
latency = \"1s\"
[[edges]]
child = \"P1\"
latency = \"1s\"
down = { rate = \"1gbit\" }
";
    let expected = [
        "t:4:8: rate must be a text like \"200mbit\", not `50`",
        "t:5:11: latency: `3` has no unit; the units are ns, us, ms, s",
        "t:6:1: unknown key `colour`; known here: child, rate, latency, down, up",
        "t:8:9: no edge leads to P0: an edge is named by the PE at its lower end",
        "t:10:1: this [[edges]] has no child: an edge is named by the PE at its lower end",
        "t:11:8: rate: `1kb`: unknown unit `kb`; the units are kbit, mbit, gbit",
        "t:13:9: the edge to P2 is given in line 3 already",
        "t:14:26: unknown key `delay`; known here: rate, latency",
        "t:15:6: up must be a table with rate or latency, not `\"1ms\"`",
        "t:16:1: this [[edges]] describes no link: give rate, latency, down or up",
        "t:18:1: 1gbit, 1s: 119.2 MiB would be under way at a time, more than the 2 MiB that \
         sockets have room for: choose a lower rate or a shorter latency",
        "t:19:9: no edge leads to P7: an edge is named by the PE at its lower end",
        "t:23:9: child must be a whole number from 0 to 1048575, not `\"P1\"`",
        "t:25:8: 1gbit, 1s: 119.2 MiB would be under way at a time, more than the 2 MiB that \
         sockets have room for: choose a lower rate or a shorter latency",
    ];
    refused(text, &expected);
    let fault = "t:2:1: edges must be [[edges]] tables, in double brackets, not `[edges]`";
    refused("parents = [0]\n[edges]\nchild = 1", &[fault]);
    let fault = "t:1:10: edges must be a table with child and rate or latency, not `1`";
    refused("edges = [1]\nparents = []", &[fault]);
}

#[test]
fn too_many_pes_are_refused() {
    let text = format!("parents = [{}]", "0,".repeat(MAX_PES));
    let fault = "t:1:11: there are 1048577 PEs, more than the 1048576 that are allowed";
    refused(&text, &[fault]);
    let text = format!("parents = [{}]", "0,".repeat(MAX_PES - 1));
    assert_eq!(parents(&text).len(), MAX_PES - 1);
}

#[test]
fn load_names_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "parents = [0,\n5]").unwrap();
    let error = load(file.path()).unwrap_err().to_string();
    let path = file.path().display();
    let expected = format!("{path}:2:1: P2: parent P5 does not exist (the last PE is P2)");
    assert_eq!(error, expected);
    assert_eq!(FILE.max_bytes, 67_108_864);
}
