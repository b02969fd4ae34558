//! The permissions of a PE's coordinator. A coordinator that has started the process may do anything
//! its user may. One that shows a coordinator's certificate may have files below the lent folders read
//! and written, and commands run if the PE was started for that. Any other coordinator has no effect
//! outside of the round.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::PeId;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{Assignment, Payload};

use crate::payload::Others;
use crate::security::Security;
use crate::system::lent::{self, LentFolder};

/// The files that a PE may read and write.
#[derive(Clone, Debug)]
pub enum FileAccess {
    /// All files that the user may access.
    All,
    /// The files below these folders.
    Below(Arc<[LentFolder]>),
}

/// The permissions of a PE's coordinator, or the reasons why it lacks them.
#[derive(Clone, Debug)]
pub struct Permissions {
    /// Read and write the files that the coordinator names.
    pub files: Result<FileAccess, String>,
    /// Run commands.
    pub commands: Result<(), String>,
}

impl Permissions {
    /// Returns the permissions of a coordinator at `coordinator` that has started this process. On a
    /// plain connection any host on the way could send commands.
    pub fn started(pe: PeId, security: &Security, coordinator: SocketAddr) -> Permissions {
        let is_here = coordinator.ip().to_canonical().is_loopback();
        let commands = match security {
            Security::Plain if !is_here => Err(format!(
                "{pe} runs no commands over a plain connection to another host: leave out --insecure"
            )),
            _ => Ok(()),
        };
        let files = Ok(FileAccess::All);
        Permissions { files, commands }
    }

    /// Returns the permissions of a coordinator that the PE joins. They are the same on loopback,
    /// because any user can listen there. Without folders there are no files.
    pub fn joined(pe: PeId, security: &Security, files: FileAccess, commands: bool) -> Permissions {
        if matches!(security, Security::Plain) {
            let why = format!(
                "{pe} has joined without credentials, so its coordinator is not authenticated, and it accepts synthetic messages only: give both ends --credentials DIR"
            );
            return Permissions {
                files: Err(why.clone()),
                commands: Err(why),
            };
        }
        let idle = || {
            format!(
                "{pe} was not started to run commands: start it with `flitcast node --join .. --commands`"
            )
        };
        let lends_nothing = matches!(&files, FileAccess::Below(folders) if folders.is_empty());
        let files = match lends_nothing {
            true => Err(format!(
                "no folder of {pe} is lent for messages made of files; start the PE with `flitcast node --join .. --files DIR`"
            )),
            false => Ok(files),
        };
        Permissions {
            files,
            commands: commands.then_some(()).ok_or_else(idle),
        }
    }
}

/// Rewrites the paths of an assignment as the PE may reach them. Returns the reason if the PE may not
/// read or write files at all, or not there.
pub fn confined(
    pe: PeId,
    allowed: &Permissions,
    mut assignment: Assignment,
) -> Result<Assignment, String> {
    let (collective, tree) = (assignment.collective, assignment.tree.clone());
    let Payload::Files(files) = &mut assignment.payload else {
        return Ok(assignment);
    };
    let FileAccess::Below(folders) = allowed.files.clone()? else {
        return Ok(assignment);
    };
    let sends = collective.messages(&tree).any(|it| it.source == pe);
    let takes = !collective.taken_by(&tree, pe).is_empty();
    let others = Others::of(&tree);
    let input = others.named(&files.names);
    files.input = reached(pe, input, &folders, &files.input, sends)?;
    let output = others.named(&files.output_names);
    files.output = reached(pe, output, &folders, &files.output, takes)?;
    // A copy replaces an existing entry, which a lent folder must not be.
    let is_copy = files.apart && collective.layout() == Layout::Whole;
    if is_copy && takes && files.output.as_os_str().as_bytes().ends_with(b"/.") {
        let folder = lent::as_named(&files.output);
        return Err(format!(
            "`{}`: a folder that is lent is not replaced itself; name a path below it",
            folder.display()
        ));
    }
    if let Some(later) = &mut assignment.job.later_output {
        *later = reached(pe, output, &folders, later, true)?;
    }
    Ok(assignment)
}

