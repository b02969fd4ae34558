//! `deploy/cluster.schema.json`, with which editors check cluster files, compared with the parser:
//! both have the same keys in every table, and agree on every file with a fault of form.

use std::collections::BTreeSet;

use flitcast_tests::{Finished, Folder, rows, scratch};
use serde_json::Value;

fn schema() -> Value {
    let text = include_str!("../../deploy/cluster.schema.json");
    serde_json::from_str(text).expect("the schema is JSON")
}

/// Creates a folder with certificates for two PEs and a file to be named, in which files are
/// checked.
fn with_certificates() -> Folder {
    let dir = scratch();
    dir.run("ca init @/keys --pes 2").ok();
    dir.put("ssh_config", "");
    dir
}

fn checked(dir: &Folder, text: &str) -> Finished {
    dir.put("cluster.toml", text);
    dir.run("check @/cluster.toml")
}

/// Returns the positions where `value` violates `schema`. Only the keywords that the project's
/// schema uses are supported; any other is a failure.
fn misfits(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut all = Vec::new();
    let rules = schema.as_object().expect("a schema is an object");
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |rule: &Value| rule.as_u64().expect("it is a number") as usize;
    for (keyword, rule) in rules {
        let fits = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let place = rule.as_str().and_then(|place| place.strip_prefix('#'));
                let place = root.pointer(place.expect("it is in this schema"));
                let place = place.expect("what is referred to is there");
                all.extend(misfits(root, place, value, at));
                true
            }
            "type" => match rule.as_str().expect("one type") {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "integer" => value.is_i64(),
                "boolean" => value.is_boolean(),
                other => panic!("{other}"),
            },
            "anyOf" => {
                let mut rules = rule.as_array().expect("a list").iter();
                rules.any(|rule| misfits(root, rule, value, at).is_empty())
            }
            "enum" => rule.as_array().expect("a list").contains(value),
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() >= number(rule)),
            "minItems" => !value.is_array() || list.len() >= number(rule),
            "maxItems" => list.len() <= number(rule),
            "items" => {
                for (i, item) in list.iter().enumerate() {
                    all.extend(misfits(root, rule, item, &format!("{at}/{i}")));
                }
                true
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if let Some(rule) = rule.get(key) {
                        all.extend(misfits(root, rule, value, &format!("{at}/{key}")));
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(rule, false);
                let known = &schema["properties"];
                let mut keys = value.as_object().into_iter().flat_map(|o| o.keys());
                keys.all(|key| known.get(key).is_some())
            }
            "required" => {
                let mut keys = rule.as_array().expect("a list").iter();
                let has = |key: &Value| value.get(key.as_str().expect("a name")).is_some();
                !value.is_object() || keys.all(has)
            }
            other => panic!("`{other}` is more than this test understands"),
        };
        if !fits {
            all.push(format!("{at}: {keyword}"));
        }
    }
    all
}

fn misfits_of(text: &str) -> Vec<String> {
    let value: Value = toml::from_str(text).expect("it is TOML");
    let schema = schema();
    misfits(&schema, &schema, &value, "")
}

const PAIR: &str = "[[pe]]\nname = 'a'\naddress = '127.0.0.1'\n\
                    [[pe]]\nname = 'b'\naddress = '127.0.0.2'\n";

/// Returns `PAIR` with `a` above `b`, after the top-level text `top`.
fn tree(top: &str) -> String {
    format!("{top}\n{PAIR}parent = 'a'\n")
}

/// Returns a file of a table: `alone`, before the lines of `PAIR`, or a tree, whose text may have a
/// part for its last PE after `+`. The text has `;` between its lines.
fn file(kind: &str, text: &str) -> String {
    let text = text.replace("; ", "\n");
    let (top, last) = text.split_once('+').unwrap_or((&text, ""));
    match kind {
        "alone" => text,
        "before" => format!("{top}\n{PAIR}{last}"),
        "tree" => tree(top) + last,
        _ => panic!("no kind of file: {kind}"),
    }
}

