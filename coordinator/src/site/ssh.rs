//! How hosts are reached by ssh, as a cluster file says it. Reaching them is `launch`'s business.

use std::path::PathBuf;

/// Where the program is put on a host, unless the cluster file says otherwise.
pub const DIRECTORY: &str = "~/.cache/flitcast";

/// How the hosts of a cluster are reached, and what is put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ssh {
    /// As whom, where neither the PE's destination nor ssh's configuration says it better.
    pub user: Option<String>,
    /// At which port.
    pub port: Option<u16>,
    /// A configuration of ssh's own, instead of the user's.
    pub config: Option<PathBuf>,
    /// Where the program is put: a path from the root, or from `~/`.
    pub directory: String,
    /// The variables of this process's environment that the PEs get.
    pub environment: Vec<String>,
    /// What is put there; else this very program.
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

/// Whether ssh takes it for a destination and for nothing else: no option, one word.
pub fn is_destination(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>()\\".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.contains("@-") && !text.contains(is_odd)
}
