//! The shards of an input: one for each PE, or entries of any name, which any PE may get.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::anyhow;
use flitcast_node::payload::{self, Others};
use flitcast_node::task::failed_name;
use flitcast_proto::ops::Layout;
use flitcast_proto::{PeId, Tree};

use super::task::{CommandFate, ShardTask};
use flitcast_cluster::job::request::count_by_input;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};

/// Maximum length of the name of a shard: with `.failed` behind it, it is the name of a file.
const LONGEST_NAME: usize = 255 - ".failed".len();

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shards {
    /// Each PE has its own: the entry with its number or name, or its part of the files.
    OfPes {
        /// The names of the entries; if files are dealt, of the PEs that have names.
        entries: BTreeMap<PeId, OsString>,
    },
    /// Entries that are dealt to the PEs.
    Named {
        /// The names of the entries in order, and the bytes of their files.
        left: Vec<(OsString, u64)>,
        /// Number of further entries, which have results already.
        done: usize,
    },
}

impl Shards {
    /// Returns the shards of PEs with these names, among which files are dealt or whose entries are not
    /// known.
    pub fn dealt(names: &[String]) -> Shards {
        let entry = |pe| payload::output_entry(Path::new(""), pe, names).into_os_string();
        let pes = (0..names.len() as u32).map(PeId);
        Shards::OfPes {
            entries: pes.map(|pe| (pe, entry(pe))).collect(),
        }
    }

    pub fn are_of_pes(&self) -> bool {
        matches!(self, Shards::OfPes { .. })
    }

