//! Options that choose among the files of the input, and among their attributes.

use std::path::PathBuf;

use clap::Args;

/// Options that choose among files, in the form of gitignore, and among their attributes.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectionArgs {
    /// Leave out what matches, like '*.tmp' or /cache/: by the rules of gitignore, from the top of each
    /// message. `!PATTERN` takes it all the same.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub exclude: Vec<String>,
    /// Leave out what the rules in this file match, in the form of .gitignore; --exclude comes after them.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub exclude_from: Vec<PathBuf>,
    /// Send only files that match, like '*.log', and all files below a folder that does, like logs/.
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub include: Vec<String>,
    /// Keep owners (if the receiver is root), setuid, setgid and sticky bits, extended attributes, ACLs and
    /// hard links within a message.
    #[arg(long, hide_short_help = true)]
    pub archive: bool,
}

impl SelectionArgs {
    /// Returns the first option that chooses among files and is given.
    pub fn first_option(&self) -> Option<&'static str> {
        [
            ("--exclude", self.exclude.is_empty()),
            ("--exclude-from", self.exclude_from.is_empty()),
            ("--include", self.include.is_empty()),
        ]
        .iter()
        .find_map(|(option, is_empty)| (!is_empty).then_some(*option))
    }
}
