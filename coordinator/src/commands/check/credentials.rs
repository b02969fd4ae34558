//! Checks the certificates in the folder that a cluster file names. Only the coordinator's must be
//! there: a PE's may be on its own host only.

use std::path::Path;

use flitcast_node::security::{Identity, Name, revoked};

use flitcast_cluster::site::topology::Topology;

/// A process, and whether its certificate is in the folder.
pub struct Shown {
    /// Name of the process.
    pub name: Name,
    /// Whether its certificate or its key is in the folder; an invalid one is reported as a fault.
    pub is_here: bool,
}

/// Returns the number of revoked certificates. Faults of the list are reported with the
/// coordinator's certificate.
pub fn revoked_in(folder: &Path) -> usize {
    revoked(folder).map_or(0, |list| list.len())
}

/// Returns the processes with certificates in `folder`, and the distinct faults of the
/// certificates.
pub fn look(folder: &Path, topology: &Topology) -> (Vec<Shown>, Vec<String>) {
    let mut shown = Vec::new();
    let mut wrong: Vec<String> = Vec::new();
    let pes = topology.tree.pes().map(Name::Pe);
    for name in std::iter::once(Name::Coordinator).chain(pes) {
        let files = [name.certificate_file(), name.key_file()];
        let is_here = files
            .iter()
            .any(|file| folder.join(file).symlink_metadata().is_ok());
        if (is_here || name == Name::Coordinator)
            && let Err(fault) = Identity::load(folder, name)
        {
            // A fault of the authority concerns all certificates; it is reported once.
            let told = fault.to_string();
            if !wrong.contains(&told) {
                wrong.push(told);
            }
        }
        shown.push(Shown { name, is_here });
    }
    (shown, wrong)
}
