//! Parsing of records: each invalid value is reported with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use flitcast_node::payload::Others;
use flitcast_plan::Algorithm;
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;
use flitcast_proto::wire::control::{FilePayload, Version};
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{DeliveryId, DeliveryName, PeId, Tree};

use super::content::{Record, RecordedSite, VERSION, parse_version};
use crate::algorithms::candidates::{self, check_fits};
use crate::algorithms::method::{Method, operation_by};
use crate::files::toml_file::{self, Field, Table};
use crate::files::user_file::PositionedError;
use crate::options::link_spec::{self, EdgeSpec, LinkSpec};
use crate::options::names::pacing_named;
use crate::options::order::MessageOrder;
use crate::options::sync::durability_named;
use crate::options::timeouts;
use crate::options::transfer::{available_compression, update_named};
use crate::site::cluster_file::host_list;
use crate::site::slurm::Slurm;
use crate::text::deliveries;

/// Parses a record; on failure returns at least one error, in the order of the file.
pub fn parse(text: &str) -> Result<Record, Vec<PositionedError>> {
    toml_file::parse(text, |_, top| {
        top.check_version(VERSION, "record of a round", "")?;
        record(top)
    })
}

fn record(top: &Table<'_, '_>) -> Option<Record> {
    let job_id = top.get("undertaking", read_job_id);
    let way = read_way(top);
    let tree_name = top.text("tree");
    let root = top.optional("root");
    let root = root.map_or(Some(0), |root| Some(number(root.count()?)));
    let tree = top.required("parents");
    let tree = root.zip(tree);
    let tree = tree.and_then(|(root, field)| read_tree(PeId(root), &field));
    if let (Some(way), Some(tree)) = (&way, &tree)
        && let Err(why) = check_fits(way.operation, tree, "the tree")
        && let Some(field) = top.optional("algorithm")
    {
        let algorithm = way.algorithm();
        field.fault(format!("algorithm: {algorithm} is {why}"));
    }
    let alone = Tree::from_parents(vec![None]).ok()?;
    let some_tree = tree.as_ref().unwrap_or(&alone);
    let others = Others::of(some_tree);
    let mut site = read_site(top, tree_name, others.pes);
    let flit_bytes = top.find("flit_bytes", read_flit_bytes);
    let packets = top.find("packets", |field| field.parse_keyed(str::parse));
    let parse_order = |text: &str| parse_order(text, some_tree);
    let order = top.find("order", |field| field.parse_parts("a text", parse_order));
    let covers = top.flag("cover");
    site.own_links = top.flag("own_links");
    let limit = top.find("bwlimit", |field| field.parse_keyed(link_spec::rate));
    site.limit = limit.flatten();
    // If the operation is unknown, the messages are read as those of a scatter.
    let known = way.as_ref().map(|way| way.operation);
    let operation = known.unwrap_or(Algorithm::FARTHEST_FIRST);
    let timeouts = |field: &Field<'_, '_>| field.parse_parts("a text", timeouts::parse);
    let timeouts = top.get("timeouts", timeouts);
    let files = read_files(top, &site.pes);
    let bytes = top.get("bytes", |field| read_bytes(field, operation, tree.as_ref()));
    let delivered = |field: &_| read_delivered(field, operation, some_tree, others);
    let delivered = top.get("delivered", delivered);
    let versions = |field: &_| read_versions(field, operation, some_tree);
    let versions = top.get("versions", versions);
    site.links = read_links(top, others);
    let dead = by_pe(top, "dead", others, |table| table.text("why"));
    top.refuse_others();
    Some(Record {
        job_id,
        way: Method {
            flit_bytes,
            packets,
            order: order.unwrap_or_default(),
            covers,
            ..way?
        },
        tree: tree?,
        site,
        timeouts,
        files,
        bytes,
        delivered,
        versions,
        dead,
    })
}

