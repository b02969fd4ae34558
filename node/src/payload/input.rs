//! Assignment of input files to messages: an input directory with entries `p1`, `p2`, .., or a
//! directory whose files are dealt to the PEs.

use std::cmp::Reverse;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;

use super::content::Content;
use super::entry::EntryKind;
use super::error::PayloadError;
use super::hidden::{HiddenName, pe_of};
use super::measured::Measured;
use super::others::Others;
use super::refusal::shown;
use super::scan::{FoundEntry, Walk, examine};

/// Returns the contents of the messages that the root scatters, by destination: the entries of
/// `input`, or its files dealt if `spread` is set.
pub fn scatter_input(
    input: &Path,
    spread: bool,
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    if spread {
        deal(input, others).map_err(|fault| vec![fault])
    } else {
        read_input_dir(input, others)
    }
}

/// Returns the entry `own` as the only message of a PE; `None` if it does not exist.
pub fn own_input(own: PathBuf) -> Result<Option<Content>, PayloadError> {
    match fs::symlink_metadata(&own) {
        Ok(_) => Ok(Some(Content::Entry(own))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PayloadError::io("read", &own)(error)),
    }
}

/// Returns the input, a file or a directory, as the message of the root to all others.
pub fn whole_input(input: PathBuf) -> Result<Content, PayloadError> {
    let found = examine(input, PathBuf::new())?;
    Ok(Content::Entry(found.source))
}

/// Measures the messages; on failure returns the errors of all of them. Calls `tell` for each
/// entry.
pub fn measure_all(
    contents: &[Option<Content>],
    tell: impl Fn(),
) -> Result<Vec<Measured>, Vec<PayloadError>> {
    let mut faults = Vec::new();
    let mut all = vec![Measured::default(); contents.len()];
    for (message, content) in all.iter_mut().zip(contents) {
        let measure = |content: &Content| content.measure_telling(&tell);
        match content.as_ref().map_or(Ok(Measured::default()), measure) {
            Ok(measured) => *message = measured,
            Err(fault) => faults.push(fault),
        }
    }
    whole(all, faults)
}

/// Returns the result, unless there are faults.
fn whole<T>(all: T, faults: Vec<PayloadError>) -> Result<T, Vec<PayloadError>> {
    match faults.is_empty() {
        true => Ok(all),
        false => Err(faults),
    }
}

/// Reads an input directory: its entry `p3`, a file or a directory, is M_3. Returns the content of
/// M_i at index `i`; the root has none.
///
/// On failure returns all errors, so that the user can correct them at once.
pub fn read_input_dir(
    dir: &Path,
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let names = list(dir).map_err(|error| vec![error])?;
    let mut faults = Vec::new();
    let (entries, most) = (names.len(), others.count());
    if entries > most {
        let dir = shown(dir);
        let why = format!("{dir} has {entries} entries for {most} PEs; {others}");
        faults.push(PayloadError::Unusable(why));
    }
    let place = |name: &Path, pe: Option<usize>| match pe {
        Some(pe) if others.root.is_some_and(|root| root.index() == pe) => Err(format!(
            "`p{pe}` is the root of the tree, which has no message; {others}"
        )),
        Some(pe) if pe < others.pes => Ok(pe),
        _ => Err(names_no_pe(name, others)),
    };
    by_pe(dir, names, others.pes, faults, place)
}

/// Returns the entries of a directory with these names as messages, each at the index that `place`
/// returns for the name and the PE of that name, if no fault is found.
fn by_pe(
    dir: &Path,
    names: Vec<PathBuf>,
    pes: usize,
    mut faults: Vec<PayloadError>,
    place: impl Fn(&Path, Option<usize>) -> Result<usize, String>,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let mut contents = vec![None; pes];
    for name in names {
        let place = place(&name, pe_of(name.as_os_str())).map_err(PayloadError::Unusable);
        let found = place.and_then(|pe| Ok((pe, examine(dir.join(&name), PathBuf::new())?)));
        match found {
            Ok((pe, FoundEntry { source, .. })) => contents[pe] = Some(Content::Entry(source)),
            Err(fault) => faults.push(fault),
        }
    }
    whole(contents, faults)
}

