//! Tests of records: written text can be read again, and errors have their lines.

use std::collections::BTreeSet;

use flitcast_plan::network::NetworkSpec;
use flitcast_proto::wire::control::Version;
use flitcast_proto::{DeliveryId, PeId, Tree};

use super::*;

fn record() -> Record {
    let text = "version = 5\nundertaking = \"00000000000000ab\"\noperation = \"gather\"\nalgorithm = \"certification\"\n\
        sync = \"pipelined\"\npacing = \"turns\"\ntree = \"mesh:2x2 root 0 bfs\"\n\
        parents = [0, 0, 1]\nnetwork = \"mesh:2x2\"\nnodes = [0, 1, 2, 3]\n\
        cluster = \"/c.toml\"\npes = [\"a\", \"b \\\"\", \"c\", \"d\"]\ncredentials = \"/ca\"\nflit_bytes = 4096\npackets = \"65536B\"\norder = \"search\"\ntimeouts = \"silence=5s\"\n\
        input = \"/in put/\\u007f\\n\\\"\"\noutput = \"/out\"\nspread = true\nreplace = true\n\
        bytes = [10, 0, 18446744073709551615]\ndelivered = [3]\nversions = [\"2 0 00000000000000cd\", \"3 18446744073709551615 0000000000000007 000000000000000000000000000000ef\"]\n\
        [[link]]\npe = 2\ndown = \"rate=50mbit,latency=0.5us\"\nup = \"rate=unlimited\"\n\
        [[dead]]\npe = 1\nwhy = \"killed by `signal` 9\"\n";
    parse(text).expect("it is one")
}

#[test]
fn written_records_are_read_back() {
    let record = record();
    assert_eq!(record.files.input, Path::new("/in put/\u{7f}\n\""));
    assert_eq!(record.job_id, 0xab);
    assert_eq!(record.bytes, [0, 10, 0, u64::MAX]);
    assert!(record.dead.contains_key(&PeId(1)));
    assert_read_back(&record);
}

#[track_caller]
fn assert_read_back(record: &Record) {
    let again = parse(&record.text()).expect("it was written");
    assert_eq!(format!("{again:?}"), format!("{record:?}"));
}

#[test]
fn a_gather_by_all_ports_is_read_as_one() {
    let text = record().text();
    let text = text.replace("\"pipelined\"", "\"multi-port\"");
    let read = parse(&text.replace("[[link]]", "own_links = true\n[[link]]")).expect("it is one");
    assert_eq!(read.way.sync(), Some("multi-port"));
    assert!(read.site.own_links);
    assert_read_back(&read);
}

/// Deliveries between pairs of PEs are listed by destination and source.
#[test]
fn deliveries_by_pairs_are_written_as_they_lie_in_the_output() {
    let of = |operation: &str, bytes: &str, delivered: &str| {
        let text = record().text();
        let from = text.find("operation = ").expect("the record has it");
        let to = text.find("tree = ").expect("the record has it");
        let text = format!("{}{operation}\n{}", &text[..from], &text[to..]);
        let from = 1 + text.find("\nbytes = ").expect("the record has it");
        let to = text.find("\n[[link]]").expect("the record has it");
        let lists = format!("bytes = {bytes}\ndelivered = {delivered}\nversions = []\n");
        format!("{}{lists}{}", &text[..from], &text[to..])
    };
    let gossip = "operation = \"gossip\"\nalgorithm = \"flood\"";
    let delivered = "[\"p0/p3\",\"p2/p1\"]";
    let gossiped = parse(&of(gossip, "[1, 2, 3, 4]", delivered)).expect("it is one");
    let bytes = [0, 1, 1, 1, 2, 0, 2, 2, 3, 3, 0, 3, 4, 4, 4, 0];
    assert_eq!(gossiped.bytes, bytes);
    let numbers = [4 + 2, 3 * 4].map(DeliveryId);
    assert_eq!(gossiped.delivered, BTreeSet::from(numbers));
    let (written, expected) = (gossiped.text(), format!("delivered = {delivered}\n"));
    assert!(written.contains(&expected), "{written}");
    assert_read_back(&gossiped);

    let exchange = "operation = \"exchange\"\nalgorithm = \"tree\"";
    let rows = "[0, 1, 2, 3, 4, 0, 5, 6, 7, 8, 0, 9, 10, 11, 12, 0]";
    let exchanged = parse(&of(exchange, rows, delivered)).expect("it is one");
    assert_eq!(exchanged.bytes[4..8], [4, 0, 5, 6]);
    assert_read_back(&exchanged);

    for (delivered, expected) in [
        ("[3]", "must be a text"),
        ("[\"p4/p0\"]", "`p4/p0` is no message"),
        ("[\"p1/p1\"]", "`p1/p1` is no message"),
        ("[\"p1\"]", "`p1` is no message"),
        ("[\"p0/p3\", \"p0/p3\"]", "P3's at P0 is named twice"),
    ] {
        assert_refused(&of(exchange, rows, delivered), expected);
    }
    let bytes = of(exchange, "[1, 2, 3]", delivered);
    assert_refused(&bytes, "bytes has 3 entries");
}

