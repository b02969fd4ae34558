//! Shaped links with real processes: messages arrive unchanged, and not before rate, latency and a limit of the
//! rate at which each PE sends permit.

use flitcast_tests::{Report, printed, reported as report, rows, scratch};

const BYTES: u64 = 200 * 1024;

/// Returns the time of this number of bytes on the wire, in microseconds.
fn wire_us(bytes: u64, mbit: u64) -> f64 {
    (bytes * 8) as f64 / mbit as f64
}

/// Checks that no round took less than `bound_us`.
fn assert_not_before(report: &Report, bound_us: f64) {
    let least = report.float("/round/measured_us/min");
    assert!(least >= bound_us, "{least} us, not before {bound_us} us");
}

const LINK: &str = "--link rate=100mbit,latency=2ms --rounds 2 --size 200KiB";

/// All bytes leave P0 through its one send port, or reach it through its one receive port. Messages that a PE
/// stores and forwards together still cross as single frames.
#[test]
fn a_round_is_as_slow_as_its_links() {
    for [line, messages] in rows(
        "
        scatter --tree path:4 | 3
        scatter --tree star:4 | 3
        scatter --tree kary:2:6 | 5
        scatter --network complete:6 --algorithm binomial | 5
        gather --tree path:4 --algorithm shoulder-tap | 3
        gather --tree path:4 --algorithm certification --sync serial | 3
        gather --tree path:4 --algorithm certification | 3
        gather --tree star:4 --algorithm certification --sync serial | 3
        gather --tree star:4 --algorithm certification | 3
        gather --tree kary:2:6 --algorithm certification --sync serial | 5
        gather --tree kary:2:6 --algorithm certification | 5
        gather --network complete:6 --algorithm binomial | 5
    ",
    ) {
        let report = report(&format!("{line} {LINK}"));
        let all = messages.parse::<u64>().expect("a number") * BYTES;
        assert_not_before(&report, wire_us(all, 100) + 2000.0);
        if line.contains("--tree") {
            report.assert_all_arrived();
        }
        if line.starts_with("scatter --tree") {
            let last = report.list("/pes").len() - 1;
            let depth = report.number(&format!("/pes/{last}/depth"));
            let of_last = report.float(&format!("/pes/{last}/measured_us/min"));
            let bound = depth as f64 * 2000.0 + wire_us(BYTES, 100);
            assert!(of_last >= bound, "{line}");
        }
    }
}

/// The links are in the heading, and at every edge of the report.
#[test]
fn the_report_names_the_links() {
    let plain = "scatter --tree path:3 --size 1";
    let shaped = format!("{plain} --link latency=250us,rate=1.5gbit");
    let table = printed(&shaped);
    let heading = table.lines().next().unwrap_or_default();
    assert!(heading.ends_with("; links of 1.5gbit, 250us"), "{heading}");
    let report = report(&shaped);
    for direction in ["down", "up"] {
        let of = |what: &str| report.float(&format!("/edges/1/shaped/{direction}/{what}"));
        assert_eq!(of("latency_us"), 250.0);
        assert_eq!(of("ns_per_byte"), 8.0 / 1.5);
    }
    assert!(self::report(plain).value("/edges/1/shaped").is_null());
}

#[test]
fn edges_of_a_tree_file_have_links_of_their_own() {
    let dir = scratch();
    let text = "parents = [0, 1, 0]\n\
                [[edges]]\nchild = 2\nrate = '40mbit'\nlatency = '5ms'\nup = { rate = '20mbit' }\n";
    let path = dir.put("tree.toml", text);
    let tree = format!("--tree file:{} --size 200KiB", path.display());

    let scattered = report(&format!("scatter {tree}"));
    scattered.assert_all_arrived();
    let at = scattered.float("/pes/2/measured_us/min");
    assert!(at >= wire_us(BYTES, 40) + 5000.0, "{at}");
    let gathered = report(&format!("gather {tree} --link rate=1gbit"));
    gathered.assert_all_arrived();
    assert_not_before(&gathered, wire_us(BYTES, 20) + 5000.0);

    assert!(scattered.value("/edges/0/shaped").is_null());
    assert!(scattered.value("/edges/2/shaped").is_null());
    for report in [&scattered, &gathered] {
        let of = |what: &str| report.float(&format!("/edges/1/shaped/{what}"));
        let found = ["down/ns_per_byte", "up/ns_per_byte", "up/latency_us"].map(of);
        assert_eq!(found, [200.0, 400.0, 5000.0]);
    }
    assert_eq!(gathered.float("/edges/0/shaped/up/ns_per_byte"), 8.0);
}

