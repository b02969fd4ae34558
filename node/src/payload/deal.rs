//! Dealing: the files or the entries of a directory, distributed over the PEs in messages that are
//! about equally long, and division of one file at the ends of lines, or of blocks.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::FilePayload;

use super::entry::{Content, EntryKind};
use super::error::{PayloadError, all_or_faults, shown};
use super::hidden::HiddenName;
use super::others::Others;
use super::scan::{FoundEntry, Walk, examine, open_regular};
use super::selection::{Choice, Selection};

/// Deals all regular files, symlinks and empty directories below a directory to all PEs but the
/// root, if they are selected, so that the messages are about equally long. Returns the content of M_i at
/// index `i`.
pub fn deal(
    dir: &Path,
    selection: &Selection,
    others: Others,
) -> Result<Vec<Option<Content>>, PayloadError> {
    // With a slash at its end the path means a directory, or a symlink to one.
    let dir = dir.join("");
    let mut files = Vec::new();
    list_files(&dir, Path::new(""), selection, &mut files)?;
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
    let items = list_shards(dir, shards)?;
    dealt(dir.join(""), items, others).map_err(|fault| vec![fault])
}

/// Returns the files of entries of a directory, as [`list_files`] does, with their total length.
fn list_shards(
    dir: &Path,
    shards: &[OsString],
) -> Result<Vec<(u64, Vec<PathBuf>)>, Vec<PayloadError>> {
    all_or_faults(shards.iter().map(|shard| {
        let mut files = Vec::new();
        list_files(dir, Path::new(shard), &Selection::default(), &mut files)?;
        // Measuring reports a message that is too long.
        let bytes = files.iter().map(|(bytes, _)| *bytes);
        let bytes = bytes.fold(0, u64::saturating_add);
        Ok((bytes, files.into_iter().map(|(_, file)| file).collect()))
    }))
}

/// Returns entries of a directory with the bytes of their files.
///
/// On failure returns all errors.
pub fn measure_shards(
    dir: &Path,
    shards: &[OsString],
) -> Result<Vec<(OsString, u64)>, Vec<PayloadError>> {
    let items = list_shards(dir, shards)?.into_iter();
    let items = shards.iter().cloned().zip(items);
    Ok(items.map(|(name, (bytes, _))| (name, bytes)).collect())
}

/// Returns the entries that [`deal_shards`] deals to each PE, by its index, of entries with the bytes of
/// their files.
pub fn shards_of(shards: &[(OsString, u64)], others: Others) -> Vec<Vec<(OsString, u64)>> {
    let items = shards.iter().map(|(name, bytes)| (*bytes, name.clone()));
    let mut of_pes = vec![Vec::new(); others.pes];
    // Without a PE to deal to, the scatter reports that.
    let hands = hands(items.collect(), others.count()).unwrap_or_default();
    for (pe, hand) in others.iter().zip(hands) {
        of_pes[pe] = hand
            .into_iter()
            .map(|(bytes, name)| (name, bytes))
            .collect();
    }
    of_pes
}

/// Returns the names in an input in order, without the hidden files of Flitcast.
pub fn list(dir: &Path) -> Result<Vec<PathBuf>, PayloadError> {
    // An empty path is the current directory.
    let here = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let names = fs::read_dir(here).and_then(|entries| {
        let names = entries.map(|entry| Ok(PathBuf::from(entry?.file_name())));
        names.collect::<io::Result<Vec<_>>>()
    });
    let mut names = names.map_err(PayloadError::io("read the directory", dir))?;
    names.retain(|name| HiddenName::parse(name.as_os_str()).is_none());
    names.sort();
    Ok(names)
}

/// Adds the selected regular files, symlinks and empty directories of an entry of a directory, or of all
/// its entries if `below` is empty, with their lengths and their paths in that directory.
pub fn list_files(
    dir: &Path,
    below: &Path,
    selection: &Selection,
    files: &mut Vec<(u64, PathBuf)>,
) -> Result<(), PayloadError> {
    // The directory found last, until an entry in it is found.
    let mut empty: Option<PathBuf> = None;
    for found in Walk::of_selected(&dir.join(below), selection) {
        let FoundEntry { entry, .. } = found?;
        // An empty path would add a slash.
        let path = match entry.is_root() {
            true => below.to_owned(),
            false => below.join(&entry.path),
        };
        let is_left = |empty: &PathBuf| !path.starts_with(empty);
        files.extend(empty.take().filter(is_left).map(|empty| (0, empty)));
        match entry.kind {
            EntryKind::Directory => {
                let is_taken = selection.choose(&entry.path, true) == Choice::Taken;
                empty = (is_taken && !path.as_os_str().is_empty()).then_some(path);
            }
            EntryKind::File { .. } | EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => {
                files.push((entry.size(), path));
            }
        }
    }
    files.extend(empty.map(|empty| (0, empty)));
    Ok(())
}

