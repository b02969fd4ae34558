//! A record from its text: each value is what it should be, or a fault with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use flitcast_proto::network::NetworkSpec;
use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};
use toml::de::DeTable;

use super::{Fault, Record, VERSION};
use crate::files::toml_file::{self, SpotFault, Value};
use crate::options::args::{GatherAlgorithm, ScatterAlgorithm};
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::options::names::algorithm_name;
use crate::options::timeouts;
use crate::site::slurm::Slurm;
use crate::ways::baseline::Baseline;
use crate::ways::candidates::check_path;

type Reader<'t> = toml_file::Reader<'t, Fault>;

const KEYS: [&str; 22] = [
    "version",
    "undertaking",
    "operation",
    "algorithm",
    "sync",
    "pacing",
    "tree",
    "parents",
    "network",
    "nodes",
    "cluster",
    "credentials",
    "flit_bytes",
    "timeouts",
    "input",
    "output",
    "spread",
    "replace",
    "bytes",
    "delivered",
    "link",
    "dead",
];

/// Reads the record in `text`; otherwise, at least one fault, in the order of the file.
pub fn parse(text: &str) -> Result<Record, Vec<SpotFault<Fault>>> {
    toml_file::parse(text, |reader, document| reader.record(document))
}

/// The operation of these names, with the names as they live here.
fn operation(
    operation: &str,
    algorithm: &str,
    sync: Option<&str>,
) -> Option<(Operation, &'static str, Option<&'static str>)> {
    let baselines = [
        (ScatterAlgorithm::Linear, GatherAlgorithm::Linear),
        (ScatterAlgorithm::Linear, GatherAlgorithm::Window),
        (ScatterAlgorithm::Binomial, GatherAlgorithm::Binomial),
        (ScatterAlgorithm::Adaptive, GatherAlgorithm::Adaptive),
    ];
    let scatters = baselines.iter().filter_map(|(scatter, _)| {
        let baseline = Baseline::of_scatter(*scatter)?;
        Some((baseline.scatter(), baseline.name()))
    });
    let gathers = baselines.iter().filter_map(|(_, gather)| {
        let baseline = Baseline::of_gather(*gather)?;
        Some((baseline.gather(), baseline.name()))
    });
    let ours = [
        Operation::Scatter,
        Operation::ShoulderTap,
        Operation::Certification(Sync::Serial),
        Operation::Certification(Sync::Pipelined),
    ];
    let ours = ours.map(|ours| {
        let (name, sync) = algorithm_name(ours);
        (ours, name, sync)
    });
    let others = scatters.chain(gathers).map(|(op, name)| (op, name, None));
    ours.into_iter().chain(others).find(|(op, name, its_sync)| {
        op.is_scatter() == (operation == "scatter") && *name == algorithm && *its_sync == sync
    })
}

