//! Settings of ssh in a cluster file. `launch` connects to the hosts.

use std::path::PathBuf;

/// Default directory of the program on a host.
pub const DIRECTORY: &str = "~/.cache/flitcast";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssh {
    /// User, unless the PE's destination or ssh's configuration defines it.
    pub user: Option<String>,
    /// Port, unless ssh's configuration defines it.
    pub port: Option<u16>,
    /// Configuration file for ssh instead of the user's.
    pub config: Option<PathBuf>,
    /// Directory of the program on a host: absolute, or relative to `~/`.
    pub directory: String,
    /// Names of this process's environment variables that are passed to the PEs.
    pub environment: Vec<String>,
    /// Program to copy to the hosts; by default this program.
    pub binary: Option<PathBuf>,
}

impl Default for Ssh {
    fn default() -> Ssh {
        Ssh {
            user: None,
            port: None,
            config: None,
            directory: DIRECTORY.to_owned(),
            environment: Vec::new(),
            binary: None,
        }
    }
}

/// Returns whether ssh takes the text for a destination: one word that is not an option.
pub fn is_destination(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>()\\".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.contains("@-") && !text.contains(is_odd)
}
