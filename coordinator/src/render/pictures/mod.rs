//! Pictures of a run: where `--trace` and `--report` are written, and that they are
//! written whole or not at all. What they show is `trace`'s and `page`'s to say.

mod scene;
mod trace;

use std::fs::Permissions;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use thiserror::Error;

use crate::job::request::Request;
use crate::options::args::PictureArgs;
use crate::render::page::Page;
use crate::rounds::outcome::Outcome;

pub use scene::{ItemName, MeasuredRound, Recording, Scene};

/// The pictures that are asked for.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    /// Where the Chrome trace goes.
    trace: Option<PathBuf>,
    /// Where the page goes.
    report: Option<PathBuf>,
}

/// Why a picture cannot be written where it is asked for.
#[derive(Debug, Error)]
pub enum PictureError {
    /// The file can be known to be unwritable.
    #[error("{option} {}: {why}", path.display())]
    Unwritable {
        /// `--trace` or `--report`.
        option: &'static str,
        /// As typed.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Two pictures in one file.
    #[error("--trace and --report are both to be written to {}", .0.display())]
    SameFile(PathBuf),
}

impl Pictures {
    /// Checks the places, without writing to them; all that is wrong, if something is.
    pub fn of(args: &PictureArgs) -> Result<Pictures, Vec<PictureError>> {
        let mut faults = Vec::new();
        for (option, path) in [("--trace", &args.trace), ("--report", &args.report)] {
            let Some(path) = path else { continue };
            if let Err(why) = check(path) {
                let path = path.clone();
                faults.push(PictureError::Unwritable { option, path, why });
            }
        }
        if let (Some(trace), Some(report)) = (&args.trace, &args.report)
            && resolved(trace) == resolved(report)
        {
            faults.push(PictureError::SameFile(report.clone()));
        }
        match faults.is_empty() {
            true => Ok(Pictures {
                trace: args.trace.clone(),
                report: args.report.clone(),
            }),
            false => Err(faults),
        }
    }

    /// Whether there is any: the PEs have to record for it.
    pub fn wanted(&self) -> bool {
        self.trace.is_some() || self.report.is_some()
    }

    /// Draws a run; the files that were written, for a line under the result.
    ///
    /// # Errors
    ///
    /// Says which file could not be written.
    pub fn draw(&self, request: &Request, outcome: &Outcome) -> io::Result<Vec<&Path>> {
        let mut written: Vec<&Path> = Vec::new();
        let Some(scene) = Scene::of(request, outcome) else {
            return Ok(written);
        };
        if let Some(path) = &self.trace {
            write_whole(path, |out| trace::write(&scene, out))?;
            written.push(path);
        }
        if let Some(path) = &self.report {
            let page = Page {
                command: command_line(std::env::args()),
                run: crate::render::report::json_value(request, outcome),
                rounds_ns: &outcome.rounds_ns,
                scene: &scene,
                fit: &outcome.rounds.measured.fits,
            };
            write_whole(path, |out| page.write(out))?;
            written.push(path);
        }
        Ok(written)
    }
}

/// The directory that a file is to stand in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    }
}

/// What can be known to be wrong with writing a file.
fn check(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err("it is a directory".to_owned()),
        Ok(metadata) if !metadata.is_file() => return Err("it is not a plain file".to_owned()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    if path.file_name().is_none() {
        return Err("it does not name a file".to_owned());
    }
    let directory = directory(path);
    match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Err(format!("{} is not a directory", directory.display())),
        Err(error) => return Err(format!("{}: {error}", directory.display())),
    }
    access(directory, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| format!("{} is not writable: {error}", directory.display()))
}

/// The file that is meant, whatever links lead there.
fn resolved(path: &Path) -> PathBuf {
    let by_directory = || Some(directory(path).canonicalize().ok()?.join(path.file_name()?));
    let resolved = path.canonicalize().ok().or_else(by_directory);
    resolved.unwrap_or_else(|| path.to_owned())
}

/// Writes a file beside its place and puts it there when it is whole. Errors name the
/// file.
pub fn write_whole(
    path: &Path,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> io::Result<()> {
    let write = || {
        let path = resolved(path);
        let beside = tempfile::Builder::new()
            .prefix(".flitcast-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory(&path))?;
        let mut out = BufWriter::new(beside);
        content(&mut out)?;
        out.flush()?;
        let beside = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        beside.as_file().sync_all()?;
        beside.persist(&path)?;
        Ok(())
    };
    write().map_err(|error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("cannot write {}: {error}", path.display()),
        )
    })
}

/// A word as a shell takes it for one.
pub fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A command line as it may be typed again.
fn command_line(args: impl Iterator<Item = String>) -> String {
    let mut words = vec!["flitcast".to_owned()];
    words.extend(args.skip(1).map(shell_word));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let args = ["/usr/bin/flitcast", "gather", "--output", "it's", ""];
        let line = command_line(args.into_iter().map(str::to_owned));
        assert_eq!(line, r"flitcast gather --output 'it'\''s' ''");
    }

    #[test]
    fn a_file_is_replaced_by_a_whole_one_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.json");
        std::fs::write(&path, "old").unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more room"))
        });
        let failed = failed.unwrap_err().to_string();
        assert!(failed.contains("out.json: no more room"), "{failed}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        let left: Vec<_> = std::fs::read_dir(&dir).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_link_is_followed_and_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    }
}