/// Two relays have links half as fast as P0's. `job/order` tests the result of a search on exactly
/// known links; these are measured.
#[test]
fn an_order_is_searched_for_on_the_links_that_are_there() {
    let dir = scratch();
    let mut text = "parents = [0, 0, 1, 1, 2, 2]\n".to_owned();
    for (child, rate) in [(1, 400), (2, 400), (3, 200), (4, 200), (5, 200), (6, 200)] {
        text += &format!("[[edges]]\nchild = {child}\nrate = \"{rate}mbit\"\n");
    }
    let path = dir.put("tree.toml", text);
    let lengths = "--lengths 0,0,1MiB,1MiB,1MiB,1MiB";
    let line = format!(
        "scatter --tree file:{} {lengths} --order search",
        path.display()
    );
    let searched = report(&line);
    searched.assert_all_arrived();
    let of = |field: &str| searched.float(&format!("/order/{field}"));
    assert!(of("predicted_us") <= of("farthest_first_us").min(of("tail_first_us")));
    assert_eq!(of("predicted_us"), searched.float("/round/predicted_us"));
    assert!(of("bound_us") >= wire_us(4 << 20, 400) / 2.0);
    // In any order, all bytes leave P0 through its one port.
    assert_not_before(&searched, wire_us(4 << 20, 400));
    let text = printed(&format!("{line} -v"));
    assert!(text.contains("\n  order        searched for: "), "{text}");
}

/// About thirty exchanges over an edge of 30 ms exceed the limit for all measurements, so one edge
/// of each kind is measured completely. On one machine the others are assumed to be equal; over a
/// possible network, at least their latencies are measured.
#[test]
fn not_every_edge_alike_is_measured_whole() {
    let dir = scratch();
    let text = "parents = [0, 0, 0, 1]\n[[edges]]\nchild = 3\nlatency = '40ms'\n";
    let path = dir.put("tree.toml", text);
    let tree = format!("--tree file:{} --link latency=30ms", path.display());
    assert_measured(
        &tree,
        "1",
        "2 of 4 edges measured; the others are on this machine",
    );

    let mut text = "link = 'latency=30ms'\n".to_owned();
    for (pe, more) in [
        (0, ""),
        (1, "parent = 'p0'\n"),
        (2, "parent = 'p0'\n"),
        (3, "parent = 'p0'\nlink = 'latency=40ms'\n"),
        (4, "parent = 'p1'\n"),
    ] {
        // A program before a PE's command may start it on another host.
        let site = "address = '127.0.0.1'\nrun = ['env']";
        text += &format!("[[pe]]\nname = 'p{pe}'\n{site}\n{more}");
    }
    let path = dir.put("cluster.toml", text);
    let cluster = format!("--cluster {}", path.display());
    let expected = "2 of 4 edges measured; of the others only the latencies";
    assert_measured(&cluster, "null", expected);
}

/// Checks the measured latency of four edges, of which P3's is slower than all others.
#[track_caller]
fn assert_measured(tree: &str, latency_of: &str, expected: &str) {
    let line = format!("scatter {tree} --size 1KiB");
    let report = report(&line);
    report.assert_all_arrived();
    let of_others = ("1", latency_of, 30e3);
    let slower = ("null", "null", 40e3);
    let edges = [("null", "null", 30e3), of_others, slower, of_others];
    for (child, (rate_of, latency_of, latency_us)) in (1..).zip(edges) {
        let of = |what: &str| format!("/edges/{}/{what}", child - 1);
        let value = |what: &str| report.value(&of(what)).to_string();
        assert_eq!(value("rate_of"), rate_of, "of P{child}");
        assert_eq!(value("latency_of"), latency_of, "of P{child}");
        for direction in ["down", "up"] {
            let measured = report.float(&of(&format!("{direction}/latency_us")));
            // On a completely measured edge, it is fitted together with the rate.
            assert!(measured >= 0.98 * latency_us, "{measured} us of P{child}");
        }
    }
    let printed = printed(&format!("{line} -v"));
    assert!(printed.contains(expected), "{printed}");
}

/// Edges of one machine are equal: three measurements suffice for a hundred edges, and fewer if
/// those take long.
#[test]
fn of_a_hundred_edges_on_one_machine_three_are_measured() {
    let report = report("scatter --tree kary:3:101 --size 100B");
    report.assert_all_arrived();
    let edges = report.list("/edges");
    let whole = edges.iter().filter(|edge| edge["rate_of"].is_null());
    assert!((1..=3).contains(&whole.count()));
}