fn names_no_pe(name: &Path, others: Others) -> String {
    format!("{} names no PE; {others}", shown(name))
}

/// Reads the input directory of an exchange among `pes` PEs: the message of P2 for P5 is the entry
/// `p5` of the folder `p2`. Returns the contents at the indices `source * pes + destination`.
///
/// On failure returns the errors of all folders.
pub fn pieces_input(dir: &Path, pes: usize) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let mut faults = read_input_dir(dir, Others::all(pes))
        .err()
        .unwrap_or_default();
    let mut contents = Vec::new();
    for source in (0..pes as u32).map(PeId) {
        match pieces_of(&dir.join(format!("p{}", source.0)), source, pes) {
            Ok(row) => contents.extend(row),
            Err(all) => faults.extend(all),
        }
    }
    whole(contents, faults)
}

/// Reads the folder of one source in an exchange among `pes` PEs. Returns the contents of its
/// messages by destination; it has none if the folder does not exist.
///
/// On failure returns all errors of the folder.
pub fn pieces_of(
    folder: &Path,
    source: PeId,
    pes: usize,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let names = match list(folder) {
        Err(PayloadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(vec![None; pes]);
        }
        Err(PayloadError::Io { source: why, .. }) if why.kind() == io::ErrorKind::NotADirectory => {
            return Err(vec![PayloadError::Unusable(format!(
                "{} is not a folder; make it a folder with an entry p1, p2, .. for each PE that \
                 {source} has a message for",
                shown(folder)
            ))]);
        }
        names => names.map_err(|fault| vec![fault])?,
    };
    let at = |name: &Path| Path::new(folder.file_name().unwrap_or_default()).join(name);
    let place = |name: &Path, pe: Option<usize>| match pe {
        Some(pe) if pe == source.index() => {
            let name = shown(&at(name));
            Err(format!("{name}: a PE has no message for itself"))
        }
        Some(pe) if pe < pes => Ok(pe),
        _ => Err(names_no_pe(&at(name), Others::all(pes))),
    };
    by_pe(folder, names, pes, Vec::new(), place)
}

/// Deals all regular files, symlinks and empty directories below a directory to all PEs but the
/// root, so that the messages are about equally long: the largest file first, each to the PE with
/// the fewest bytes, then the fewest files, then the lowest index. Returns the content of M_i at
/// index `i`.
pub fn deal(dir: &Path, others: Others) -> Result<Vec<Option<Content>>, PayloadError> {
    // With a slash at its end the path means a directory, or a symlink to one.
    let dir = dir.join("");
    let mut files = Vec::new();
    // The directory found last, until an entry in it is found.
    let mut empty = None;
    for found in Walk::of(&Content::Entry(dir.clone())) {
        let FoundEntry { entry, .. } = found?;
        let is_left = |empty: &PathBuf| !entry.path.starts_with(empty);
        files.extend(empty.take().filter(is_left).map(|empty| (0, empty)));
        match entry.kind {
            EntryKind::Directory => empty = (!entry.is_root()).then_some(entry.path),
            EntryKind::File { .. } | EntryKind::Symlink { .. } => {
                files.push((entry.size(), entry.path))
            }
        }
    }
    files.extend(empty.map(|empty| (0, empty)));
    files.sort_by(|(bytes_a, a), (bytes_b, b)| (Reverse(bytes_a), a).cmp(&(Reverse(bytes_b), b)));

    let mut hands = vec![PeShare::default(); others.count()];
    for (bytes, file) in files {
        // The first of equal minima is taken: the lowest index.
        let hand = hands
            .iter_mut()
            .min_by_key(|hand| (hand.bytes, hand.files.len()));
        let Some(hand) = hand else {
            let root = others.root.unwrap_or(PeId::ROOT);
            let dir = shown(&dir);
            return Err(PayloadError::Unusable(format!(
                "the files below {dir} cannot be distributed: the only PE is {root}"
            )));
        };
        // Measuring reports a message that is too long.
        hand.bytes = hand.bytes.saturating_add(bytes);
        hand.files.push(file);
    }

    let mut contents = vec![None; others.pes];
    for (pe, mut hand) in others.iter().zip(hands) {
        if !hand.files.is_empty() {
            hand.files.sort();
            contents[pe] = Some(Content::Dealt {
                base: dir.clone(),
                files: hand.files.into(),
            });
        }
    }
    Ok(contents)
}