/// Returns one message of all selected files, symlinks and empty directories below a directory, which is
/// its root if `with_root`.
pub(super) fn dealt_whole(
    base: PathBuf,
    selection: &Selection,
    with_root: bool,
) -> Result<Content, PayloadError> {
    let mut files = Vec::new();
    list_files(&base, Path::new(""), selection, &mut files)?;
    Ok(Content::Dealt {
        base,
        files: files.into_iter().map(|(_, path)| path).collect(),
        with_root,
    })
}

/// Deals items of a directory, each of some files with their total length, to all PEs but the root.
fn dealt(
    dir: PathBuf,
    items: Vec<(u64, Vec<PathBuf>)>,
    others: Others,
) -> Result<Vec<Option<Content>>, PayloadError> {
    let Some(hands) = hands(items, others.count()) else {
        let root = others.root.unwrap_or(PeId::ROOT);
        let dir = shown(&dir);
        return Err(PayloadError::Unusable(format!(
            "the files below {dir} cannot be distributed: the only PE is {root}"
        )));
    };
    let mut contents = vec![None; others.pes];
    for (pe, hand) in others.iter().zip(hands) {
        let mut files: Vec<PathBuf> = hand.into_iter().flat_map(|(_, files)| files).collect();
        if !files.is_empty() {
            files.sort();
            contents[pe] = Some(Content::Dealt {
                base: dir.clone(),
                files: files.into(),
                with_root: false,
            });
        }
    }
    Ok(contents)
}

/// Deals items with their lengths to a number of hands: the largest one first, each to the hand with the
/// fewest bytes, then the fewest items, then the first one. Returns `None` if there are items and no
/// hand.
fn hands<T: Ord + Clone>(mut items: Vec<(u64, T)>, count: usize) -> Option<Vec<Vec<(u64, T)>>> {
    items.sort_by(|(bytes, item), (other, another)| (other, item).cmp(&(bytes, another)));
    let mut hands: Vec<(u64, Vec<(u64, T)>)> = vec![(0, Vec::new()); count];
    for (bytes, item) in items {
        // The first of equal minima is taken.
        let hand = hands
            .iter_mut()
            .min_by_key(|(bytes, items)| (*bytes, items.len()));
        let (total, items) = hand?;
        *total = total.saturating_add(bytes);
        items.push((bytes, item));
    }
    Some(hands.into_iter().map(|(_, items)| items).collect())
}

/// Returns messages with the entries that the rules of a payload take. Those of a payload that is dealt
/// have no others.
///
/// # Errors
///
/// Returns the errors of all folders that cannot be read.
pub fn select(
    files: &FilePayload,
    contents: Vec<Option<Content>>,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let selection = Selection::parse(&files.rules);
    if selection.is_empty() || files.spread {
        return Ok(contents);
    }
    let select = |content: Option<Content>| {
        let selected = content.map(|content| of_content(&selection, content));
        selected.transpose()
    };
    all_or_faults(contents.into_iter().map(select))
}

/// Returns a message with the entries of `content` that are taken. A message that is a single file
/// stays as it is.
fn of_content(selection: &Selection, content: Content) -> Result<Content, PayloadError> {
    Ok(match content {
        Content::Entry(base) if base.is_dir() => dealt_whole(base, selection, true)?,
        Content::Dealt {
            base,
            files,
            with_root,
        } => {
            let is_folder = |path: &Path| {
                let found = base.join(path).symlink_metadata();
                found.is_ok_and(|found| found.is_dir())
            };
            let is_taken = |path: &&Path| selection.choose(path, is_folder(path)) == Choice::Taken;
            let taken = files.iter().map(|path| path.as_path()).filter(is_taken);
            let files = taken.map(Path::to_owned).collect();
            Content::Dealt {
                files,
                base,
                with_root,
            }
        }
        whole => whole,
    })
}

/// Bytes that are read at once in search of the end of a line.
const READ: usize = 64 << 10;

