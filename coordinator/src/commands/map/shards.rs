//! The shards of an input: one for each PE, or entries of any name, which any PE may get.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::anyhow;
use flitcast_node::payload::{self, Others};
use flitcast_node::task::failed_name;
use flitcast_proto::{PeId, Tree};

use super::task::{CommandFate, ShardTask};
use flitcast_cluster::job::request::count_by_input;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_proto::ops::Layout;

/// Maximum length of the name of a shard: with `.failed` behind it, it is the name of a file.
const LONGEST_NAME: usize = 255 - ".failed".len();

/// The shards of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shards {
    /// Each PE has its own: the entry with its name, or its part of the files.
    OfPes,
    /// The entries with these names, in order, which are dealt to the PEs.
    Named(Vec<OsString>),
}

impl Shards {
    /// Returns the names of the entries; empty if shards are those of PEs.
    pub fn names(&self) -> &[OsString] {
        match self {
            Shards::OfPes => &[],
            Shards::Named(names) => names,
        }
    }

    /// Returns the kind of shards in an input on this host, and sets the number of PEs where no option
    /// gives it. An input that cannot be read is reported by the scatter.
    pub fn of(input: &Path, tree: &mut TreeArgs) -> Result<Shards, Vec<anyhow::Error>> {
        let entries = payload::list(input).unwrap_or_default();
        let names: Vec<OsString> = entries.into_iter().map(OsString::from).collect();
        let is_counted = tree.pe_options().is_empty();
        let mut counted = tree.clone();
        count_by_input(&mut counted, Some(input), Layout::ByDestination);
        if are_of_pes(&names, &counted) {
            *tree = counted;
            return Ok(Shards::OfPes);
        }
        Shards::named(names, is_counted, tree)
    }

    /// Returns the shards of an input that are not `done`, with the number of those that are. Any PE may
    /// run each, whatever its name.
    pub fn without(
        done: &BTreeSet<OsString>,
        input: &Path,
        tree: &mut TreeArgs,
    ) -> Result<(Shards, usize), Vec<anyhow::Error>> {
        let entries = payload::list(input).unwrap_or_default();
        let all = entries.len();
        let mut names: Vec<OsString> = entries.into_iter().map(OsString::from).collect();
        names.retain(|name| !done.contains(name));
        let resumed = all - names.len();
        let is_counted = tree.pe_options().is_empty();
        Ok((Shards::named(names, is_counted, tree)?, resumed))
    }

    /// Returns the shards with these names; `sets_pes` sets the number of PEs.
    fn named(
        names: Vec<OsString>,
        sets_pes: bool,
        tree: &mut TreeArgs,
    ) -> Result<Shards, Vec<anyhow::Error>> {
        if sets_pes {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            tree.workers = Some(names.len().clamp(1, processors) as u32);
        }
        let faults: Vec<anyhow::Error> = names
            .iter()
            .filter_map(|name| fault(name, &names))
            .collect();
        match faults.is_empty() {
            true => Ok(Shards::Named(names)),
            false => Err(faults),
        }
    }

    /// Returns the tasks of the shards that a scatter sent to these PEs, each with the length of its
    /// message and whether that was delivered; by PE, or by name.
    ///
    /// # Errors
    ///
    /// Returns an error if the input has changed and cannot be read any more.
    pub fn tasks(
        &self,
        input: &Path,
        tree: &Tree,
        sent: &[(PeId, u64, bool)],
    ) -> anyhow::Result<Vec<ShardTask>> {
        let dealt = match self {
            Shards::OfPes => None,
            Shards::Named(names) => {
                let dealt = payload::shards_of(input, names, Others::of(tree));
                Some(dealt.map_err(|faults| anyhow!("--input: {}", faults[0]))?)
            }
        };
        let mut tasks = Vec::new();
        for &(pe, bytes, is_delivered) in sent {
            let mut of_pe: Vec<ShardTask> = match &dealt {
                None => vec![ShardTask::of_pe(pe, bytes)],
                Some(dealt) => {
                    let own = dealt.get(pe.index()).into_iter().flatten();
                    own.map(|(name, bytes)| ShardTask::named(name.clone(), pe, *bytes))
                        .collect()
                }
            };
            if !is_delivered {
                for task in &mut of_pe {
                    let died = "died before it had its shard";
                    task.fate = CommandFate::Lost(died.to_owned());
                }
            }
            tasks.extend(of_pe);
        }
        match self {
            Shards::OfPes => tasks.sort_by_key(|task| task.home),
            Shards::Named(_) => {
                tasks.sort_by(|one, other| one.name.cmp(&other.name));
                for (seq, task) in (1..).zip(&mut tasks) {
                    task.seq = seq;
                }
            }
        }
        Ok(tasks)
    }
}

/// Returns whether each of these entries is named by a PE that can have a shard. They are, if the tree
/// is not valid, which the scatter reports.
fn are_of_pes(entries: &[OsString], tree: &TreeArgs) -> bool {
    if tree.pe_options().is_empty() {
        return entries.is_empty();
    }
    let offered = tree.offered(SpanningArg::Bfs).unwrap_or_default();
    let Some(topology) = offered.first() else {
        return true;
    };
    let names = topology.places().names();
    let others = Others::of(&topology.tree).named(&names);
    let is_of_pe = |entry: &OsString| {
        let pe = others.pe_of(entry);
        pe.is_some_and(|pe| pe < others.pes && Some(pe) != others.root.map(PeId::index))
    };
    entries.iter().all(is_of_pe)
}

/// Returns the reason why a shard cannot have its name.
fn fault(name: &OsStr, names: &[OsString]) -> Option<anyhow::Error> {
    let shown = name.display();
    if name.len() > LONGEST_NAME {
        return Some(anyhow!(
            "--input: `{shown}` has more than {LONGEST_NAME} bytes; give the shard a shorter name"
        ));
    }
    let failed = failed_name(name);
    names.binary_search(&failed).is_ok().then(|| {
        let failed = failed.display();
        anyhow!(
            "--input: `{failed}` would be both a result and the output of a failed command on \
             `{shown}`; rename it"
        )
    })
}