fn read_files(top: &Table<'_, '_>, names: &[String]) -> FilePayload {
    let path = |key| top.get(key, |field| read_path(field, key));
    let count = |key| top.find(key, |field| field.count()).unwrap_or(0);
    let durability = |field: &Field<'_, '_>| {
        let known = "none of \"message\", \"file\" and \"none\"";
        parse_or(field, known, durability_named)
    };
    FilePayload {
        input: path("input"),
        output: path("output"),
        spread: top.flag("spread"),
        replace: top.flag("replace"),
        apart: top.flag("apart"),
        lines: top.flag("lines"),
        block_bytes: count("block_bytes"),
        parts: u32::try_from(count("parts")).unwrap_or(u32::MAX),
        rules: top
            .find("rules", |field| {
                field.texts_where("a list of rules", |_| true)
            })
            .unwrap_or_default(),
        durability: top.find("durable", durability).unwrap_or_default(),
        compression: top
            .find("compress", |field| field.parse_keyed(available_compression))
            .unwrap_or_default(),
        archive: top.flag("archive"),
        output_names: names.to_vec(),
        update: top
            .find("update", |field| field.parse_keyed(update_named))
            .unwrap_or_default(),
        ..FilePayload::default()
    }
}

/// Parses a text, or reports that it is `wrong`.
fn parse_or<T>(
    field: &Field<'_, '_>,
    wrong: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    field.parse_keyed(|text| parse(text).ok_or_else(|| format!("`{text}` is {wrong}")))
}

/// Reads an id in the form that receipts use: sixteen hexadecimal digits.
fn read_job_id(field: &Field<'_, '_>) -> Option<u64> {
    parse_or(field, "not sixteen hexadecimal digits", |text| {
        let id = u64::from_str_radix(text, 16).ok();
        id.filter(|id| format!("{id:016x}") == text)
    })
}

fn read_operation_name(field: &Field<'_, '_>) -> Option<&'static str> {
    let known = "none of \"scatter\", \"gather\", \"broadcast\", \"gossip\" and \"exchange\"";
    let mut all = Collective::ALL.into_iter().map(Collective::name);
    parse_or(field, known, |text| all.find(|name| *name == text))
}

