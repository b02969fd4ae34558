//! Assignment of input files to messages: an input directory with an entry for each PE, by its
//! number (`p1`, `p2`, ..) or by its name. `deal` deals the files of a directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::FilePayload;

use super::content::Content;
use super::deal::{deal, deal_shards, list};
use super::divide::divide;
use super::error::PayloadError;
use super::measured::Measured;
use super::others::{Others, two_entries};
use super::pattern::Pattern;
use super::refusal::shown;
use super::scan::examine;
use super::selection::Selection;
use crate::processors::on_processors;

/// Returns the contents of the messages that the root scatters, by destination: the entries of the
/// input, or its files dealt if `spread` is set.
pub fn scatter_input(
    files: &FilePayload,
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let input = &files.input;
    match (files.spread, &files.shards[..]) {
        (true, []) if files.is_divided() => divide(files, others).map_err(|fault| vec![fault]),
        (true, []) => {
            let selection = Selection::parse(&files.rules);
            deal(input, &selection, others).map_err(|fault| vec![fault])
        }
        (true, shards) => deal_shards(input, shards, others),
        (false, _) => read_input_dir(input, others),
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

/// Returns the messages of all PEs on one host that send the files which match a pattern.
///
/// # Errors
///
/// Returns an error if nothing matches in an entry of a PE.
pub fn pattern_input(
    pattern: &Pattern,
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let mut contents = vec![None; others.pes];
    for pe in others.iter() {
        let own = pattern.clone().of_pe(others, PeId(pe as u32), true);
        let content = own.and_then(|own| own.map_or(Ok(None), |own| own.content()));
        contents[pe] = content.map_err(|it| vec![it])?;
    }
    if contents.iter().any(Option::is_some) {
        return Ok(contents);
    }
    let why = match pattern.content().map_err(|it| vec![it])? {
        None => format!("nothing matches {pattern}; {others}"),
        Some(_) => format!(
            "what matches {pattern} is in no entry of a PE, and all PEs are on this host; write p* \
             for the entry of each PE, as in `DIR/p*/*.log`; {others}"
        ),
    };
    Err(vec![PayloadError::Unusable(why)])
}

/// Returns the input, a file or a directory, as the message of the root to all others; with wildcards, all
/// that matches.
pub fn whole_input(input: PathBuf) -> Result<Content, PayloadError> {
    if let Some(pattern) = Pattern::of(&input) {
        let none = || PayloadError::Unusable(format!("nothing matches {pattern}"));
        return pattern.content()?.ok_or_else(none);
    }
    let found = examine(input, PathBuf::new())?;
    Ok(Content::Entry(found.source))
}

/// Measures the messages, as archives if `archive`; on failure returns the errors of all of them.
pub fn measure_all(
    contents: &[Option<Content>],
    archive: bool,
) -> Result<Vec<Measured>, Vec<PayloadError>> {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    let measure = |content: &Option<Content>| {
        content
            .as_ref()
            .map(|it| it.measure_telling(archive, &|| {}))
    };
    for measured in on_processors(contents.iter().collect(), measure) {
        match measured.unwrap_or_else(|| Ok(Measured::default())) {
            Ok(measured) => all.push(measured),
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

/// Reads an input directory: the entry of P3, a file or a directory, is M_3. Returns the content of
/// M_i at index `i`; the root has none.
///
/// On failure returns all errors, so that the user can correct them at once.
pub fn read_input_dir(
    dir: &Path,
    others: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let names = list(dir).map_err(|error| match error {
        PayloadError::Io { source: why, .. } if why.kind() == io::ErrorKind::NotADirectory => {
            let dir = shown(dir);
            let why =
                format!("{dir} is not a folder; give one with an entry p1, p2, .. for each PE");
            vec![PayloadError::Unusable(why)]
        }
        error => vec![error],
    })?;
    if let Some(why) = none_names_a_pe(dir, &names, others) {
        return Err(vec![PayloadError::Unusable(why)]);
    }
    let mut faults = Vec::new();
    let (entries, most) = (names.len(), others.count());
    if entries > most {
        let dir = shown(dir);
        let why = format!("{dir} has {entries} entries for {most} PEs; {others}");
        faults.push(PayloadError::Unusable(why));
    }
    let place = |name: &Path, pe: Option<usize>| match pe {
        Some(pe) if others.root.is_some_and(|root| root.index() == pe) => Err(format!(
            "{} is the root of the tree, which has no message; {others}",
            shown(name)
        )),
        Some(pe) if pe < others.pes => Ok(pe),
        _ => Err(names_no_pe(name, others)),
    };
    by_pe(dir, names, others, faults, place)
}

/// Returns the entries of a directory with these names as messages, each at the index that `place`
/// returns for the name and its PE, if no fault is found.
fn by_pe(
    dir: &Path,
    names: Vec<PathBuf>,
    others: Others,
    mut faults: Vec<PayloadError>,
    place: impl Fn(&Path, Option<usize>) -> Result<usize, String>,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let mut contents: Vec<Option<Content>> = vec![None; others.pes];
    for name in names {
        let place = place(&name, others.pe_of(name.as_os_str())).map_err(PayloadError::Unusable);
        let found = place.and_then(|pe| Ok((pe, whole_input(dir.join(&name))?)));
        match found {
            Ok((pe, content)) => match &contents[pe] {
                None => contents[pe] = Some(content),
                Some(first) => {
                    faults.push(two_entries(PeId(pe as u32), first.path(), content.path()));
                }
            },
            Err(fault) => faults.push(fault),
        }
    }
    whole(contents, faults)
}

fn names_no_pe(name: &Path, others: Others) -> String {
    let meant = meant_of(name, others);
    let advice = meant.map_or(String::new(), |pe| format!("; did you mean p{pe}?"));
    format!("{} names no PE; {others}{advice}", shown(name))
}

/// Returns one error for the entries of a directory if there are several, and none of them names a PE.
fn none_names_a_pe(dir: &Path, names: &[PathBuf], others: Others) -> Option<String> {
    let names_one = |name: &PathBuf| others.pe_of(name.as_os_str()).is_some();
    if names.len() < 2 || names.iter().any(names_one) {
        return None;
    }
    let meant = names
        .iter()
        .find_map(|name| Some((name, meant_of(name, others)?)));
    let advice = match meant {
        Some((name, pe)) => format!("did you mean p{pe} by {}?", shown(name)),
        None => "rename them".to_owned(),
    };
    let (count, dir, first) = (names.len(), shown(dir), shown(&names[0]));
    Some(format!(
        "none of the {count} entries of {dir} names a PE ({first}, ..); {others}; {advice}"
    ))
}

/// Returns the other PE whose number the name of an entry has in another form.
fn meant_of(name: &Path, others: Others) -> Option<usize> {
    let meant = name.file_name().and_then(meant_pe);
    meant.filter(|meant| others.iter().any(|pe| pe == *meant))
}

/// Returns the PE whose number an entry has in another form, as in `1`, `P1` or `p01`.
pub fn meant_pe(entry: &OsStr) -> Option<usize> {
    let text = entry.to_str()?;
    let digits = text.strip_prefix(['p', 'P']).unwrap_or(text);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Reads the input directory of an exchange among all PEs: the message of P2 for P5 is the entry of
/// P5 in the folder of P2. Returns the contents at the indices `source * pes + destination`.
///
/// On failure returns the errors of all folders.
pub fn pieces_input(dir: &Path, all: Others) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let faults = read_input_dir(dir, all).err();
    let (mut faults, mut contents) = (faults.unwrap_or_default(), Vec::new());
    for source in (0..all.pes as u32).map(PeId) {
        // The fault of two folders for one PE was found above.
        let Ok(folder) = all.entry(dir, source) else {
            continue;
        };
        match pieces_of(&folder, source, all) {
            Ok(row) => contents.extend(row),
            Err(all) => faults.extend(all),
        }
    }
    whole(contents, faults)
}

/// Reads the folder of one source in an exchange among all PEs. Returns the contents of its messages
/// by destination; it has none if the folder does not exist.
///
/// On failure returns all errors of the folder.
pub fn pieces_of(
    folder: &Path,
    source: PeId,
    all: Others,
) -> Result<Vec<Option<Content>>, Vec<PayloadError>> {
    let names = match list(folder) {
        Err(PayloadError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(vec![None; all.pes]);
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
        Some(pe) if pe < all.pes => Ok(pe),
        _ => Err(names_no_pe(&at(name), all)),
    };
    by_pe(folder, names, all, Vec::new(), place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn with_root(root: u32, pes: usize) -> Others<'static> {
        let root = Some(PeId(root));
        Others {
            root,
            ..Others::all(pes)
        }
    }

    fn among(pes: usize) -> Others<'static> {
        with_root(0, pes)
    }

    fn messages(faults: &[PayloadError]) -> Vec<String> {
        faults.iter().map(ToString::to_string).collect()
    }

    /// Creates files with these paths below a new directory.
    fn directory(paths: &[&str]) -> io::Result<tempfile::TempDir> {
        let dir = tempfile::tempdir()?;
        for path in paths.iter().map(|path| dir.path().join(path)) {
            fs::create_dir_all(path.parent().expect("it has one"))?;
            fs::write(path, "")?;
        }
        Ok(dir)
    }

    /// Returns the indices of the messages that there are.
    fn given(contents: &[Option<Content>]) -> Vec<usize> {
        (0..contents.len())
            .filter(|i| contents[*i].is_some())
            .collect()
    }

    #[test]
    fn all_faults_are_told_at_once() -> io::Result<()> {
        let dir = directory(&[".hidden", "foo", "p", "p+1", "p0", "p01", "p8", "p1"])?;
        symlink("p1", dir.path().join("p2"))?;
        let faults = read_input_dir(dir.path(), among(8)).expect_err("most names are no PEs");
        let dir = dir.path().display();
        let no_pe = |name| format!("`{name}` names no PE; this tree has p1..p7");
        let expected = [
            format!("`{dir}` has 9 entries for 7 PEs; this tree has p1..p7"),
            no_pe(".hidden"),
            no_pe("foo"),
            no_pe("p"),
            no_pe("p+1"),
            "`p0` is the root of the tree, which has no message; this tree has p1..p7".to_owned(),
            no_pe("p01") + "; did you mean p1?",
            format!(
                "`{dir}/p2` is refused: a message cannot be a symlink itself; \
                 put what it points to in its place"
            ),
            no_pe("p8"),
        ];
        assert_eq!(messages(&faults), expected);
        Ok(())
    }

    #[test]
    fn entries_of_which_none_names_a_pe_are_one_fault() -> io::Result<()> {
        let told = |names: &[&str], pes| -> io::Result<Vec<String>> {
            let dir = directory(names)?;
            let faults = read_input_dir(dir.path(), among(pes)).expect_err("no name is a PE");
            let dir = format!("{}", dir.path().display());
            Ok(messages(&faults)
                .iter()
                .map(|it| it.replace(&dir, "DIR"))
                .collect())
        };
        let none = "none of the 3 entries of `DIR` names a PE";
        assert_eq!(
            told(&["shard1", "shard2", "shard3"], 3)?,
            [format!(
                "{none} (`shard1`, ..); this tree has p1..p2; rename them"
            )]
        );
        assert_eq!(
            told(&["0", "1", "2"], 3)?,
            [format!(
                "{none} (`0`, ..); this tree has p1..p2; did you mean p1 by `1`?"
            )]
        );
        assert_eq!(
            told(&["shard1"], 3)?,
            ["`shard1` names no PE; this tree has p1..p2"]
        );
        Ok(())
    }

    #[test]
    fn entries_become_messages_by_name() -> io::Result<()> {
        let dir = directory(&["p0", "p3"])?;
        let path = dir.path();
        fs::create_dir(path.join("p12"))?;
        let contents = read_input_dir(path, with_root(2, 13)).expect("all names are PEs");
        assert_eq!((contents.len(), given(&contents)), (13, vec![0, 3, 12]));
        assert_eq!(contents[3], Some(Content::Entry(path.join("p3"))));
        assert_eq!(contents[12], Some(Content::Entry(path.join("p12"))));
        let contents = read_input_dir(path, Others::all(13)).expect("all names are PEs");
        assert_eq!(given(&contents), [0, 3, 12]);

        // Another root has no message, and P0 has one.
        fs::remove_dir(path.join("p12"))?;
        let dealt = deal(path, &Selection::default(), with_root(2, 4)).expect("it can be dealt");
        assert_eq!(given(&dealt), [0, 1]);
        let told = |others| messages(&read_input_dir(path, others).expect_err("one is too much"));
        let end = "is the root of the tree, which has no message; this tree has";
        assert_eq!(told(with_root(3, 4)), [format!("`p3` {end} p0..p2")]);
        fs::rename(path.join("p3"), path.join("p2"))?;
        assert_eq!(told(with_root(2, 4)), [format!("`p2` {end} p0..p3 but p2")]);
        assert_eq!(
            told(Others::all(2)),
            ["`p2` names no PE; this tree has p0..p1"]
        );
        let missing = read_input_dir(Path::new("/nowhere/at/all"), among(8));
        let why = "cannot read the directory `/nowhere/at/all`: \
                   No such file or directory (os error 2)";
        assert_eq!(messages(&missing.expect_err("it is missing")), [why]);
        Ok(())
    }

    #[test]
    fn every_pe_may_have_an_entry_for_each_other_one() -> io::Result<()> {
        let dir = directory(&["p0/p1", "p2/p0", "p2/p1"])?;
        let contents = pieces_input(dir.path(), Others::all(3)).expect("all names are PEs");
        assert_eq!((contents.len(), given(&contents)), (9, vec![1, 6, 7]));
        let entry = Content::Entry(dir.path().join("p2/p0"));
        assert_eq!(contents[6], Some(entry));
        let row =
            pieces_of(&dir.path().join("p2"), PeId(2), Others::all(3)).expect("all names are PEs");
        assert_eq!(row, contents[6..]);
        Ok(())
    }

    #[test]
    fn all_faults_of_all_folders_are_told_at_once() -> io::Result<()> {
        let dir = directory(&["p9/p1", "p1/p1", "p1/p9", "p2/x", "p2/p0", "y/z", "p0"])?;
        let faults = pieces_input(dir.path(), Others::all(3)).expect_err("most names are no PEs");
        let no_pe = |name| format!("`{name}` names no PE; this tree has p0..p2");
        let expected = [
            no_pe("p9"),
            no_pe("y"),
            format!(
                "`{}/p0` is not a folder; make it a folder with an entry p1, p2, .. for each PE \
                 that P0 has a message for",
                dir.path().display()
            ),
            "`p1/p1`: a PE has no message for itself".to_owned(),
            no_pe("p1/p9"),
            no_pe("p2/x"),
        ];
        assert_eq!(messages(&faults)[1..], expected);
        Ok(())
    }

    /// P0 is named like its number, P1 like that of P2, and P3 like a path.
    #[test]
    fn entries_become_messages_by_names() -> io::Result<()> {
        let names = ["p0", "p2", "gamma", "..", "epsilon"].map(str::to_owned);
        let all = Others::all(5).named(&names);
        let dir = directory(&["p0", "gamma", "p1", "epsilon/p0", "epsilon/gamma"])?;
        let path = dir.path();
        let contents = read_input_dir(path, all).expect("all names are PEs");
        assert_eq!(given(&contents), [0, 1, 2, 4]);
        assert_eq!(contents[2], Some(Content::Entry(path.join("gamma"))));
        let entry = |pe| all.entry(path, PeId(pe)).map_err(|fault| fault.to_string());
        let expected = ["p0", "p1", "gamma", "p3", "epsilon"].map(|name| Ok(path.join(name)));
        assert_eq!([0, 1, 2, 3, 4].map(entry), expected);
        let row = pieces_of(&path.join("epsilon"), PeId(4), all).expect("all names are PEs");
        assert_eq!(given(&row), [0, 2]);

        fs::write(path.join("p2"), "")?;
        fs::write(path.join("delta"), "")?;
        let dir = path.display();
        let too_many = format!(
            "`{dir}` has 6 entries for 4 PEs; this tree has p1..p4 (p2, gamma, .., epsilon)"
        );
        let twice =
            format!("`{dir}/gamma` and `{dir}/p2` are both the entry of P2; remove one of them");
        let expected = [
            &too_many,
            "`delta` names no PE; this tree has p1..p4 (p2, gamma, .., epsilon)",
            "`p0` is the root of the tree, which has no message; \
             this tree has p1..p4 (p2, gamma, .., epsilon)",
            &twice,
        ];
        let faults = read_input_dir(path, among(5).named(&names)).expect_err("three are wrong");
        assert_eq!(messages(&faults), expected);
        assert_eq!(entry(2).map_err(|_| ()), Err(()));
        let many: Vec<String> = (0..9).map(|pe| format!("host{pe}")).collect();
        let told = among(9).named(&many).to_string();
        let expected = "p1..p8 (host1, host2, host3, host4, host5, host6 and 2 more)";
        assert_eq!(told, format!("this tree has {expected}"));
        Ok(())
    }

    #[test]
    fn dealing_balances_bytes_then_files() -> io::Result<()> {
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
        let contents = deal(dir.path(), &Selection::default(), among(4)).expect("it can be dealt");
        let files = |names: &[&str]| {
            Some(Content::Dealt {
                with_root: false,
                base: dir.path().to_owned(),
                files: names.iter().map(PathBuf::from).collect(),
            })
        };
        // b and d/c have 3 bytes each, so the empty files and the empty folder alternate between
        // them.
        let [one, two, three] = [
            &["a"][..],
            &["b", "d/e", "f", "h"],
            &["d/c", "d/empty", "g"],
        ];
        assert_eq!(contents, [None, files(one), files(two), files(three)]);
        Ok(())
    }

    #[test]
    fn a_pe_without_a_file_gets_no_message() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let dealt = deal(dir.path(), &Selection::default(), among(3)).expect("nothing");
        assert_eq!(dealt, [None, None, None]);
        assert!(deal(dir.path(), &Selection::default(), among(1)).is_ok());
        fs::write(dir.path().join("a"), "")?;
        let contents = deal(dir.path(), &Selection::default(), among(3)).expect("one file");
        assert_eq!(given(&contents), [1]);
        for (path, pes, why) in [
            (dir.path(), 1, "cannot be distributed: the only PE is P0"),
            (&dir.path().join("a"), 3, "Not a directory"),
        ] {
            let refused = deal(path, &Selection::default(), among(pes))
                .expect_err(why)
                .to_string();
            assert!(refused.contains(why), "{refused}");
        }
        Ok(())
    }
}