/// Divides the input into parts of about equal length, one after the other for the PEs that have a
/// message, or for the first ones if a number of parts is given. Returns the content of M_i at index
/// `i`, and `None` for an empty part.
///
/// # Errors
///
/// Returns an error if the input is not one file that can be read, or if there are too few PEs.
pub fn divide(files: &FilePayload, others: Others) -> Result<Vec<Option<Content>>, PayloadError> {
    let path = &files.input;
    let found = examine(path.clone(), Default::default())?;
    if !found.entry.is_file() {
        let why = format!("{} is not a file, and one file is divided", shown(path));
        return Err(PayloadError::Unusable(why));
    }
    let parts = match files.parts as usize {
        0 => others.count(),
        parts if parts > others.count() => {
            let why = format!("{parts} parts for {} PEs; {others}", others.count());
            return Err(PayloadError::Unusable(why));
        }
        parts => parts,
    };
    let mut file = BufReader::with_capacity(READ, open_regular(rustix::fs::CWD, path, path)?);
    let bytes = found.entry.size();
    let mut contents = vec![None; others.pes];
    let mut at = 0;
    for (part, pe) in (1..=parts as u128).zip(others.iter()) {
        let ideal = (u128::from(bytes) * part / parts as u128) as u64;
        let end = match (files.lines, ideal) {
            (_, ideal) if ideal == bytes => bytes,
            (true, 0) => 0,
            (true, ideal) => {
                let begun = file.seek(SeekFrom::Start(ideal - 1));
                let rest = begun.and_then(|_| file.skip_until(b'\n'));
                ideal - 1 + rest.map_err(PayloadError::io("read", path))? as u64
            }
            (false, ideal) => {
                let block = files.block_bytes.max(1);
                ideal / block * block
            }
        };
        if end > at {
            contents[pe] = Some(Content::Part {
                path: path.clone(),
                at,
                bytes: end - at,
            });
            at = end;
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_dealt_whole_and_by_size() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        for (name, bytes) in [("a/x", 300), ("a/y", 300), ("b", 500), ("c", 200), ("d", 0)] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("it can be made");
            std::fs::write(path, vec![0; bytes]).expect("it can be written");
        }
        std::fs::create_dir(dir.path().join("e")).expect("it can be made");
        let names = ["a", "b", "c", "d", "e"].map(OsString::from);
        let others = Others {
            root: Some(PeId(1)),
            ..Others::all(3)
        };
        let dealt = deal_shards(dir.path(), &names, others).expect("it can be dealt");
        let files = |pe: usize| match &dealt[pe] {
            Some(Content::Dealt { files, .. }) => files.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(files(0), ["a/x", "a/y", "d", "e"].map(PathBuf::from));
        assert_eq!(files(2), ["b", "c"].map(PathBuf::from));
        assert_eq!(dealt[1], None);
        // The same without the files.
        let measured = measure_shards(dir.path(), &names).expect("it can be read");
        let shards = |all: &[(&str, u64)]| -> Vec<(OsString, u64)> {
            let all = all.iter();
            all.map(|(name, bytes)| ((*name).into(), *bytes)).collect()
        };
        let of_pes = [
            shards(&[("a", 600), ("d", 0), ("e", 0)]),
            Vec::new(),
            shards(&[("b", 500), ("c", 200)]),
        ];
        assert_eq!(shards_of(&measured, others), of_pes);
        let wrong = [OsString::from("none"), OsString::from("a")];
        assert!(deal_shards(dir.path(), &wrong, others).is_err());
    }

    fn parts(text: &[u8], files: FilePayload, pes: usize) -> Vec<String> {
        let dir = tempfile::tempdir().expect("a folder can be made");
        let path = dir.path().join("whole");
        std::fs::write(&path, text).expect("it can be written");
        let files = FilePayload {
            input: path,
            ..files
        };
        let root = Some(flitcast_proto::PeId::ROOT);
        let others = Others {
            root,
            ..Others::all(pes)
        };
        let divided = divide(&files, others).expect("it can be divided");
        let part = |content: Option<Content>| match content {
            Some(Content::Part { at, bytes, .. }) => {
                let part = &text[at as usize..(at + bytes) as usize];
                String::from_utf8(part.to_vec()).expect("it is text")
            }
            _ => String::new(),
        };
        divided.into_iter().skip(1).map(part).collect()
    }

    #[test]
    fn parts_end_with_lines_or_blocks() {
        let lines = || FilePayload {
            lines: true,
            ..FilePayload::default()
        };
        let text = b"one\ntwo\nthree\nfour\nfive\nsix\n";
        assert_eq!(
            parts(text, lines(), 3),
            ["one\ntwo\nthree\n", "four\nfive\nsix\n"]
        );
        // A long line is one part, and the last one may have no end.
        assert_eq!(
            parts(b"a\nbbbbbbbbbbbbbb", lines(), 4),
            ["a\nbbbbbbbbbbbbbb", "", ""]
        );
        assert_eq!(parts(b"", lines(), 3), ["", ""]);
        assert_eq!(parts(b"\n\n\n", lines(), 4), ["\n", "\n", "\n"]);
        let blocks = |block_bytes, parts| FilePayload {
            block_bytes,
            parts,
            ..FilePayload::default()
        };
        assert_eq!(parts(b"aabbccdd", blocks(2, 0), 4), ["aa", "bb", "ccdd"]);
        assert_eq!(parts(b"aabbc", blocks(2, 0), 3), ["aa", "bbc"]);
        assert_eq!(
            parts(b"0123456789", blocks(1, 3), 6),
            ["012", "345", "6789", "", ""]
        );
        for pes in 2..9 {
            for block in [1, 2, 3, 7] {
                let all = parts(text, blocks(block, 0), pes).concat();
                assert_eq!(all.as_bytes(), text, "{pes} PEs, blocks of {block}");
            }
            assert_eq!(parts(text, lines(), pes).concat().as_bytes(), text);
        }
    }
}
