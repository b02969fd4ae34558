//! A valid file, and files in which all faults must be found at once.

mod starters;

use std::net::IpAddr;

use flitcast_proto::{PeId, Tree};

use super::*;
use crate::files::user_file::printed;
use crate::site::placement::Launch;
use crate::site::reachability::Spanned;

fn good(text: &str) -> ClusterFile {
    match parse(text) {
        Ok(cluster) => cluster,
        Err(faults) => panic!("{faults:?}"),
    }
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    assert_eq!(printed(parse(text).unwrap_err()), expected);
}

/// Checks files with one fault each: the rows have the beginnings of files and their faults, and `rest`
/// is the end of all files.
#[track_caller]
fn refused_each(rest: &str, rows: &str) {
    for row in rows.trim().lines() {
        let (text, fault) = row.split_once(" | ").unwrap();
        let text = text.trim().replace("\\n", "\n");
        refused(&format!("{text}\n{rest}"), &[fault]);
    }
}

fn tree(cluster: &ClusterFile) -> &Tree {
    match &cluster.edges {
        Edges::Tree(tree) => tree,
        Edges::Network(_) => panic!("it is a network"),
    }
}

fn network(cluster: &ClusterFile) -> &Spanned {
    match &cluster.edges {
        Edges::Network(spanned) => spanned,
        Edges::Tree(_) => panic!("it is a tree"),
    }
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
    assert_eq!(tree(&cluster).parent(PeId(1)), Some(PeId(2)));
    assert_eq!(tree(&cluster).parent(PeId(2)), Some(PeId(0)));
    let placement = cluster.placement;
    assert_eq!(placement.coordinator, ip("10.0.0.254"));
    assert_eq!(placement.places[0].run, ["nice", "-n", "5"]);
    assert_eq!(placement.places[1].name.as_deref(), Some("c"));
    // Each PE listens only on the address at which it is reached.
    let listen: Vec<IpAddr> = placement.places.iter().map(|place| place.listen).collect();
    assert_eq!(listen, [ip("10.0.0.1"), ip("10.0.0.3"), ip("10.0.0.2")]);
    assert_eq!(placement.address_for(PeId(2), PeId(1), 0), ip("10.0.0.2"));
    assert!(placement.has_any_edge());
}

#[test]
fn hosts_with_several_network_cards() {
    let cluster = good(
        "[[pe]]\nname = 'a'\naddresses = ['10.0.0.1', '10.1.0.1']\n\
         [[pe]]\nname = 'b'\naddresses = ['10.0.0.2', '10.1.0.2']\nparent = 'a'\n",
    );
    let placement = cluster.placement;
    assert_eq!(placement.rails(), 2);
    let reached = [0, 1].map(|rail| placement.address_for(PeId(0), PeId(1), rail));
    assert_eq!(reached, [ip("10.0.0.1"), ip("10.1.0.1")]);
    assert_eq!(placement.places[0].listen, ip("0.0.0.0"));
    assert!(placement.has_any_edge(), "on each rail");
}

#[test]
fn neighbours_with_links_of_their_own() {
    let cluster = good(
        "[network]\nedges = [['a', 'b'], ['b', 'c'], ['c', 'a']]\n\
         [[pe]]\nname = 'a'\naddress = '10.0.0.1'\nreached_by = [['b', '10.0.1.1'], ['c', '10.0.2.1']]\n\
         [[pe]]\nname = 'b'\naddress = '10.0.0.2'\nreached_by = [['a', '10.0.1.2']]\n\
         [[pe]]\nname = 'c'\naddress = '10.0.0.3'\n",
    );
    // P0 is placed on the second node, so that other PEs have other numbers.
    let placement = cluster.placement.renumbered(&[1, 0, 2]);
    let [b, a, c] = [0, 1, 2].map(PeId);
    assert_eq!(placement.address_for(a, b, 0), ip("10.0.1.1"));
    assert_eq!(placement.address_for(a, c, 0), ip("10.0.2.1"));
    assert_eq!(placement.address_for(b, a, 0), ip("10.0.1.2"));
    assert_eq!(placement.address_for(c, b, 0), ip("10.0.0.3"));
    assert!(placement.has_link_for(a, b) && placement.has_link_for(c, a));
    assert!(!placement.has_link_for(b, c) && !placement.has_any_edge());
    assert_eq!(placement.places[1].listen, ip("0.0.0.0"));
    assert_eq!(placement.places[2].listen, ip("10.0.0.3"));
}

