//! What a cluster file says of the cluster as a whole, for those who act on it. The file is read by
//! `cluster_file`.

use std::path::PathBuf;

use flitcast_node::limits::Timeouts;

use crate::files::user_file::Spot;
use crate::options::link_spec::LinkSpec;

/// What a cluster file says of the cluster as a whole.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `--credentials`.
    pub credentials: Option<Credentials>,
    /// `--timeouts`; what is not said is the default.
    pub timeouts: Timeouts,
    /// `--link`.
    pub link: Option<LinkSpec>,
    /// The files that starting the processes needs.
    pub files: Vec<NamedFile>,
}

/// The folder of certificates, and where the file says so.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The folder.
    pub folder: PathBuf,
    /// For messages about what it holds.
    pub spot: Spot,
}

/// A file that is named in `[launch]`, and where.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// The key.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// For messages about it.
    pub spot: Spot,
}
