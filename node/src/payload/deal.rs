//! Dealing: the files or the entries of a directory, distributed over the PEs in messages that are
//! about equally long.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;

use super::content::Content;
use super::entry::EntryKind;
use super::error::PayloadError;
use super::others::Others;
use super::refusal::shown;
use super::scan::{FoundEntry, Walk};

/// Deals all regular files, symlinks and empty directories below a directory to all PEs but the
/// root, so that the messages are about equally long. Returns the content of M_i at index `i`.
pub fn deal(dir: &Path, others: Others) -> Result<Vec<Option<Content>>, PayloadError> {
    // With a slash at its end the path means a directory, or a symlink to one.
    let dir = dir.join("");
    let mut files = Vec::new();
    list_files(&dir, Path::new(""), &mut files)?;
    let items = files.into_iter().map(|(bytes, file)| (bytes, vec![file]));
    dealt(dir, items.collect(), others)
}

/// Deals entries of a directory to all PEs but the root, each entry whole, so that the messages are
/// about equally long. Returns the content of M_i at index `i`.
///
/// On failure returns all errors, so that the user can correct them at once.
pub fn deal_shards(
    dir: &Path,
    shards: &[OsString],
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let (mut items, mut faults) = (Vec::new(), Vec::new());
    for shard in shards {
        let mut files = Vec::new();
        match list_files(dir, Path::new(shard), &mut files) {
            Ok(()) => items.push((
                // Measuring reports a message that is too long.
                files
                    .iter()
                    .fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes)),
                files.into_iter().map(|(_, file)| file).collect(),
            )),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    dealt(dir.join(""), items, others).map_err(|fault| vec![fault])
}

/// Returns the names of the entries of a directory that [`deal_shards`] deals to each PE, by its
/// index, in order, with the bytes of their files.
///
/// On failure returns all errors.
pub fn shards_of(
    dir: &Path,
    shards: &[OsString],
    others: Others,
) -> Result<Vec<Vec<(OsString, u64)>>, Vec<PayloadError>> {
    let contents = deal_shards(dir, shards, others)?;
    let mut all = Vec::new();
    for content in contents {
        let mut own: BTreeMap<OsString, u64> = BTreeMap::new();
        for found in content.iter().flat_map(Walk::of) {
            let FoundEntry { entry, .. } = found.map_err(|fault| vec![fault])?;
            if let Some(name) = entry.path.iter().next() {
                let bytes = own.entry(name.to_owned()).or_default();
                *bytes = bytes.saturating_add(entry.size());
            }
        }
        all.push(own.into_iter().collect());
    }
    Ok(all)
}

/// Adds the regular files, symlinks and empty directories of an entry of a directory, or of all its
/// entries if `below` is empty, with their lengths and their paths in that directory.
fn list_files(
    dir: &Path,
    below: &Path,
    files: &mut Vec<(u64, PathBuf)>,
) -> Result<(), PayloadError> {
    // The directory found last, until an entry in it is found.
    let mut empty: Option<PathBuf> = None;
    for found in Walk::of(&Content::Entry(dir.join(below))) {
        let FoundEntry { entry, .. } = found?;
        // An empty path would add a slash.
        let path = match entry.is_root() {
            true => below.to_owned(),
            false => below.join(&entry.path),
        };
        let is_left = |empty: &PathBuf| !path.starts_with(empty);
        files.extend(empty.take().filter(is_left).map(|empty| (0, empty)));
        match entry.kind {
            EntryKind::Directory => empty = (!path.as_os_str().is_empty()).then_some(path),
            EntryKind::File { .. } | EntryKind::Symlink { .. } => files.push((entry.size(), path)),
        }
    }
    files.extend(empty.map(|empty| (0, empty)));
    Ok(())
}

/// Deals items of a directory, each of some files with their total length, to all PEs but the root:
/// the largest one first, each to the PE with the fewest bytes, then the fewest items, then the
/// lowest index.
fn dealt(
    dir: PathBuf,
    items: Vec<(u64, Vec<PathBuf>)>,
    others: Others,
) -> Result<Vec<Option<Content>>, PayloadError> {
    let mut items: Vec<_> = items
        .into_iter()
        .map(|(bytes, files)| (Reverse(bytes), files))
        .collect();
    items.sort();
    // Of each PE the total length in bytes of its items so far, their number, and the files.
    let mut hands: Vec<(u64, usize, Vec<PathBuf>)> = vec![Default::default(); others.count()];
    for (Reverse(bytes), item) in items {
        // The first of equal minima is taken: the lowest index.
        let hand = hands
            .iter_mut()
            .min_by_key(|(bytes, items, _)| (*bytes, *items));
        let Some((total, items, files)) = hand else {
            let root = others.root.unwrap_or(PeId::ROOT);
            let dir = shown(&dir);
            return Err(PayloadError::Unusable(format!(
                "the files below {dir} cannot be distributed: the only PE is {root}"
            )));
        };
        *total = total.saturating_add(bytes);
        *items += 1;
        files.extend(item);
    }

    let mut contents = vec![None; others.pes];
    for (pe, (.., mut files)) in others.iter().zip(hands) {
        if !files.is_empty() {
            files.sort();
            contents[pe] = Some(Content::Dealt {
                base: dir.clone(),
                files: files.into(),
            });
        }
    }
    Ok(contents)
}
