//! A good file, and files in which every fault must be found at once.

use super::*;

fn good(text: &str) -> ClusterFile {
    match parse(text) {
        Ok(cluster) => cluster,
        Err(faults) => panic!("{faults:?}"),
    }
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let faults = parse(text).unwrap_err();
    let path = "t".into();
    let message = ClusterFileError::Faults { path, faults }.to_string();
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn hosts_on_one_network() {
    let cluster = good(
        "name = 'rack'\ncoordinator = '10.0.0.254'\n\
         [launch]\nkind = 'local'\n\
         [[pe]]\nname = 'a'\naddress = '10.0.0.1'\nrun = ['nice', '-n', '5']\n\
         [[pe]]\nname = 'c'\naddress = '10.0.0.3'\nparent = 'b'\n\
         [[pe]]\nname = 'b'\naddress = '10.0.0.2'\nparent = 'a'\n",
    );
    assert_eq!(cluster.name.as_deref(), Some("rack"));
    assert_eq!(cluster.tree.parent(PeId(1)), Some(PeId(2)));
    assert_eq!(cluster.tree.parent(PeId(2)), Some(PeId(0)));
    let placement = cluster.placement;
    assert_eq!(placement.coordinator, ip("10.0.0.254"));
    assert_eq!(placement.places[0].run, ["nice", "-n", "5"]);
    assert_eq!(placement.places[1].name.as_deref(), Some("c"));
    // Everybody listens where it is reached, and nowhere else.
    let listen: Vec<IpAddr> = placement.places.iter().map(|place| place.listen).collect();
    assert_eq!(listen, [ip("10.0.0.1"), ip("10.0.0.3"), ip("10.0.0.2")]);
    assert_eq!(placement.parent_address(PeId(1), PeId(2)), ip("10.0.0.2"));
    assert!(placement.has_any_edge());
}

#[test]
fn an_address_for_each_edge() {
    let cluster = good(
        "[[pe]]\nname = 'a'\naddress = '10.0.1.1'\n\
         [[pe]]\nname = 'b'\naddress = '10.0.1.2'\nparent = 'a'\nparent_address = '10.0.1.1'\n\
         [[pe]]\nname = 'c'\naddress = '10.0.2.2'\nparent = 'a'\nparent_address = '10.0.2.1'\n\
         [[pe]]\nname = 'd'\naddress = '10.0.3.2'\nparent = 'b'\nparent_address = '10.0.3.1'\n",
    );
    let placement = cluster.placement;
    let parent = |child| {
        let parent = cluster.tree.parent(PeId(child)).unwrap();
        placement.parent_address(PeId(child), parent)
    };
    assert_eq!(
        [1, 2, 3].map(parent),
        [ip("10.0.1.1"), ip("10.0.2.1"), ip("10.0.3.1")]
    );
    assert_eq!(placement.places[0].listen, ip("0.0.0.0"));
    // Its only child reaches it there.
    assert_eq!(placement.places[1].listen, ip("10.0.3.1"));
    assert!(!placement.has_any_edge());
    assert_eq!(placement.coordinator, ip("127.0.0.1"));
    assert_eq!(cluster.name, None);
}

#[test]
fn every_fault_is_a_line() {
    let text = "\
colour = 'red'
coordinator = 'here'
[launch]
kind = 'ssh'
[[pe]]
name = 'a'
address = '0.0.0.0'
parent_address = '10.0.0.1'
[[pe]]
address = '10.0.0.2'
parent = 'z'
[[pe]]
name = 'a'
parent = 7
run = 'nice'
[[pe]]
name = 'c'
address = '10.0.0.4'
parent = 'c'
host = 'h'
[[pe]]
name = ''
address = '10.0.0.5'
";
    let address = "must be the IP address of one host, in quotes, not";
    refused(
        text,
        &[
            "t:1: unknown key `colour`; known here: name, coordinator, launch, pe",
            &format!("t:2: coordinator {address} `'here'`"),
            "t:4: kind must be \"local\", not `'ssh'`",
            &format!("t:7: address {address} `'0.0.0.0'`"),
            "t:8: a has a parent_address and no parent",
            "t:9: this [[pe]] has no name",
            "t:11: ?: no [[pe]] is called `z`",
            "t:12: a has no address: say where its children reach it",
            "t:12: there is a [[pe]] called `a` in line 5 already",
            "t:14: parent must be a name in quotes, not `7`",
            "t:15: run must be a list of words, like [\"nice\", \"-5\"], not `'nice'`",
            "t:19: c: P3 is its own parent (the PEs are P0, P1, .. in the order of the file)",
            "t:20: unknown key `host`; known here: name, address, parent, parent_address, run",
            "t:21: ?: several roots: P4 has no parent, and only P0 may have none (the PEs are P0, P1, .. in the order of the file)",
            "t:22: name must be a name in quotes, not `''`",
        ],
    );
}

#[test]
fn what_is_no_cluster() {
    refused("", &["t: no PEs: give a [[pe]] table for each"]);
    refused("pe = []", &["t:1: no PEs: give a [[pe]] table for each"]);
    refused(
        "pe = 3",
        &["t:1: pe must be [[pe]] tables, in double brackets, not `3`"],
    );
    refused(
        "launch = 1\npe = [1]",
        &[
            "t:1: launch must be a table, [launch], not `1`",
            "t:2: pe must be a table with name and address, not `1`",
        ],
    );
    let faults = parse("[[pe]]\nname =\n").unwrap_err();
    assert_eq!(faults[0].line, Some(2));
}