/// Files dealt to one PE so far, and their total length in bytes.
#[derive(Clone, Default)]
struct PeShare {
    bytes: u64,
    files: Vec<PathBuf>,
}

/// Returns the names in an input in order, without the hidden files of Flitcast.
fn list(dir: &Path) -> Result<Vec<PathBuf>, PayloadError> {
    let mut names = fs::read_dir(dir)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(PathBuf::from(entry?.file_name())))
                .collect::<io::Result<Vec<_>>>()
        })
        .map_err(PayloadError::io("read the directory", dir))?;
    names.retain(|name| HiddenName::parse(name.as_os_str()).is_none());
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn among(pes: usize) -> Others {
        let root = Some(PeId::ROOT);
        Others { root, pes }
    }

    fn messages(faults: &[PayloadError]) -> Vec<String> {
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn entries_become_messages_by_name() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::write(dir.path().join("p1"), "one")?;
        fs::create_dir(dir.path().join("p12"))?;
        let contents = read_input_dir(dir.path(), among(13)).expect("all names are PEs");
        assert_eq!(contents.len(), 13);
        assert_eq!(contents[1], Some(Content::Entry(dir.path().join("p1"))));
        assert_eq!(contents[12], Some(Content::Entry(dir.path().join("p12"))));
        assert_eq!(contents.iter().flatten().count(), 2);
        Ok(())
    }

    #[test]
    fn all_faults_are_told_at_once() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in [".hidden", "foo", "p", "p+1", "p0", "p01", "p8", "p1"] {
            fs::write(dir.path().join(name), "")?;
        }
        symlink("p1", dir.path().join("p2"))?;
        let faults = read_input_dir(dir.path(), among(8)).expect_err("most names are no PEs");
        let dir = dir.path().display();
        assert_eq!(
            messages(&faults),
            [
                format!("`{dir}` has 9 entries for 7 PEs; this tree has p1..p7"),
                "`.hidden` names no PE; this tree has p1..p7".to_owned(),
                "`foo` names no PE; this tree has p1..p7".to_owned(),
                "`p` names no PE; this tree has p1..p7".to_owned(),
                "`p+1` names no PE; this tree has p1..p7".to_owned(),
                "`p0` is the root of the tree, which has no message; \
                 this tree has p1..p7"
                    .to_owned(),
                "`p01` names no PE; this tree has p1..p7".to_owned(),
                format!(
                    "`{dir}/p2` is refused: a message cannot be a symlink itself; \
                     put what it points to in its place"
                ),
                "`p8` names no PE; this tree has p1..p7".to_owned(),
            ]
        );
        Ok(())
    }

    #[test]
    fn another_root_has_no_message_and_p0_has_one() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["p0", "p3"] {
            fs::write(dir.path().join(name), name)?;
        }
        let with_root = |root, pes| Others {
            root: Some(PeId(root)),
            pes,
        };
        let contents = read_input_dir(dir.path(), with_root(2, 4)).expect("all names are PEs");
        let given: Vec<bool> = contents.iter().map(Option::is_some).collect();
        assert_eq!(given, [true, false, false, true]);
        let dealt = deal(dir.path(), with_root(2, 4)).expect("it can be dealt");
        let given: Vec<bool> = dealt.iter().map(Option::is_some).collect();
        assert_eq!(given, [true, true, false, false]);
        let told = |root| {
            let faults =
                read_input_dir(dir.path(), with_root(root, 4)).expect_err("P3 is the root");
            messages(&faults)
        };
        let end = "is the root of the tree, which has no message; this tree has";
        assert_eq!(told(3), [format!("`p3` {end} p0..p2")]);
        fs::rename(dir.path().join("p3"), dir.path().join("p2"))?;
        assert_eq!(told(2), [format!("`p2` {end} p0..p3 but p2")]);
        Ok(())
    }

    #[test]
    fn every_pe_may_have_an_entry_for_all_others() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["p0", "p2"] {
            fs::write(dir.path().join(name), name)?;
        }
        let contents = read_input_dir(dir.path(), Others::all(3)).expect("all names are PEs");
        let given: Vec<bool> = contents.iter().map(Option::is_some).collect();
        assert_eq!(given, [true, false, true]);
        let faults = read_input_dir(dir.path(), Others::all(2)).expect_err("there is no P2");
        assert_eq!(
            messages(&faults),
            ["`p2` names no PE; this tree has p0..p1"]
        );
        Ok(())
    }

    #[test]
    fn every_pe_may_have_an_entry_for_each_other_one() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["p0/p1", "p2/p0", "p2/p1"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one"))?;
            fs::write(path, name)?;
        }
        let contents = pieces_input(dir.path(), 3).expect("all names are PEs");
        let given: Vec<usize> = (0..9).filter(|i| contents[*i].is_some()).collect();
        assert_eq!(given, [1, 6, 7]);
        let entry = Content::Entry(dir.path().join("p2/p0"));
        assert_eq!(contents[6], Some(entry));
        let row = pieces_of(&dir.path().join("p2"), PeId(2), 3).expect("all names are PEs");
        assert_eq!(row, contents[6..]);
        Ok(())
    }

    #[test]
    fn all_faults_of_all_folders_are_told_at_once() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["p9/p1", "p1/p1", "p1/p9", "p2/x", "p2/p0", "y/z"] {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one"))?;
            fs::write(path, "")?;
        }
        fs::write(dir.path().join("p0"), "")?;
        let faults = pieces_input(dir.path(), 3).expect_err("most names are no PEs");
        let there = "this tree has p0..p2";
        assert_eq!(
            messages(&faults)[1..],
            [
                format!("`p9` names no PE; {there}"),
                format!("`y` names no PE; {there}"),
                format!(
                    "`{}/p0` is not a folder; make it a folder with an entry p1, p2, .. for each PE \
                     that P0 has a message for",
                    dir.path().display()
                ),
                "`p1/p1`: a PE has no message for itself".to_owned(),
                format!("`p1/p9` names no PE; {there}"),
                format!("`p2/x` names no PE; {there}"),
            ]
        );
        Ok(())
    }

    #[test]
    fn missing_input_is_one_fault() {
        let faults =
            read_input_dir(Path::new("/nowhere/at/all"), among(8)).expect_err("it is missing");
        assert_eq!(
            messages(&faults),
            ["cannot read the directory `/nowhere/at/all`: \
                 No such file or directory (os error 2)"]
        );
    }

    #[test]
    fn dealing_balances_bytes_then_files() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("d/empty"))?;
        for (name, bytes) in [
            ("a", 5),
            ("b", 3),
            ("d/c", 3),
            ("d/e", 0),
            ("f", 0),
            ("g", 0),
        ] {
            fs::write(dir.path().join(name), vec![0; bytes])?;
        }
        symlink("a", dir.path().join("h"))?;
        let contents = deal(dir.path(), among(4)).expect("it can be dealt");
        let files = |names: &[&str]| {
            Some(Content::Dealt {
                base: dir.path().to_owned(),
                files: names.iter().map(PathBuf::from).collect(),
            })
        };
        // b and d/c have 3 bytes each, so the empty files and the empty folder alternate between
        // them.
        assert_eq!(
            contents,
            [
                None,
                files(&["a"]),
                files(&["b", "d/e", "f", "h"]),
                files(&["d/c", "d/empty", "g"])
            ]
        );
        Ok(())
    }

    #[test]
    fn a_pe_without_a_file_gets_no_message() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        assert_eq!(
            deal(dir.path(), among(3)).expect("nothing"),
            [None, None, None]
        );
        assert!(deal(dir.path(), among(1)).is_ok());
        fs::write(dir.path().join("a"), "")?;
        let contents = deal(dir.path(), among(3)).expect("one file");
        assert!(contents[1].is_some() && contents[2].is_none());
        let nobody = deal(dir.path(), among(1)).expect_err("P0 is alone");
        assert!(
            nobody
                .to_string()
                .ends_with("cannot be distributed: the only PE is P0")
        );
        let file = deal(&dir.path().join("a"), among(3)).expect_err("not a directory");
        assert!(file.to_string().contains("Not a directory"), "{file}");
        Ok(())
    }
}
