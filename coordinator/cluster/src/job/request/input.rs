//! The lengths of messages made of files, as the PEs will read them.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use flitcast_node::payload::{self, Others, Pattern, PayloadError};
use flitcast_plan::Algorithm;
use flitcast_proto::items::Address;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::FilePayload;
use flitcast_proto::{DeliveryId, Tree};

use crate::options::tree::TreeArgs;
use crate::site::topology::Topology;
use crate::text::faults::Faults;
use crate::text::units::{Bytes, MAX_TOTAL_BYTES};

/// Reads the input as the PEs will: on one machine an error for them is an error here. Returns the
/// lengths by delivery, without those that are left out. Entries can be called by the
/// `names` of PEs, if there are any. The distribution of files only repeats if none
/// has changed, so all are checked.
pub fn measure_input(
    files: &FilePayload,
    operation: Algorithm,
    tree: &Tree,
    names: &[String],
    left_out: impl Fn(DeliveryId) -> bool,
) -> Result<Vec<u64>, Faults> {
    let (input, spread) = (&files.input, files.spread);
    if let Some(fault) = file_fault(input, operation.collective().layout()).filter(|_| !spread) {
        return Err(fault.into());
    }
    let of_input = |fault| anyhow!("--input: {fault}");
    let all = |faults: Vec<PayloadError>| Faults::all(faults.into_iter().map(of_input));
    let all_pes = Others::all(tree.len()).named(names);
    // By id.
    let pattern = Pattern::of(input);
    let contents = match (operation.collective().layout(), &pattern) {
        (Layout::ByDestination | Layout::Pieces, Some(pattern)) => {
            return Err(anyhow!(
                "--input: {pattern} has wildcards, which a gather, a gossip and a broadcast expand; \
                 name the folder of the messages here"
            )
            .into());
        }
        (Layout::BySource, Some(pattern)) => {
            payload::pattern_input(pattern, Others::of(tree).named(names))
        }
        (Layout::Shards, Some(pattern)) => payload::pattern_input(pattern, all_pes),
        (Layout::ByDestination | Layout::BySource, None) => {
            payload::scatter_input(files, Others::of(tree).named(names))
        }
        (Layout::Whole, _) => payload::whole_input(input.to_owned())
            .map(|whole| vec![Some(whole)])
            .map_err(|fault| vec![fault]),
        (Layout::Shards, None) => payload::read_input_dir(input, all_pes),
        (Layout::Pieces, None) => payload::pieces_input(input, all_pes),
    };
    let contents = contents.and_then(|contents| payload::select(files, contents));
    let mut contents = contents.map_err(all)?;
    let is_expected = |it: &DeliveryId| {
        operation.collective().can_deliver(tree, *it) && (spread || !left_out(*it))
    };
    let expected = |message: Address| -> Vec<DeliveryId> {
        let ends = message.ends(tree);
        let deliveries = ends.map(|at| operation.collective().delivery(tree, message.id, at));
        deliveries.filter(is_expected).collect()
    };
    for message in operation.collective().messages(tree) {
        contents[message.id.index()].take_if(|_| expected(message).is_empty());
    }
    let measured = payload::measure_all(&contents, files.archive).map_err(all)?;
    let total = measured
        .iter()
        .try_fold(0u64, |sum, message| sum.checked_add(message.bytes));
    if total.is_none_or(|total| total > MAX_TOTAL_BYTES) {
        let (input, most) = (input.display(), Bytes(MAX_TOTAL_BYTES));
        let fault = anyhow!("the messages below {input} are longer than {most} together");
        return Err(fault.into());
    }
    let mut bytes = vec![0; operation.collective().deliveries(tree)];
    for message in operation.collective().messages(tree) {
        for delivery in expected(message) {
            bytes[delivery.index()] = measured[message.id.index()].bytes;
        }
    }
    Ok(bytes)
}

/// Returns the names of the entries of a folder, and the highest PE among these names.
fn entries(folder: &Path) -> (Vec<PathBuf>, Option<u32>) {
    let found = folder.read_dir().into_iter().flatten().flatten();
    let paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    let named = |path: &PathBuf| payload::pe_of(path.file_name()?)?.try_into().ok();
    let highest = paths.iter().filter_map(named).max();
    (paths, highest)
}

/// Returns the folder with an entry for each PE.
fn folder_of(input: &Path) -> PathBuf {
    let pattern = Pattern::of(input);
    pattern.map_or_else(|| input.to_owned(), |pattern| pattern.folder)
}

/// Returns the highest PE that the input names, in the folders of an exchange as well.
fn highest_pe(input: &Path, layout: Layout) -> Option<u32> {
    let (paths, highest) = entries(&folder_of(input));
    let below = match layout {
        Layout::Whole => return None,
        Layout::Pieces => &paths[..],
        _ => &[],
    };
    let below = below.iter().filter_map(|folder| entries(folder).1);
    below.chain(highest).max()
}

/// Takes the number of PEs from the input where no option gives it.
pub fn count_by_input(tree: &mut TreeArgs, input: Option<&Path>, layout: Layout) {
    if tree.pe_options().is_empty() {
        tree.workers = input.and_then(|input| highest_pe(input, layout));
    }
}

