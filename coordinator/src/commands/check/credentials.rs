//! Whose certificates are in the folder that a cluster file names, and whether they are
//! good. Only the coordinator's has to be there: a PE's may be on its own host alone.

use std::path::Path;

use flitcast_node::security::{Identity, Name, revoked};

use crate::site::topology::Topology;

/// A process, and whether its certificate and its key are in the folder.
pub struct Shown {
    /// Whose they are.
    pub name: Name,
    /// Whether they are there; they are good then.
    pub is_here: bool,
}

/// How many certificates its authority has revoked; what is wrong with the list, is told with
/// the coordinator's certificate.
pub fn revoked_in(folder: &Path) -> usize {
    revoked(folder).map_or(0, |list| list.len())
}

/// Who has certificates in `folder`, and what is wrong with those, each thing once.
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
            // What is wrong with the authority's is so for all.
            let told = fault.to_string();
            if !wrong.contains(&told) {
                wrong.push(told);
            }
        }
        shown.push(Shown { name, is_here });
    }
    (shown, wrong)
}