#[test]
fn faults_of_several_addresses_are_reported() {
    refused(
        "[[pe]]\nname = 'a'\naddresses = ['10.0.0.1', '10.1.0.1']\naddress = '10.0.0.1'\n\
         [[pe]]\nname = 'b'\naddress = '10.0.0.2'\nparent = 'a'\nreached_by = [['b', '10.0.0.3'], ['x', '10.0.0.4']]\n\
         [[pe]]\nname = 'c'\naddresses = ['10.0.0.1', '10.0.0.1']\nparent = 'a'\nreached_by = [['a']]\n",
        &[
            "t:3:13: address and addresses are both given: give one of them",
            "t:5:1: b has another number of addresses (1) than a (2)",
            "t:9:15: b: it is to be reached by itself",
            "t:9:34: b: no [[pe]] is called `x`",
            "t:12:13: addresses must be a list of 2 to 16 addresses, all different, not `['10.0.0.1', '10.0.0.1']`",
            "t:14:15: reached_by must be a list of a name and an address each, like [[\"a\", \"198.18.0.5\"]], not `['a']`",
        ],
    );
}

#[test]
fn an_address_for_each_edge() {
    let cluster = good(
        "[[pe]]\nname = 'a'\naddress = '10.0.1.1'\n\
         [[pe]]\nname = 'b'\naddress = '10.0.1.2'\nparent = 'a'\nparent_address = '10.0.1.1'\n\
         [[pe]]\nname = 'c'\naddress = '10.0.2.2'\nparent = 'a'\nparent_address = '10.0.2.1'\n\
         [[pe]]\nname = 'd'\naddress = '10.0.3.2'\nparent = 'b'\nparent_address = '10.0.3.1'\n",
    );
    let placement = cluster.placement.clone();
    let parent = |child| {
        let parent = tree(&cluster).parent(PeId(child)).unwrap();
        placement.address_for(parent, PeId(child), 0)
    };
    let expected = ["10.0.1.1", "10.0.2.1", "10.0.3.1"].map(ip);
    assert_eq!([1, 2, 3].map(parent), expected);
    assert_eq!(placement.places[0].listen, ip("0.0.0.0"));
    // Its only child uses this address.
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
kind = 'pigeon'
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
    let address = "must be the address or the name of one host, in quotes, not";
    refused(
        text,
        &[
            "t:1:1: unknown key `colour`; known here: name, coordinator, launch, network, security, timeouts, link, tree, pe",
            "t:2:15: no host `here` is found: names are not looked up here",
            "t:4:8: kind must be \"local\", \"join\", \"ssh\", \"slurm\" or \"compose\", not `'pigeon'`",
            &format!("t:7:11: address {address} `'0.0.0.0'`"),
            "t:8:18: a has a parent_address and no parent",
            "t:9:1: this [[pe]] has no name",
            "t:11:10: ?: no [[pe]] is called `z`",
            "t:12:1: a has no address: say where its children reach it; no host `a` is found: names are not looked up here",
            "t:12:1: there is a [[pe]] called `a` in line 5 already",
            "t:14:10: parent must be a name in quotes, of at most 255 bytes, not `7`",
            "t:15:7: run must be a list of words, like [\"nice\", \"-5\"], not `'nice'`",
            "t:19:10: c: P3 is its own parent (the PEs are P0, P1, .. in the order of the file)",
            "t:20:1: unknown key `host`; known here: name, address, addresses, reached_by, parent, parent_address, run, ssh, here, link",
            "t:21:1: ?: several roots: P4 has no parent, and only P0 may have none (the PEs are P0, P1, .. in the order of the file)",
            "t:22:8: name must be a name in quotes, of at most 255 bytes, not `''`",
        ],
    );
}

/// The address of this machine depends on that of another host.
#[test]
fn a_host_that_is_not_found_is_the_only_fault() {
    refused(
        "launch.kind = 'ssh'\n[[pe]]\nname = 'a'\nhere = true\n[[pe]]\nname = 'b'\nparent = 'a'\n",
        &[
            "t:5:1: b has no address: say where its children reach it; no host `b` is found: names are not looked up here",
        ],
    );
}

const JOINING: &str = "[[pe]]\nname = 'a'\naddress = '10.0.0.1'\n";

