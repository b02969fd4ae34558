//! Assignment of input files to messages: an input directory with an entry for each PE, by its
//! number (`p1`, `p2`, ..) or by its name. `deal` deals the files of a directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::FilePayload;

use super::deal::{deal, deal_shards, divide, list};
use super::entry::Content;
use super::error::{PayloadError, all_or_faults, shown, whole};
use super::others::{Others, two_entries};
use super::outgoing::Measured;
use super::pattern::Pattern;
use super::scan::examine;
use super::selection::Selection;
use crate::runtime::on_processors;

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
    let measure = |content: &Option<Content>| match content {
        Some(content) => content.measure_with(archive, &|| {}),
        None => Ok(Measured::default()),
    };
    all_or_faults(on_processors(contents.iter().collect(), measure))
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
mod tests;