impl Reader<'_> {
    fn record(&mut self, document: &DeTable<'_>) -> Option<Record> {
        let Some(version) = document.get("version") else {
            self.fault(None, Fault::NoVersion);
            return None;
        };
        if version.get_ref().as_integer().map(|v| v.as_str()) != Some(&VERSION.to_string()) {
            let found = self.found(version);
            self.fault(self.spot_of(version), Fault::OtherVersion { found });
            return None;
        }
        for key in document.keys() {
            if !KEYS.contains(&key.get_ref().as_ref()) {
                self.unknown_key(key, KEYS.join(", "));
            }
        }
        let undertaking = self.undertaking(document);
        let tree = self.tree(document);
        let last = tree.as_ref().map_or(0, |tree| tree.len() - 1);
        let tree_name = self.text(document, "tree");
        let operation = self.operation(document, tree.as_ref());
        let pacing = self.pacing(document);
        let network = self.network(document, last + 1);
        let cluster = self.cluster(document);
        let credentials = self.optional_path(document, "credentials");
        let flit_bytes = self.flit_bytes(document);
        let timeouts = self.timeouts(document);
        let (input, output) = (self.path(document, "input"), self.path(document, "output"));
        let (spread, replace) = (
            self.flag(document, "spread"),
            self.flag(document, "replace"),
        );
        let bytes = self.numbers(document, "bytes");
        if let (Some(bytes), Some(_)) = (&bytes, &tree) {
            self.count(document, "bytes", bytes.len(), last);
        }
        let delivered = self.delivered(document, last);
        let links = self.links(document, last);
        let dead = self.dead(document, last);
        // Every `None` was reported, and whatever else is wrong refuses the whole.
        let (operation, algorithm, sync) = operation?;
        Some(Record {
            undertaking: undertaking?,
            operation,
            algorithm,
            sync,
            pacing: pacing?,
            tree_name: tree_name?,
            tree: tree?,
            network: network?,
            cluster: cluster?,
            credentials: credentials?,
            flit_bytes: flit_bytes?,
            timeouts: timeouts?,
            input: input?,
            spread: spread?,
            output: output?,
            replace: replace?,
            bytes: std::iter::once(0).chain(bytes?).collect(),
            delivered: delivered?,
            links: links?,
            dead: dead?,
        })
    }

    fn value<'a, 't>(
        &mut self,
        table: &'a DeTable<'t>,
        key: &'static str,
    ) -> Option<&'a Value<'t>> {
        let value = table.get(key);
        if value.is_none() {
            self.fault(None, Fault::Missing(key));
        }
        value
    }

    fn text(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<String> {
        let value = self.value(table, key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a text", value);
        }
        text.map(str::to_owned)
    }

    /// As it stands in the names of receipts: sixteen hexadecimal digits.
    fn undertaking(&mut self, document: &DeTable<'_>) -> Option<u64> {
        let text = self.text(document, "undertaking")?;
        let id = u64::from_str_radix(&text, 16).ok();
        let id = id.filter(|id| format!("{id:016x}") == text);
        if id.is_none() {
            let spot = document.get("undertaking").map(|value| self.spot_of(value));
            self.fault(spot, Fault::Undertaking(text));
        }
        id
    }

    fn path(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<PathBuf> {
        let path = PathBuf::from(self.text(table, key)?);
        // A zero byte would end it for the system.
        if !path.is_absolute() || path.to_str().is_some_and(|path| path.contains('\0')) {
            let spot = table.get(key).map(|value| self.spot_of(value));
            self.fault(spot, Fault::Relative(key));
            return None;
        }
        Some(path)
    }

    /// That a list has as many values as there are PEs.
    fn count(&mut self, table: &DeTable<'_>, key: &'static str, found: usize, expected: usize) {
        if found != expected {
            let spot = table.get(key).map(|value| self.spot_of(value));
            let count = Fault::Count {
                key,
                found,
                expected,
            };
            self.fault(spot, count);
        }
    }

    fn optional_path(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<Option<PathBuf>> {
        match table.contains_key(key) {
            true => self.path(table, key).map(Some),
            false => Some(None),
        }
    }

    /// A file, or the job of Slurm that the command runs in.
    fn cluster(&mut self, table: &DeTable<'_>) -> Option<Option<PathBuf>> {
        let said = table
            .get("cluster")
            .and_then(|value| value.get_ref().as_str());
        match said.filter(|said| Slurm::asked(said).is_some()) {
            Some(job) => Some(Some(job.into())),
            None => self.optional_path(table, "cluster"),
        }
    }

    fn flag(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<bool> {
        let Some(value) = table.get(key) else {
            return Some(false);
        };
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        flag
    }

    fn number(&mut self, key: &'static str, value: &Value<'_>) -> Option<u64> {
        let integer = value.get_ref().as_integer();
        let number = integer.filter(|integer| integer.radix() == 10);
        let number = number.and_then(|integer| integer.as_str().parse().ok());
        if number.is_none() {
            self.wrong_type(key, "a whole number, not below 0", value);
        }
        number
    }

    fn numbers(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<Vec<u64>> {
        let value = self.value(table, key)?;
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(key, "a list", value);
            return None;
        };
        let numbers: Vec<Option<u64>> = list.iter().map(|one| self.number(key, one)).collect();
        numbers.into_iter().collect()
    }

    fn tree(&mut self, document: &DeTable<'_>) -> Option<Tree> {
        let parents = self.numbers(document, "parents")?;
        let parents = parents
            .into_iter()
            .map(|parent| Some(PeId(u32::try_from(parent).unwrap_or(u32::MAX))));
        let tree = Tree::from_parents(std::iter::once(None).chain(parents).collect());
        let spot = document.get("parents").map(|value| self.spot_of(value));
        tree.map_err(|faults| {
            for fault in faults.0 {
                self.fault(spot, Fault::Tree(fault));
            }
        })
        .ok()
    }

    fn operation(
        &mut self,
        document: &DeTable<'_>,
        tree: Option<&Tree>,
    ) -> Option<(Operation, &'static str, Option<&'static str>)> {
        let name = self.text(document, "operation");
        let algorithm = self.text(document, "algorithm");
        let sync = match document.get("sync") {
            Some(_) => Some(self.text(document, "sync")?),
            None => None,
        };
        let (name, given) = (name?, algorithm?);
        if !["scatter", "gather"].contains(&name.as_str()) {
            let spot = document.get("operation").map(|value| self.spot_of(value));
            self.fault(spot, Fault::Operation(name));
            return None;
        }
        let spot = document.get("algorithm").map(|value| self.spot_of(value));
        let Some(found) = operation(&name, &given, sync.as_deref()) else {
            let given = sync.map_or(given.clone(), |sync| format!("{given}, {sync}"));
            self.fault(
                spot,
                Fault::Algorithm {
                    operation: name,
                    given,
                },
            );
            return None;
        };
        let (operation, algorithm, _) = found;
        let unfit = match (operation, tree) {
            (Operation::ShoulderTap, Some(tree)) => check_path(tree, &"the tree").err(),
            (Operation::LinearGather { .. }, Some(tree)) => {
                let is_star = tree.children(PeId::ROOT).len() + 1 == tree.count();
                let spec = "the tree".to_owned();
                (!is_star).then_some(crate::ways::candidates::Unfit::NotComplete { spec })
            }
            _ => None,
        };
        if let Some(why) = unfit {
            self.fault(spot, Fault::Unfit { algorithm, why });
        }
        Some(found)
    }

    fn pacing(&mut self, document: &DeTable<'_>) -> Option<Option<Pacing>> {
        let Some(value) = document.get("pacing") else {
            return Some(None);
        };
        let text = self.text(document, "pacing")?;
        let pacing = match text.as_str() {
            "scheduled" => Some(Pacing::Scheduled),
            "turns" => Some(Pacing::Turns),
            "eager" => Some(Pacing::Eager),
            _ => None,
        };
        if pacing.is_none() {
            self.fault(self.spot_of(value), Fault::Pacing(text));
            return None;
        }
        Some(pacing)
    }

    fn network(
        &mut self,
        document: &DeTable<'_>,
        pes: usize,
    ) -> Option<Option<(Option<NetworkSpec>, Vec<u32>)>> {
        match (document.get("network"), document.get("nodes")) {
            (None, None) => return Some(None),
            (Some(_), Some(_)) => {}
            (Some(value), None) => {
                self.fault(self.spot_of(value), Fault::Alone("network", "nodes"));
                return None;
            }
            // They may be those of the cluster file.
            (None, Some(_)) if document.contains_key("cluster") => {}
            (None, Some(value)) => {
                self.fault(self.spot_of(value), Fault::Alone("nodes", "network"));
                return None;
            }
        }
        let spot = document.get("network").map(|value| self.spot_of(value));
        let spec = match spot {
            Some(_) => Some(self.text(document, "network")?.parse()),
            None => None,
        };
        let spec = spec.transpose();
        let spec = spec.map_err(|fault| self.fault(spot, Fault::Network(fault)));
        let spot = document.get("nodes").map(|value| self.spot_of(value));
        let nodes = self.numbers(document, "nodes")?.into_iter();
        let nodes: Vec<u32> = nodes
            .map(|node| u32::try_from(node).unwrap_or(u32::MAX))
            .collect();
        self.count(document, "nodes", nodes.len(), pes);
        let mut seen = BTreeSet::new();
        if let Some(&node) = nodes.iter().find(|node| !seen.insert(**node)) {
            self.fault(spot, Fault::NodeTwice(node));
        }
        Some(Some((spec.ok()?, nodes)))
    }

    fn flit_bytes(&mut self, document: &DeTable<'_>) -> Option<u32> {
        let value = self.value(document, "flit_bytes")?;
        let bytes = self.number("flit_bytes", value)?;
        match u32::try_from(bytes) {
            Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Some(fits),
            _ => {
                self.fault(self.spot_of(value), Fault::FlitBytes(bytes));
                None
            }
        }
    }

    fn timeouts(&mut self, document: &DeTable<'_>) -> Option<flitcast_node::limits::Timeouts> {
        let text = self.text(document, "timeouts")?;
        let spot = document.get("timeouts").map(|value| self.spot_of(value));
        let timeouts = timeouts::parse(&text);
        timeouts
            .map_err(|faults| {
                for fault in faults {
                    self.fault(spot, Fault::Timeouts(fault));
                }
            })
            .ok()
    }

    /// Somebody with a message, by the index that stands there.
    fn pe(&mut self, what: &'static str, value: &Value<'_>, last: usize) -> Option<PeId> {
        let pe = self.number(what, value)?;
        match u32::try_from(pe) {
            Ok(index) if index > 0 && index as usize <= last => Some(PeId(index)),
            _ => {
                self.fault(self.spot_of(value), Fault::NoSuchPe { what, pe, last });
                None
            }
        }
    }

    fn delivered(&mut self, document: &DeTable<'_>, last: usize) -> Option<BTreeSet<PeId>> {
        let what = "delivered";
        let value = self.value(document, what)?;
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(what, "a list of indices", value);
            return None;
        };
        let mut delivered = BTreeSet::new();
        for value in list.iter() {
            if let Some(pe) = self.pe(what, value, last)
                && !delivered.insert(pe)
            {
                self.fault(self.spot_of(value), Fault::Twice { what, pe });
            }
        }
        Some(delivered)
    }

    /// The tables of a list of such, each with the PE that it names.
    fn tables<'a, 't>(
        &mut self,
        document: &'a DeTable<'t>,
        what: &'static str,
        known: &[&str],
        last: usize,
    ) -> Option<BTreeMap<PeId, &'a DeTable<'t>>> {
        let mut tables = BTreeMap::new();
        let Some(value) = document.get(what) else {
            return Some(tables);
        };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_type(
                what,
                format!("[[{what}]] tables, in double brackets"),
                value,
            );
            return None;
        };
        for value in list.iter() {
            let Some(table) = value.get_ref().as_table() else {
                self.wrong_type(what, "a table", value);
                continue;
            };
            for key in table.keys() {
                if !known.contains(&key.get_ref().as_ref()) {
                    self.unknown_key(key, known.join(", "));
                }
            }
            let Some(index) = table.get("pe") else {
                self.fault(self.spot_of(value), Fault::Missing("pe"));
                continue;
            };
            if let Some(pe) = self.pe(what, index, last)
                && tables.insert(pe, table).is_some()
            {
                self.fault(self.spot_of(index), Fault::Twice { what, pe });
            }
        }
        Some(tables)
    }

    fn links(&mut self, document: &DeTable<'_>, last: usize) -> Option<Vec<Option<EdgeSpec>>> {
        let tables = self.tables(document, "link", &["pe", "down", "up"], last)?;
        let mut links = vec![None; last + 1];
        for (pe, table) in tables {
            let mut direction = |direction| {
                let text = self.text(table, direction)?;
                let spot = table.get(direction).map(|value| self.spot_of(value));
                let link = LinkSpec::parse(&text).map_err(|faults| {
                    for fault in faults {
                        self.fault(spot, Fault::Link { direction, fault });
                    }
                });
                link.ok()
            };
            if let (Some(down), Some(up)) = (direction("down"), direction("up")) {
                links[pe.index()] = Some(EdgeSpec { down, up });
            }
        }
        Some(links)
    }

    fn dead(&mut self, document: &DeTable<'_>, last: usize) -> Option<BTreeMap<PeId, String>> {
        let tables = self.tables(document, "dead", &["pe", "why"], last)?;
        let mut dead = BTreeMap::new();
        for (pe, table) in tables {
            if let Some(why) = self.text(table, "why") {
                dead.insert(pe, why);
            }
        }
        Some(dead)
    }
}
