//! The permissions of a PE's coordinator. A coordinator that has started the process may do anything
//! its user may. One that shows a coordinator's certificate may have files below the lent folders read
//! and written, and commands run if the PE was started for that. Any other coordinator has no effect
//! outside of the round.

use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_proto::PeId;

use crate::security::Security;
use crate::system::lent::LentFolder;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
