//! Arguments of a command that are defined when the command is used. Defining those of all commands took
//! half of the processor time of a process that only parses its command line, and each PE is a process.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments of a command, defined when it is used.
#[derive(Debug)]
pub struct Deferred<A>(pub A);

impl<A: Args> Args for Deferred<A> {
    fn augment_args(command: Command) -> Command {
        command.defer(defined::<A>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Deferred<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        A::from_arg_matches(matches).map(Deferred)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// Defines the arguments. The help text of the list of commands has priority over that of the arguments,
/// and the arguments are listed before those that all commands share.
fn defined<A: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let after_help = command.get_after_help().cloned();
    let shared: Vec<Id> = command
        .get_arguments()
        .map(|it| it.get_id().clone())
        .collect();
    let mut command = A::augment_args(command);
    for id in shared {
        // That moves it to the end.
        command = command.mut_arg(id, |shared| shared);
    }
    if let Some(about) = about {
        command = command.about(about).long_about(None);
    }
    match after_help {
        Some(after_help) => command.after_help(after_help),
        None => command,
    }
}