    /// Returns the names of the entries; empty if shards are those of PEs.
    pub fn names(&self) -> Vec<OsString> {
        match self {
            Shards::OfPes { .. } => Vec::new(),
            Shards::Named { left, .. } => left.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Returns the number of shards that have results already.
    pub fn done(&self) -> usize {
        match self {
            Shards::OfPes { .. } => 0,
            Shards::Named { done, .. } => *done,
        }
    }

    /// Returns the kind of shards in an input on this host, and sets the number of PEs where no option
    /// gives it. With `done`, the shards are those that are not in it, which any PE may run, whatever
    /// their names. An input that cannot be read is reported by the scatter.
    pub fn of(
        input: &Path,
        tree: &mut TreeArgs,
        done: Option<&BTreeSet<OsString>>,
    ) -> Result<Shards, Vec<anyhow::Error>> {
        let entries = payload::list(input).unwrap_or_default();
        let mut names: Vec<OsString> = entries.into_iter().map(OsString::from).collect();
        let (all, is_counted) = (names.len(), tree.pe_options().is_empty());
        match done {
            Some(done) => names.retain(|name| !done.contains(name)),
            None => {
                let mut counted = tree.clone();
                count_by_input(&mut counted, Some(input), Layout::ByDestination);
                if let Some(entries) = of_pes(&names, &counted) {
                    *tree = counted;
                    return Ok(Shards::OfPes { entries });
                }
            }
        }
        if is_counted {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            tree.workers = Some(names.len().clamp(1, processors) as u32);
        }
        check(&names)?;
        let left = payload::measure_shards(input, &names).map_err(|all| {
            let all = all.into_iter().map(|fault| anyhow!("--input: {fault}"));
            all.collect::<Vec<_>>()
        })?;
        let done = all - left.len();
        Ok(Shards::Named { left, done })
    }

    /// Returns the kind of shards that P0 has listed, with the bytes of their files; `done` as above.
    pub fn listed(
        mut left: Vec<(OsString, u64)>,
        tree: &TreeArgs,
        done: Option<&BTreeSet<OsString>>,
    ) -> Result<Shards, Vec<anyhow::Error>> {
        let all = left.len();
        if let Some(done) = done {
            left.retain(|(name, _)| !done.contains(name));
        }
        let names: Vec<OsString> = left.iter().map(|(name, _)| name.clone()).collect();
        if done.is_none()
            && let Some(entries) = of_pes(&names, tree)
        {
            return Ok(Shards::OfPes { entries });
        }
        check(&names)?;
        let done = all - left.len();
        Ok(Shards::Named { left, done })
    }

    /// Returns the tasks of the shards that a scatter sent to these PEs, each with the length of its
    /// message and whether that was delivered; by PE, or by name.
    pub fn tasks(&self, tree: &Tree, sent: &[(PeId, u64, bool)]) -> Vec<ShardTask> {
        let dealt = match self {
            Shards::OfPes { .. } => Vec::new(),
            Shards::Named { left, .. } => payload::shards_of(left, Others::of(tree)),
        };
        let mut tasks = Vec::new();
        for &(pe, bytes, is_delivered) in sent {
            let mut of_pe: Vec<ShardTask> = match self {
                Shards::OfPes { entries } => {
                    vec![ShardTask::of_pe(pe, entries.get(&pe), bytes)]
                }
                Shards::Named { .. } => {
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
            Shards::OfPes { .. } => tasks.sort_by_key(|task| task.home),
            Shards::Named { .. } => {
                tasks.sort_by(|one, other| by_numbers(&one.name, &other.name));
                for (seq, task) in (1..).zip(&mut tasks) {
                    task.seq = seq;
                }
            }
        }
        tasks
    }
}

/// Returns the PEs of these entries, if each is named by a PE that can have a shard. The result is empty if
/// the tree is not valid, which the scatter reports.
fn of_pes(entries: &[OsString], tree: &TreeArgs) -> Option<BTreeMap<PeId, OsString>> {
    if tree.pe_options().is_empty() {
        return entries.is_empty().then(BTreeMap::new);
    }
    let offered = tree.offered(SpanningArg::Bfs).unwrap_or_default();
    let Some(topology) = offered.first() else {
        return Some(BTreeMap::new());
    };
    let names = topology.places().names();
    let others = Others::of(&topology.tree).named(&names);
    let with_pe = |entry: &OsString| {
        let pe = others.pe_of(entry).filter(|pe| *pe < others.pes)?;
        let pe = PeId(pe as u32);
        (Some(pe) != others.root).then(|| (pe, entry.clone()))
    };
    entries.iter().map(with_pe).collect()
}

/// Checks that shards can have these names, which are in order.
fn check(names: &[OsString]) -> Result<(), Vec<anyhow::Error>> {
    let faults: Vec<anyhow::Error> = names.iter().filter_map(|name| fault(name, names)).collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
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

/// Compares two names: numbers in them by their values, everything else by its bytes.
fn by_numbers(one: &OsStr, other: &OsStr) -> Ordering {
    let (mut left, mut right) = (one.as_bytes(), other.as_bytes());
    while let ([first, after_first @ ..], [second, after_second @ ..]) = (left, right) {
        let ordering = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, rest) = split_number(left);
            let (other_number, other_rest) = split_number(right);
            (left, right) = (rest, other_rest);
            let lengths = number.len().cmp(&other_number.len());
            lengths.then_with(|| number.cmp(other_number))
        } else {
            (left, right) = (after_first, after_second);
            first.cmp(second)
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    // Names that differ in leading zeros alone have an order, too.
    let lengths = left.len().cmp(&right.len());
    lengths.then_with(|| one.cmp(other))
}

/// Splits the digits at the beginning of a text from the rest, and removes their leading zeros.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = text.split_at(digits.count());
    let zeros = number.iter().take_while(|byte| **byte == b'0').count();
    (&number[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_values() {
        let sorted = [
            "",
            "0",
            "00",
            "01",
            "1",
            "1a",
            "2",
            "10",
            "11",
            "a",
            "a1",
            "a1b2",
            "a1b10",
            "a02",
            "a2",
            "a10",
            "a99999999999999999999998",
            "a99999999999999999999999",
            "b",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (beside, other) in sorted.iter().enumerate() {
                let found = by_numbers(OsStr::new(one), OsStr::new(other));
                assert_eq!(found, at.cmp(&beside), "{one} {other}");
            }
        }
    }
}