#[test]
fn a_printed_tree_file_has_the_same_links() {
    let dir = scratch();
    let text = "parents = [0, 1]\n\
                [[edges]]\nchild = 2\nlatency = '0.5ms'\nup = { rate = '2.5mbit' }\n";
    dir.put("a.toml", text);
    let print = |name: &str| {
        let line = format!("tree --tree file:@/{name} --format toml");
        let printed = dir.run(&line).ok().stdout;
        let (name, rest) = printed.split_once('\n').expect("a comment with its name");
        assert!(name.starts_with("# file:"), "{name}");
        rest.to_owned()
    };
    let printed = print("a.toml");
    let links = "[[edges]]\nchild = 2\n\
                 down = { rate = \"unlimited\", latency = \"500us\" }\n\
                 up = { rate = \"2.5mbit\", latency = \"500us\" }\n";
    assert!(printed.ends_with(links), "{printed}");
    dir.put("b.toml", &printed);
    assert_eq!(print("b.toml"), printed);

    // Links of a cluster file, and what a tree file cannot have.
    let slow = "link = 'rate=2mbit,setup=5ms'";
    dir.put("c.toml", cluster_of("rate=8mbit", ["", slow]));
    let printed = dir.run("tree --cluster @/c.toml --format toml").ok().stdout;
    let links = "# Tree files have no set-up times; those of the links are left out.\n\
                 [[edges]]\nchild = 1\ndown = { rate = \"8mbit\" }\nup = { rate = \"8mbit\" }\n\
                 [[edges]]\nchild = 2\ndown = { rate = \"2mbit\" }\nup = { rate = \"2mbit\" }\n";
    assert!(printed.ends_with(links), "{printed}");
}

/// Returns a cluster file of a star with further lines for each leaf.
fn cluster_of<const N: usize>(link: &str, leaves: [&str; N]) -> String {
    let leaf = |(nth, more): (usize, &str)| {
        format!("[[pe]]\nname = 'p{nth}'\naddress = '127.0.0.{nth}'\nparent = 'p1'\n{more}\n")
    };
    let leaves: String = (2..).zip(leaves).map(leaf).collect();
    let root = "[[pe]]\nname = 'p1'\naddress = '127.0.0.1'\n";
    format!("link = '{link}'\ncoordinator = '127.0.0.1'\n{root}{leaves}")
}

/// Each flit takes the set-up time and then its bytes' time: 64 KiB at 8 Mbit/s are 65.536 ms.
#[test]
fn a_searched_order_counts_set_up_times() {
    let dir = scratch();
    for (link, ns) in [
        ("rate=8mbit", 65_536_000_u64),
        ("rate=8mbit,setup=5ms", 70_536_000),
        ("setup=5ms", 5_000_000),
    ] {
        dir.put("c.toml", cluster_of(link, [""]));
        let line = "plan scatter --cluster @/c.toml --order search --lengths 2";
        assert_eq!(dir.report(line).number("/time"), 2 * ns, "{link}");
    }
}

/// The bytes that the busiest PE sends in each round of the test.
const BUSIEST_BYTES: u32 = 150 << 10;

/// The least time of a round, as the sends of the busiest PE take it: 8 Mbit/s are a byte in a
/// microsecond.
#[test]
fn no_pe_sends_faster_than_the_limit() {
    for line in [
        "scatter -n 3 --size 50KiB",
        "scatter --tree path:4 --size 50KiB",
        "scatter --tree star:4 --ports multi --size 50KiB",
        "gather --tree path:4 --size 50KiB",
        "gather --tree star:4 --pacing turns --size 150KiB",
        "broadcast --tree star:4 --algorithm child-by-child --size 50KiB",
        "gossip --network complete:4 --algorithm direct --size 50KiB",
        "exchange --network complete:4 --algorithm rounds --size 50KiB",
    ] {
        let report = report(&format!("{line} --bwlimit 8mbit"));
        let measured = report.float("/round/measured_us/median");
        let predicted = report.float("/round/predicted_us");
        for (what, us) in [("measured", measured), ("predicted", predicted)] {
            // A millisecond's bytes leave at once.
            let least = f64::from(BUSIEST_BYTES) - 10_000.0;
            assert!(us > least, "{line}: {what} {us} us, not {least}");
        }
    }
}