#[test]
fn files_for_joining_pes_name_the_address_to_join() {
    let text = |coordinator: &str, launch: &str| {
        format!("coordinator = '{coordinator}'\n[launch]\n{launch}\n{JOINING}")
    };
    let placement = good(&text("10.0.0.254:7117", "kind = 'join'")).placement;
    assert_eq!(placement.coordinator, ip("10.0.0.254"));
    let seconds = std::time::Duration::from_secs;
    let joins = |port, wait| Launch::Join {
        port,
        wait,
        starter: None,
    };
    assert_eq!(placement.launch, joins(7117, seconds(60)));
    assert!(placement.is_joined() && placement.is_spread());
    let six = good(&text("[fd00::1]:80", "kind = 'join'\nwait = '90s'")).placement;
    assert_eq!(six.coordinator, ip("fd00::1"));
    assert_eq!(six.launch, joins(80, seconds(90)));

    refused_each(
        JOINING,
        r#"
        coordinator = '10.0.0.254'\n[launch]\nkind = 'join' | t:1:15: kind = "join" needs a port to listen on: coordinator = "ADDRESS:PORT", like "198.18.0.1:7117"
        [launch]\nkind = 'join' | t:2:8: kind = "join" needs a port to listen on: coordinator = "ADDRESS:PORT", like "198.18.0.1:7117"
        coordinator = '10.0.0.254:7117'\n[launch]\nkind = 'local' | t:1:15: the coordinator has a port, 7117, and nobody joins: leave it out, or say kind = "join" in [launch]
        coordinator = '10.0.0.254:7117' | t:1:15: the coordinator has a port, 7117, and nobody joins: leave it out, or say kind = "join" in [launch]
        "#,
    );
    let text = text("239.0.0.1:7117", "kind = 'join'\nwait = 'long'");
    refused(
        &format!("{text}run = ['nice']\n"),
        &[
            "t:1:15: coordinator must be the address or the name of one host, in quotes, not `'239.0.0.1:7117'`",
            "t:4:8: wait must be a time from 1s to 86400s, in quotes, not `'long'`",
            "t:8:7: a has a run, and with kind = \"join\" others start it: leave it out",
        ],
    );
}

#[test]
fn a_tree_of_pes_without_places() {
    let join = "coordinator = '0.0.0.0:7117'\nlaunch.kind = 'join'\n";
    let cluster = good(&format!("{join}tree = 'kary:2:4'"));
    assert_eq!(tree(&cluster).parent(PeId(3)), Some(PeId(1)));
    let placement = &cluster.placement;
    assert_eq!(placement.places.len(), 4);
    assert!(placement.has_any_edge() && !placement.is_on_loopback());
    assert!(placement.places[3].address.is_unspecified());

    refused_each(
        "",
        r#"
        tree = 'kary:2:4' | t:1:8: a tree alone is for PEs that join: say kind = "join" or "slurm" in [launch], or give a [[pe]] table for each
        coordinator = '0.0.0.0:7117'\nlaunch.kind = 'join'\ntree = 'star:3'\nlink = 'rate=1mbit' | t:4:8: link: only links between processes of one host are shaped, by the clock that all of them read, and a PE may join from anywhere; take the link out
        "#,
    );
    refused(
        &format!("{join}tree = 'file:tree.toml'\nlink = 'rate=1mbit'\n{JOINING}"),
        &[
            "t:3:8: tree and pe are both given: give one of them",
            "t:3:8: tree: write the tree itself, like parents:0,0,1",
        ],
    );
}

#[test]
fn files_that_are_no_clusters_are_refused() {
    refused("", &["t: no PEs: give a [[pe]] table for each"]);
    refused_each(
        "",
        "
        pe = [] | t:1:6: no PEs: give a [[pe]] table for each
        pe = 3 | t:1:6: pe must be [[pe]] tables, in double brackets, not `3`
        ",
    );
    refused(
        "launch = 1\npe = [1]",
        &[
            "t:1:10: launch must be a table, [launch], not `1`",
            "t:2:7: pe must be a table with name and address, not `1`",
        ],
    );
    let faults = parse("[[pe]]\nname =\n").unwrap_err();
    assert_eq!(faults[0].spot.map(|spot| spot.line), Some(2));
}

/// Three PEs of one host; the second and third have no edges.
const THREE: &str = "[[pe]]\nname = 'a'\naddress = '127.0.0.1'\n\
                     [[pe]]\nname = 'b'\naddress = '127.0.0.2'\n\
                     [[pe]]\nname = 'c'\naddress = '127.0.0.3'\n";

