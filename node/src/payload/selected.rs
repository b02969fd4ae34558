//! Messages without what a selection leaves out.

use std::path::Path;

use flitcast_proto::wire::control::FilePayload;

use super::content::Content;
use super::deal::list_files;
use super::error::PayloadError;
use super::selection::{Choice, Selection};

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
    let (mut selected, mut faults) = (Vec::new(), Vec::new());
    for content in contents {
        let content = content.map(|content| of_content(&selection, content));
        selected.push(content.transpose().unwrap_or_else(|fault| {
            faults.push(fault);
            None
        }));
    }
    match faults.is_empty() {
        true => Ok(selected),
        false => Err(faults),
    }
}

/// Returns a message with the entries of `content` that are taken. A message that is a single file
/// stays as it is.
fn of_content(selection: &Selection, content: Content) -> Result<Content, PayloadError> {
    Ok(match content {
        Content::Entry(base) if base.is_dir() => {
            let mut files = Vec::new();
            list_files(&base, Path::new(""), selection, &mut files)?;
            Content::Dealt {
                base,
                files: files.into_iter().map(|(_, path)| path).collect(),
                with_root: true,
            }
        }
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
