//! Options about entries of the output that messages replace.

use clap::Args;
use flitcast_proto::Update;

/// Options about entries of the output that differ from what is sent.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ReplacingArgs {
    /// Accept files in the output: those that arrive again are replaced.
    #[arg(long)]
    pub force: bool,
    /// Like --force, but send no file that the output has with the same size and time; it is linked
    /// or copied there.
    #[arg(long, hide_short_help = true)]
    pub update: bool,
    /// Like --update, but compare files by their contents, which both sides read.
    #[arg(long, hide_short_help = true)]
    pub checksum: bool,
}

impl ReplacingArgs {
    /// Returns whether an entry that differs from what is sent is replaced.
    pub fn replaces(self) -> bool {
        self.first_option().is_some()
    }

    pub fn first_option(self) -> Option<&'static str> {
        let options = [
            ("--force", self.force),
            ("--update", self.update),
            ("--checksum", self.checksum),
        ];
        let given = options.iter().find(|(_, is_given)| *is_given);
        given.map(|(option, _)| *option)
    }

    /// Returns which files are not sent.
    pub fn comparison(self) -> Update {
        match self {
            ReplacingArgs { checksum: true, .. } => Update::ByContent,
            ReplacingArgs { update: true, .. } => Update::ByTime,
            _ => Update::Never,
        }
    }
}

/// Names of updates in a record.
const NAMES: [(Update, &str); 2] = [(Update::ByTime, "time"), (Update::ByContent, "content")];

/// Returns the name of an update; `None` without one.
pub fn update_name(update: Update) -> Option<&'static str> {
    let named = NAMES.iter().find(|(named, _)| *named == update);
    named.map(|(_, name)| *name)
}

pub fn update_named(name: &str) -> Result<Update, String> {
    let named = NAMES.iter().find(|(_, of)| *of == name);
    let unknown = || format!("`{name}` is not an update: time or content");
    named.map(|(update, _)| *update).ok_or_else(unknown)
}
