//! What a PE does at its coordinator's word. Who has started the process may have it do what
//! that user could do anyway; who has shown a coordinator's certificate has files read and
//! written, and commands run by those that were started for it; anybody else, nothing that
//! reaches beyond the round.

use std::net::SocketAddr;

use flitcast_proto::PeId;

use crate::security::Security;

/// What a PE does at its coordinator's word, or else why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Read and write files, wherever the coordinator says.
    pub files: Result<(), String>,
    /// Run commands.
    pub commands: Result<(), String>,
}

impl Allowed {
    /// For who started it, and listens at `coordinator`. Over a plain connection anybody on
    /// the way could give commands.
    pub fn started(pe: PeId, security: &Security, coordinator: SocketAddr) -> Allowed {
        let is_here = coordinator.ip().to_canonical().is_loopback();
        let commands = match security {
            Security::Plain if !is_here => Err(format!(
                "{pe} runs no commands over a plain connection to another host: leave out --insecure"
            )),
            _ => Ok(()),
        };
        let files = Ok(());
        Allowed { files, commands }
    }

    /// For whoever lets it join, on loopback no less than elsewhere: there, too, any user can
    /// listen.
    pub fn joined(pe: PeId, security: &Security, commands: bool) -> Allowed {
        if matches!(security, Security::Plain) {
            let why = format!(
                "{pe} has joined without credentials, so nobody knows who its coordinator is, and it plays synthetic messages only: give both ends --credentials DIR"
            );
            return Allowed {
                files: Err(why.clone()),
                commands: Err(why),
            };
        }
        let idle = || {
            format!(
                "{pe} was not started to run commands: start it with `flitcast node --join .. --commands`"
            )
        };
        Allowed {
            files: Ok(()),
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
            Allowed::started(P3, &Security::Plain, at)
        };
        for loopback in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(started(loopback).commands, Ok(()));
        }
        for elsewhere in ["10.0.0.1:1", "[2001:db8::1]:1", "[::ffff:10.0.0.1]:1"] {
            let why = started(elsewhere).commands.expect_err("it is plain");
            assert!(why.contains("over a plain connection"), "{why}");
            assert_eq!(started(elsewhere).files, Ok(()));
        }
    }

    #[test]
    fn who_joins_anybody_does_nothing_for_them() {
        for commands in [false, true] {
            let allowed = Allowed::joined(P3, &Security::Plain, commands);
            for refused in [allowed.files, allowed.commands] {
                let why = refused.expect_err("nobody has shown anything");
                assert!(why.contains("P3 has joined without credentials"), "{why}");
            }
        }
    }
}