/// Returns the reason why the entries of an input do not give the number of PEs; `None` if they are not
/// used.
pub fn uncounted(input: &Path, layout: Layout) -> Option<String> {
    if layout == Layout::Whole {
        return None;
    }
    if let Some(fault) = file_fault(input, layout) {
        return Some(fault.to_string());
    }
    let names = match payload::list(&folder_of(input)) {
        Ok(names) => names,
        Err(fault) => return Some(format!("--input: {fault}")),
    };
    let meant = names
        .iter()
        .find_map(|name| Some((name, payload::meant_pe(name.as_os_str())?)));
    let why = match (names.len(), meant, layout) {
        (0, ..) => "the folder has no entries; put p1, p2, .. into it, one for each PE".to_owned(),
        (_, Some((name, pe)), _) => {
            let name = name.display();
            format!("no entry is named like a PE; did you mean p{pe} by `{name}`?")
        }
        (count, None, Layout::ByDestination) => {
            format!("no entry is named like a PE (p1); use -n {count} --spread, or `flitcast map`")
        }
        (count, ..) => format!("none of {count} entries is named like a PE (p1, p2, ..)"),
    };
    Some(format!("--input {}: {why}", input.display()))
}

/// Returns the error of an input that is a file where a folder with an entry for each PE is needed.
fn file_fault(input: &Path, layout: Layout) -> Option<anyhow::Error> {
    let is_path = Pattern::of(input).is_none();
    let is_file = is_path && input.metadata().is_ok_and(|found| !found.is_dir());
    let advice = match layout {
        Layout::Whole => return None,
        Layout::ByDestination => {
            "divide it with --lines, --blocks SIZE or --split N, or give a folder"
        }
        Layout::BySource | Layout::Shards => "give a folder in which p1 is the message of P1",
        Layout::Pieces => "give a folder in which p1/p2 is the message of P1 for P2",
    };
    is_file.then(|| anyhow!("--input {}: it is a file; {advice}", input.display()))
}

/// Returns an error with the options that fit an input with messages for more PEs than there are; `None`
/// if there are enough, or if a cluster file describes the PEs.
pub fn count_fault(input: &Path, layout: Layout, topology: &Topology) -> Option<anyhow::Error> {
    let (root, pes) = (topology.tree.root(), topology.tree.len());
    let without_root = matches!(layout, Layout::ByDestination | Layout::BySource);
    let is_of_other =
        |path: &PathBuf| path.file_name().and_then(payload::pe_of) != Some(root.index());
    let none = match without_root {
        true => format!("{root} has no message, and "),
        false => String::new(),
    };
    // A folder with a pattern below it may have other entries than those of PEs.
    let least = match without_root && Pattern::of(input).is_none() {
        true => entries(input).0.iter().filter(|it| is_of_other(it)).count(),
        false => 0,
    };
    let highest = highest_pe(input, layout).map_or(0, |pe| pe as usize);
    let others = highest.max(least);
    if others < pes || topology.placement.is_some() {
        return None;
    }
    let option = match topology.network {
        Some(_) => "--network",
        None => "--tree",
    };
    let shape = topology.name.split(' ').next();
    let shape = shape.and_then(|name| name.strip_suffix(&format!(":{pes}")));
    let shape = shape.filter(|shape| *shape != "random");
    let tree = shape.map(|shape| format!(" or {option} {shape}:{}", others + 1));
    Some(anyhow!(
        "--input: {none}there are {} other PEs; use -n {others}{}",
        pes - 1,
        tree.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::job::test_tree::tree;

    const GOSSIP: Algorithm = Algorithm::GOSSIP_FLOOD;
    const EXCHANGE: Algorithm = Algorithm::EXCHANGE_TREE;

    /// Lengths of entries are as in the input; deliveries that are left out have length 0, and their
    /// entries may be missing.
    #[test]
    fn entries_are_measured_by_delivery() {
        let dir = tempfile::tempdir().unwrap();
        let measure = |operation, left_out: &[u32]| {
            let left_out = |it: DeliveryId| left_out.contains(&it.0);
            let files = FilePayload {
                input: dir.path().to_owned(),
                ..FilePayload::default()
            };
            measure_input(&files, operation, &tree("star:3"), &[], left_out)
        };
        // All with one modification time, which is a part of a message: another time could change its
        // length.
        let write = |name: &str| {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            (&file).write_all(b"p0").unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        write("p0");
        write("p2");
        let whole = measure(GOSSIP, &[]).unwrap();
        let bytes = whole[1];
        assert!(bytes > 0);
        assert_eq!(whole, [0, bytes, bytes, 0, 0, 0, bytes, bytes, 0]);
        assert_eq!(
            measure(GOSSIP, &[2, 6, 7]).unwrap(),
            [0, bytes, 0, 0, 0, 0, 0, 0, 0]
        );
        for name in ["p0", "p2"] {
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        for name in ["p0/p2", "p1/p0"] {
            let path = dir.path().join(name);
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            write(name);
        }
        let pieces = measure(EXCHANGE, &[3]).unwrap();
        assert_eq!(pieces, [0, 0, bytes, 0, 0, 0, 0, 0, 0]);
        assert_eq!(highest_pe(dir.path(), Layout::Pieces), Some(2));
        assert_eq!(highest_pe(dir.path(), Layout::BySource), Some(1));
        std::fs::write(dir.path().join("p1/p1"), "").unwrap();
        let faults = measure(EXCHANGE, &[]).unwrap_err();
        assert!(faults.to_string().contains("p1/p1"), "{faults}");
    }
}