#[test]
fn the_longest_record_fits_its_bound() {
    let pes = crate::options::pes::MAX_LOCAL_PES;
    let mut record = record();
    let parents = (0..pes).map(|i| i.checked_sub(1).map(|i| PeId(i as u32)));
    record.tree = Tree::from_parents(parents.collect()).expect("a path");
    let network = NetworkSpec::Complete { nodes: pes as u32 };
    record.site.network = Some((Some(network), vec![u32::MAX; pes]));
    record.bytes = vec![u64::MAX; pes];
    record.delivered = (1..pes as u32).map(DeliveryId).collect();
    let version = |id: u64| Version {
        message: flitcast_proto::MessageId(id),
        bytes: u64::MAX,
        state: u64::MAX,
        digest: Some([0xff; 16]),
    };
    record.versions = (1..pes as u64).map(version).collect();
    let others = (1..pes as u32).map(PeId);
    // A control character takes six in the file.
    let why = "\u{1}".repeat(crate::rounds::outcome::WHY_CHARS);
    record.dead = others.map(|pe| (pe, why.clone())).collect();
    record.site.links = vec![record.site.links[2]; pes];
    record.files.input = Path::new("/").join("\u{1}".repeat(4096));
    assert!((record.text().len() as u64) < FILE.max_bytes);
}

#[track_caller]
fn refused(text: &str) -> Vec<String> {
    let faults = parse(text).expect_err(text);
    let describe = |fault: &user_file::PositionedError| match fault.spot {
        Some(spot) => format!("{}: {}", spot.line, fault.fault),
        None => fault.fault.to_string(),
    };
    faults.iter().map(describe).collect()
}

/// Checks that a text has one error, which contains `expected`.
#[track_caller]
fn assert_refused(text: &str, expected: &str) {
    let errors = refused(text);
    let is_expected = errors.len() == 1 && errors[0].contains(expected);
    assert!(is_expected, "no `{expected}` in {errors:#?}");
}

#[test]
fn all_faults_are_reported_with_their_lines() {
    let errors = refused(
        "version = 5\noperation = \"scatter\"\nalgorithm = \"shoulder-tap\"\nsync = 3\n\
         tree = \"x\"\nparents = [0, 7, 3]\nnodes = [1]\nflit_bytes = 1\n\
         timeouts = \"patience=1s\"\ninput = \"here\"\noutput = 5\nspread = \"yes\"\n\
         bytes = [1, -2]\ndelivered = [0, 3, 3]\nwhat = 1\n[[dead]]\npe = 9\nwhy = \"\"\n\
         [[link]]\ndown = \"\"\n",
    );
    for expected in [
        "4: sync must be a text, not `3`",
        "6: parents: P2: parent P7 does not exist",
        "6: parents: P3 is its own parent",
        "7: `nodes` goes with `network`, which is not there",
        "8: flit_bytes: 1 is not from",
        "9: timeouts: `patience=1s`",
        "10: input must be an absolute path",
        "11: output must be a text, not `5`",
        "12: spread must be true or false",
        "13: bytes must be a whole number, not below 0, not `-2`",
        "14: delivered: there is no P0 with a message",
        "15: unknown key `what`",
        "17: dead: there is no P9",
        "19: `pe` is missing",
    ] {
        let is_reported = errors.iter().any(|error| error.starts_with(expected));
        assert!(is_reported, "no `{expected}` in {errors:#?}");
    }
}

/// Parts of a record, their replacements, and parts of the faults that these cause.
const REPLACED: &str = r#"
version = 5 | version = 1 | 2: version `1`: this flitcast reads version 5
"00000000000000ab" | "+0000000000000ab" | 3: undertaking: `+0000000000000ab` is not sixteen hexadecimal digits
version = 5 | # 5 | there is no version
"gather" | "gassip" | operation: `gassip` is
"pipelined" | "late" | there is no gather by `certification, late`
"turns" | "late" | pacing: `late` is none of
nodes = [0, 1, 2, 3] | nodes = [0, 1, 2] | nodes has 3 entries, and by `parents` there are 4
nodes = [0, 1, 2, 3] | nodes = [0, 1, 2, 1] | nodes: two PEs stand on node 1
bytes = [10, 0,  | bytes = [10,  | bytes has 2 entries, and by `parents` there are 3
delivered = [3] | delivered = [3, 3] | delivered: P3 is named twice
"2 0  | "4 0  | versions: `4 0 00000000000000cd` is not
"2 0  | "3 0  | versions: `3 18446744073709551615 0000000000000007
00000000000000cd | cd | versions: `2 0 cd` is not
rate=50mbit | rate=50 | down: rate:
input = | # input = | `input` is missing
algorithm = "certification"\nsync = "pipelined" | algorithm = "shoulder-tap" | algorithm: shoulder-tap is for paths
algorithm = "certification"\nsync = "pipelined" | algorithm = "linear" | algorithm: linear is for stars only
"#;

#[test]
fn inconsistent_values_are_reported() {
    let whole = record().text();
    for row in REPLACED.trim().lines() {
        let row = row.replace("\\n", "\n");
        let [from, to, expected] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        assert!(whole.contains(from), "{from}: {whole}");
        assert_refused(&whole.replace(from, to), expected);
    }
}
