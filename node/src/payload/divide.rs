//! Division of one file into the messages of a scatter: at the ends of lines, or of blocks.

use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};

use flitcast_proto::wire::control::FilePayload;

use super::content::Content;
use super::error::{PayloadError, shown};
use super::others::Others;
use super::scan::{examine, open_regular};

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