#[test]
fn all_that_is_wrong_with_a_network() {
    let with = |network: &str| format!("{network}\n{THREE}");
    refused(
        &with(
            "[network]\nedges = [['a', 'd'], ['b'], ['c', 'c'], ['b', 7], ['d', 'd']]\nroot = 'a'",
        ),
        &[
            "t:2:16: no [[pe]] is called `d`",
            "t:2:22: an edge must be two names, like [\"a\", \"b\"], not `['b']`",
            "t:2:29: c is connected to itself; an edge has two different ends",
            "t:2:41: an edge must be two names, like [\"a\", \"b\"], not `['b', 7]`",
            "t:3:1: unknown key `root`; known here: edges, kind",
        ],
    );
    refused_each(
        THREE,
        r#"
        network = 1 | t:1:11: network must be a table, [network], not `1`
        [network] | t:1:1: [network] has no edges: give them by names, like edges = [["a", "b"]]
        [network]\nedges = [['a', 'b']] | t:2:9: the network is not connected: c cannot be reached from a
        [network]\nedges = 1 | t:2:9: edges must be a list of pairs, like [["a", "b"]], not `1`
        [network]\nkind = 'rings:3' | t:2:8: kind must be a network by its name, like "torus:3x3"
        [network]\nkind = 'edges:some' | t:2:8: kind must be a network by its name, like "torus:3x3"; edges stand in edges
        [network]\nkind = 'ring:4' | t:2:8: kind: ring:4 has 4 nodes, and there are 3 [[pe]] tables
        [network]\nedges = [['a', 'b'], ['b', 'c']]\nkind = 'ring:3' | t:3:8: kind: the edges are those of another network: ["a", "c"] is missing
        [network]\nedges = [['a', 'b'], ['a', 'c']]\nkind = 'array:3' | t:3:8: kind: the edges are those of another network: ["a", "c"] is no edge of it
        "#,
    );
    let both = "and there is a [network]: both describe connections; give one of them";
    refused(
        &with("network = {edges = [['a', 'b'], ['b', 'c']]}")
            .replace("'127.0.0.2'", "'127.0.0.2'\nparent = 'a'")
            .replace("'127.0.0.3'", "'127.0.0.3'\nparent = 'nobody'"),
        &[&format!("t:8:10: b has a parent (and 1 more), {both}")],
    );
}

#[test]
fn a_network_of_a_known_kind_needs_no_edges() {
    for section in [
        "kind = 'ring:3'",
        "kind = 'ring:3'\nedges = [['a', 'b'], ['c', 'b'], ['a', 'c']]",
    ] {
        let cluster = good(&format!("[network]\n{section}\n{THREE}"));
        let spanned = network(&cluster);
        assert_eq!(spanned.network.edges(), 3);
        let kind = spanned.spec.as_ref().map(ToString::to_string);
        assert_eq!(kind.as_deref(), Some("ring:3"));
    }
}

#[test]
fn settings_of_the_whole_cluster() {
    let tree = THREE.replace("[[pe]]\nname = 'b'", "[[pe]]\nparent = 'a'\nname = 'b'");
    let tree = tree.replace(
        "[[pe]]\nname = 'c'",
        "[[pe]]\nlink = 'rate=1mbit'\nparent = 'a'\nname = 'c'",
    );
    let cluster = good(&format!(
        "link = 'latency=1ms'\n[security]\ncredentials = 'keys'\n\
         [timeouts]\nsilence = '5s'\nheartbeat='1s'\n{tree}"
    ));
    let settings = cluster.settings;
    assert_eq!(settings.credentials.unwrap().folder, Path::new("keys"));
    let timeouts = crate::options::timeouts::written(&settings.timeouts);
    let expected = "heartbeat=1s,silence=5s,handshake=2s,";
    assert!(timeouts.starts_with(expected), "{timeouts}");
    let link = settings.link.unwrap().written();
    assert_eq!(link, "rate=unlimited,latency=1ms");
    let links = cluster.links.iter();
    let links = links.map(|(pe, link)| format!("{pe} {link}"));
    assert_eq!(links.collect::<Vec<_>>(), ["P2 1mbit"]);
}

#[test]
fn invalid_settings_of_the_whole_cluster() {
    let text = "\
link = 'rate=fast,latency=1h'
[security]
insecure = true
folder = 'x'
[timeouts]
patience = '1s'
silence = 5
write = '1us'
[[pe]]
name = 'ä'
address = '127.0.0.1'
link = 'rate=1mbit'
[[pe]]
parent = 'ä'
name = 'b'
address = '127.0.0.1'
link = 3
";
    let times = "heartbeat, silence, handshake, connect, write, disk";
    let example = "a text like \"rate=200mbit,latency=1ms\"";
    refused(
        text,
        &[
            "t:1:8: link: rate: `fast` is not a rate: write a number and a unit, like 200mbit",
            "t:1:8: link: latency: `1h`: unknown unit `h`; the units are ns, us, ms, s",
            "t:3:1: insecure is not allowed in a file: a command that sends unencrypted needs --insecure each time",
            "t:4:1: unknown key `folder`; known here: credentials",
            &format!("t:6:1: unknown key `patience`; known here: {times}"),
            "t:7:11: silence must be a time in quotes, like \"5s\", not `5`",
            "t:8:9: write: 1us is not from 10ms to 86400s",
            "t:12:8: ä has a link and no parent",
            &format!("t:17:8: link must be {example}, not `3`"),
        ],
    );
    let hasty =
        "silence: 3s is less than 3 heartbeats of 2s, so that a lost one would look like a death";
    refused(
        "pe = [{name = 'ä', address = '127.0.0.1', parent = 1}]\ntimeouts = {heartbeat = '2s'}",
        &[
            "t:1:52: parent must be a name in quotes, of at most 255 bytes, not `1`",
            &format!("t:2:25: {hasty}"),
        ],
    );
}
