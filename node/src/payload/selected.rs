//! Messages without what a selection leaves out.

use std::path::Path;

use flitcast_proto::wire::control::FilePayload;

use super::content::Content;
use super::deal::dealt_whole;
use super::error::{PayloadError, all_or_faults};
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