/// Returns a path below the folders, unless the path or an own entry of the PE in it leads out. A path
/// that the PE does not use may be one of another host.
fn reached(
    pe: PeId,
    others: Others,
    folders: &[LentFolder],
    path: &Path,
    used: bool,
) -> Result<PathBuf, String> {
    let own = |found| {
        let mut entries = others.entries(path, pe);
        entries.try_for_each(|entry| lent::below(folders, &entry).map(drop))?;
        Ok(found)
    };
    match lent::below(folders, path).and_then(own) {
        Err(_) if !used => Ok(std::env::temp_dir()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use flitcast_proto::Tree;
    use flitcast_proto::ops::Collective;
    use flitcast_proto::wire::control::{FilePayload, Job};

    use super::*;
    use crate::security::Security;

    const P3: PeId = PeId(3);

    #[test]
    fn commands_are_not_taken_in_the_clear_from_other_hosts() {
        let started = |at: &str| {
            let at = at.parse().expect("an address");
            Permissions::started(P3, &Security::Plain, at)
        };
        for loopback in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(started(loopback).commands, Ok(()));
        }
        for elsewhere in ["10.0.0.1:1", "[2001:db8::1]:1", "[::ffff:10.0.0.1]:1"] {
            let why = started(elsewhere).commands.expect_err("it is plain");
            assert!(why.contains("over a plain connection"), "{why}");
            assert!(matches!(started(elsewhere).files, Ok(FileAccess::All)));
        }
    }

    const P1: PeId = PeId(1);

    /// Returns a broadcast to other hosts, whose output is the copy itself.
    fn broadcast(output: &Path) -> Assignment {
        let tree = Tree::from_parents(vec![None, Some(PeId(0))]).expect("it is one");
        Assignment {
            version: 1,
            tree: Arc::new(tree),
            parent_listen: None,
            peers: Vec::new(),
            collective: Collective::Broadcast,
            flit_bytes: 65_536,
            payload: Payload::Files(FilePayload {
                input: PathBuf::from("/on/another/host"),
                output: output.to_owned(),
                replace: true,
                apart: true,
                ..FilePayload::default()
            }),
            links: Vec::new(),
            record_spans: false,
            left_out: Vec::new(),
            job: Job::default(),
            lanes: Vec::new(),
            own_links: false,
            versions: Vec::new(),
            dry_run: false,
            max_bits_per_second: 0,
        }
    }

    #[test]
    fn a_copy_arrives_below_what_is_lent_and_never_in_its_place() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let lent = dir.path().join("lent");
        std::fs::create_dir(&lent)?;
        std::fs::write(dir.path().join(".bashrc"), "the user's")?;
        let allowed = Permissions {
            files: Ok(FileAccess::Below([LentFolder::open(&lent)?].into())),
            commands: Ok(()),
        };
        let reached = |output: &Path| {
            let confined = confined(P1, &allowed, broadcast(output))?;
            Ok::<_, String>(confined.payload.output().map(lent::as_named))
        };
        let copy = lent.join("copy");
        assert_eq!(reached(&copy), Ok(Some(lent.canonicalize()?.join("copy"))));
        for (output, why) in [
            (lent.clone(), "not replaced itself"),
            (lent.join("."), "not replaced itself"),
            (dir.path().join(".bashrc"), "outside of the folders"),
            (lent.join("../.bashrc"), "outside of the folders"),
        ] {
            let refused = reached(&output).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
        let nothing = FileAccess::Below(Arc::new([]));
        let nothing = Permissions {
            files: Ok(nothing),
            commands: Ok(()),
        };
        assert!(confined(P1, &nothing, broadcast(&copy)).is_err());
        let all = Permissions::started(P1, &Security::Plain, ([127, 0, 0, 1], 1).into());
        let as_it_is = confined(P1, &all, broadcast(&copy)).expect("all is allowed");
        assert_eq!(as_it_is.payload.output(), Some(copy.as_path()));
        Ok(())
    }
}