/// Returns a number; one that is too great is that of no PE and of no node.
fn number(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn read_path(field: &Field<'_, '_>, key: &'static str) -> Option<PathBuf> {
    field.parse(|text| {
        let path = PathBuf::from(text);
        // A zero byte would end the path in system calls.
        match path.is_absolute() && !text.contains('\0') {
            true => Ok(path),
            false => Err(format!("{key} must be an absolute path")),
        }
    })
}

fn read_flit_bytes(field: &Field<'_, '_>) -> Option<u32> {
    let bytes = field.count()?;
    let fits = u32::try_from(bytes).ok();
    let fits = fits.filter(|bytes| (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(bytes));
    if fits.is_none() {
        field.fault(format!(
            "flit_bytes: {bytes} is not from {MIN_FLIT_BYTES} to {MAX_FLIT_BYTES}"
        ));
    }
    fits
}

fn check_count(field: &Field<'_, '_>, key: &'static str, found: usize, expected: usize) {
    if found != expected {
        field.fault(format!(
            "{key} has {found} entries, and by `parents` there are {expected}"
        ));
    }
}

fn read_tree(root: PeId, field: &Field<'_, '_>) -> Option<Tree> {
    let mut parents = field.each(|one| Some(Some(PeId(number(one.count()?)))))?;
    parents.insert(root.index().min(parents.len()), None);
    let tree = match root {
        PeId::ROOT => Tree::from_parents(parents),
        // No PE is absent, since each has a parent in the file.
        root => Tree::with_absent(root, parents),
    };
    let tree = tree.map_err(|faults| {
        let faults = faults.0.into_iter();
        faults.for_each(|fault| field.fault(format!("parents: {fault}")));
    });
    tree.ok()
}

fn parse_order(text: &str, tree: &Tree) -> Result<MessageOrder, Vec<String>> {
    let order = MessageOrder::parse(text, &[]).map_err(|fault| vec![fault])?;
    let faults = match &order {
        MessageOrder::Given(given) => given.faults(tree, None),
        _ => Vec::new(),
    };
    match faults.is_empty() {
        true => Ok(order),
        false => Err(faults.iter().map(ToString::to_string).collect()),
    }
}

fn read_bytes(
    field: &Field<'_, '_>,
    operation: Algorithm,
    tree: Option<&Tree>,
) -> Option<Vec<u64>> {
    let bytes = field.each(|one| one.count())?;
    // Without a tree, the number of lengths is unknown.
    let tree = tree?;
    let expected = operation.collective().lengths_given(tree);
    check_count(field, "bytes", bytes.len(), expected);
    (bytes.len() == expected).then(|| operation.collective().by_delivery(tree, &bytes))
}

/// Reads the operation and its algorithm by their names, and the pacing.
fn read_way(top: &Table<'_, '_>) -> Option<Method> {
    let name = top.required("operation");
    let name = name.and_then(|field| read_operation_name(&field));
    let field = top.required("algorithm");
    let sync = top.optional("sync").map(|field| field.text());
    let pacing = top.find("pacing", |field| {
        let known = "none of \"scheduled\", \"turns\" and \"eager\"";
        parse_or(field, known, pacing_named)
    });
    let given = field.as_ref().and_then(|field| field.text());
    // A value that is not a text has been reported.
    let sync = sync.map_or(Some(None), |text| text.map(Some))?;
    let (name, field, given) = (name?, field?, given?);
    let known = candidates::all(name).into_iter();
    let known = known.chain(candidates::of_all_ports(name));
    let ways = known.map(|candidate| candidate.way(None));
    // An algorithm that is not offered can still be typed.
    let others = operation_by(name, &given).map(Method::of);
    let is_named = |way: &Method| way.algorithm() == given && way.sync() == sync.as_deref();
    let Some(found) = ways.chain(others).find(is_named) else {
        let given = sync.map_or(given.clone(), |sync| format!("{given}, {sync}"));
        field.fault(format!("algorithm: there is no {name} by `{given}`"));
        return None;
    };
    Some(Method { pacing, ..found })
}

fn read_site(top: &Table<'_, '_>, tree_name: String, pes: usize) -> RecordedSite {
    let (network, nodes) = (top.optional("network"), top.optional("nodes"));
    let cluster = top.optional("cluster");
    let network = read_network(network, nodes, cluster.is_some(), pes);
    let cluster = cluster.and_then(|field| {
        // A file, a list of hosts, or the job of Slurm in which the command runs.
        let list = field.value().as_str().map(PathBuf::from);
        let is_list = |list: &PathBuf| Slurm::named(list).is_some() || host_list(list).is_some();
        match list.filter(is_list) {
            Some(list) => Some(list),
            None => read_path(&field, "cluster"),
        }
    });
    let are_all = |names: &[String]| names.len() == pes;
    let pes = top.find("pes", |field| {
        field.texts_where("a list of the names of all PEs", are_all)
    });
    RecordedSite {
        tree_name,
        network,
        cluster,
        pes: pes.unwrap_or_default(),
        credentials: top.find("credentials", |field| read_path(field, "credentials")),
        ..RecordedSite::default()
    }
}

/// Reads the network that the tree spans, if there is one, and the nodes of the PEs. The network
/// may be that of a cluster file.
fn read_network(
    network: Option<Field<'_, '_>>,
    nodes: Option<Field<'_, '_>>,
    of_cluster: bool,
    pes: usize,
) -> Option<(Option<NetworkSpec>, Vec<u32>)> {
    let Some(field) = nodes else {
        network?.fault(alone("network", "nodes"));
        return None;
    };
    if network.is_none() && !of_cluster {
        field.fault(alone("nodes", "network"));
        return None;
    }
    let spec = network.map(|network| network.parse_keyed(str::parse));
    let nodes = field.each(|one| Some(number(one.count()?)))?;
    check_count(&field, "nodes", nodes.len(), pes);
    let mut met = BTreeSet::new();
    if let Some(&node) = nodes.iter().find(|node| !met.insert(**node)) {
        field.fault(format!("nodes: two PEs stand on node {node}"));
    }
    Some((spec.flatten(), nodes))
}

/// Returns the error that a key requires another one, which is missing.
fn alone(key: &str, other: &str) -> String {
    format!("`{key}` goes with `{other}`, which is not there")
}

/// Reads the index of a PE with a message.
fn read_pe(field: &Field<'_, '_>, what: &'static str, others: Others) -> Option<PeId> {
    let pe = field.count()?;
    let index = u32::try_from(pe).ok();
    let index = index.filter(|index| others.iter().any(|pe| pe == *index as usize));
    if index.is_none() {
        field.fault(format!(
            "{what}: there is no P{pe} with a message; by `parents`, {others}"
        ));
    }
    index.map(PeId)
}

fn read_delivered(
    field: &Field<'_, '_>,
    operation: Algorithm,
    tree: &Tree,
    others: Others,
) -> Option<BTreeSet<DeliveryId>> {
    let (what, collective) = ("delivered", operation.collective());
    let of_row = |one: &Field<'_, '_>| {
        let (row, source) = (read_pe(one, what, others)?, None);
        collective.delivery_named(tree, DeliveryName { row, source })
    };
    let of_pair = |one: &Field<'_, '_>| {
        let none = format!("no message's place at one of {} PEs", tree.len());
        parse_or(one, &none, |text| {
            collective.delivery_named(tree, deliveries::parse_pair(text)?)
        })
    };
    let (expected, read): (_, &dyn Fn(&Field<'_, '_>) -> _) = match collective.is_of_pairs() {
        true => ("a list of texts like \"p5/p2\"", &of_pair),
        false => ("a list of indices", &of_row),
    };
    let mut delivered = BTreeSet::new();
    for one in field.list_of(expected)? {
        if let Some(delivery) = read(&one)
            && !delivered.insert(delivery)
        {
            let name = collective.delivery_name(tree, delivery);
            one.fault(format!("{what}: {name} is named twice"));
        }
    }
    Some(delivered)
}

/// Reads the versions of messages, which must be in increasing order.
fn read_versions(field: &Field<'_, '_>, operation: Algorithm, tree: &Tree) -> Option<Vec<Version>> {
    let expected = "a list of texts like \"3 30 8f14e45fceea167a\"";
    let mut all: Vec<Version> = Vec::new();
    for one in field.list_of(expected)? {
        let wrong = "not the next message's number, bytes, state and digest";
        let version = parse_or(&one, wrong, |text| {
            parse_version(text).filter(|version| {
                let last = all.last().map(|last| last.message);
                operation.address(tree, version.message).is_some()
                    && last.is_none_or(|last| last < version.message)
            })
        });
        all.extend(version);
    }
    Some(all)
}

/// Reads each table of a list with `read`; returns the results by the PEs that the tables name.
fn by_pe<T>(
    top: &Table<'_, '_>,
    what: &'static str,
    others: Others,
    read: impl Fn(&Table<'_, '_>) -> T,
) -> BTreeMap<PeId, T> {
    let (mut named, mut all) = (BTreeSet::new(), BTreeMap::new());
    for table in top.tables(what) {
        let pe = table.required("pe").and_then(|field| {
            let field = field.called(what);
            let pe = read_pe(&field, what, others)?;
            if !named.insert(pe) {
                field.fault(format!("{what}: {pe} is named twice"));
            }
            Some(pe)
        });
        let one = read(&table);
        all.extend(pe.map(|pe| (pe, one)));
        table.refuse_others();
    }
    all
}

/// Reads the links of the PEs to their parents, by PE index.
fn read_links(top: &Table<'_, '_>, others: Others) -> Vec<Option<EdgeSpec>> {
    let links = by_pe(top, "link", others, |table| {
        let link = |key| table.get(key, |link| link.parse_parts("a text", LinkSpec::parse));
        EdgeSpec {
            down: link("down"),
            up: link("up"),
        }
    });
    let link = |pe| links.get(&PeId(pe as u32)).copied();
    (0..others.pes).map(link).collect()
}