/// The schema finds a fault of form or none, and the command has an exit status.
#[test]
fn both_accept_valid_files_and_refuse_malformed_ones() {
    let dir = with_certificates();
    for [kind, text, misfit, code] in rows(
        "
        tree   | | | 0
        tree   | name = 'two'; coordinator = '127.0.0.1'; launch.kind = 'local' | | 0
        tree   | coordinator = '127.0.0.1:7117'; launch = {kind = 'join', wait = '90s'} | | 0
        tree   | coordinator = '10.0.0.9'; launch.kind = 'ssh' + ssh = 'me@b.example' | | 0
        tree   | launch = {kind = 'ssh', user = 'me', port = 2222, directory = '/opt/flitcast'} | | 0
        tree   | launch = {kind = 'ssh', environment = ['LANG'], config = 'ssh_config', binary = 'ssh_config'} | | 0
        tree   | security.credentials = 'keys' | | 0
        tree   | timeouts = {silence = '5s', disk = '1000s'} | | 0
        tree   | link = 'latency=1ms' + link = 'rate=1mbit'; parent_address = '127.0.0.3' | | 0
        tree   | + run = ['nice', '-n', '5'] | | 0
        before | network.edges = [['a', 'b']] | | 0
        before | network.edges = [['a', 'b']] + reached_by = [['a', '127.0.0.3']] | | 0
        alone  | tree = 'star:3'; coordinator = '0.0.0.0:7117'; launch.kind = 'join' | | 0
        alone  | [[pe]]; name = 'alone'; address = '::1' | | 0
        alone  | [[pe]]; name = 'a'; addresses = ['127.1.0.1', '127.0.0.1']; [[pe]]; name = 'b'; \
            addresses = ['127.1.0.1', '127.0.0.2']; parent = 'a' | | 0
        tree   | coordinator = '0.0.0.0:7117'; launch = {kind = 'slurm', options = ['-v']} | | 0
        tree   | coordinator = '127.0.0.1:7117'; launch = {kind = 'compose', file = 'ssh_config'} | | 0
        alone  | | : anyOf | 2
        alone  | pe = [] | /pe: minItems | 2
        alone  | pe = 3 | /pe: type | 2
        alone  | [[pe]]; address = '127.0.0.1' | /pe/0: required | 2
        alone  | tree = 3 | /tree: type | 2
        tree   | colour = 'red' | : additionalProperties | 2
        tree   | name = '' | /name: minLength | 2
        tree   | coordinator = 7 | /coordinator: type | 2
        tree   | launch.kind = 'teleport' | /launch/kind: enum | 2
        tree   | launch = 'local' | /launch: type | 2
        tree   | coordinator = '0.0.0.0:7117'; launch = {kind = 'slurm', options = '-v'} | /launch/options: type | 2
        tree   | coordinator = '0.0.0.0:7117'; launch = {kind = 'compose', file = ''} | /launch/file: minLength | 2
        tree   | launch = {kind = 'ssh', user = ''} | /launch/user: minLength | 2
        tree   | launch = {kind = 'ssh', port = '22'} | /launch/port: type | 2
        tree   | launch = {kind = 'ssh', environment = [7]} | /launch/environment/0: type | 2
        tree   | launch.kind = 'ssh' + ssh = 7 | /pe/1/ssh: type | 2
        tree   | launch.kind = 'ssh' + here = 'yes' | /pe/1/here: type | 2
        tree   | security.insecure = true | /security: additionalProperties | 2
        tree   | security.credentials = '' | /security/credentials: minLength | 2
        tree   | timeouts.silence = 5 | /timeouts/silence: type | 2
        tree   | timeouts.patience = '5s' | /timeouts: additionalProperties | 2
        tree   | link = {rate = '1mbit'} | /link: type | 2
        tree   | + link = 1 | /pe/1/link: type | 2
        tree   | + run = 'nice' | /pe/1/run: type | 2
        tree   | + port = 7 | /pe/1: additionalProperties | 2
        before | network = 'all' | /network: type | 2
        before | network = {} | /network: anyOf | 2
        before | network.kind = 7 | /network/kind: type | 2
        before | network.edges = [['a', 'b', 'a']] | /network/edges/0: maxItems | 2
        before | network.edges = [['a', 1]] | /network/edges/0/1: type | 2
        # A schema cannot detect these errors; that is why it names the command.
        before | | | 2
        tree   | tree = 'star:2' | | 2
        alone  | tree = 'star:3' | | 2
        tree   | coordinator = 'here' | | 2
        tree   | launch.user = 'me' | | 2
        tree   | launch = {kind = 'ssh', config = 'elsewhere'} | | 2
        tree   | coordinator = '0.0.0.0:7117'; launch.kind = 'compose' | | 2
        tree   | coordinator = '0.0.0.0:7117'; launch = {kind = 'compose', file = 'elsewhere'} | | 2
        tree   | launch.options = ['-v'] | | 2
        tree   | launch.kind = 'ssh' + ssh = '-oProxyCommand=x' | | 2
        tree   | security.credentials = 'elsewhere' | | 2
        tree   | timeouts.silence = 'long' | | 2
        tree   | link = 'fast' | | 2
        tree   | network.edges = [['a', 'b']] | | 2
        before | network.edges = [['a', 'c']] | | 2
    ",
    ) {
        let text = file(kind, text);
        let found = misfits_of(&text).join(" ");
        assert_eq!(found, misfit, "{text}");
        let checked = checked(&dir, &text);
        assert_eq!(checked.code, code.parse().ok(), "{text}{}", checked.stderr);
    }
}

#[test]
fn both_know_the_same_keys() {
    let dir = scratch();
    for (text, place) in [
        (tree("what = 1"), ""),
        (tree("launch.what = 1"), "/properties/launch"),
        (
            format!("network = {{edges = [['a', 'b']], what = 1}}\n{PAIR}"),
            "/properties/network",
        ),
        (tree("security.what = 1"), "/properties/security"),
        (tree("timeouts.what = 1"), "/properties/timeouts"),
        (tree("") + "what = 1", "/properties/pe/items"),
    ] {
        let refused = checked(&dir, &text);
        let known: Option<BTreeSet<String>> = refused.stderr.lines().find_map(|line| {
            let (_, known) = line.split_once("unknown key `what`; known here: ")?;
            Some(known.split(", ").map(str::to_owned).collect())
        });
        let schema = schema();
        let there = schema.pointer(&format!("{place}/properties"));
        let there = there.and_then(Value::as_object).expect("it has properties");
        let there: BTreeSet<String> = there.keys().cloned().collect();
        assert_eq!(known, Some(there), "{text}{}", refused.stderr);
    }
}
