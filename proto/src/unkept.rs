//! The attributes of files that a copy does not have.

use std::ops::AddAssign;

/// Numbers of entries some of whose attributes a destination does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unkept {
    /// Regular files with several names.
    pub hard_links: u64,
    /// Entries with setuid, setgid or sticky bits.
    pub special_modes: u64,
    /// Entries with another owner or group than the process.
    pub owners: u64,
    /// Entries with extended attributes.
    pub extended: u64,
}

impl AddAssign for Unkept {
    fn add_assign(&mut self, other: Unkept) {
        // PEs are not trusted on these numbers.
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.hard_links, other.hard_links);
        add(&mut self.special_modes, other.special_modes);
        add(&mut self.owners, other.owners);
        add(&mut self.extended, other.extended);
    }
}
