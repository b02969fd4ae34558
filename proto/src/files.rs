//! Properties of messages made of files: compression, durability, updates, and attributes that a copy lacks.

use std::ops::AddAssign;

/// The compression of flits where it makes them shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    Never,
    /// Blocks of LZ4.
    Lz4,
    /// Frames of Zstandard, which are shorter and take more time.
    Zstd,
}

impl Compression {
    /// The best format for slow links of those that this program was built with.
    pub const BEST: Compression = match cfg!(feature = "zstd") {
        true => Compression::Zstd,
        false => Compression::Lz4,
    };

    /// Returns whether the program was built with the format.
    pub fn is_available(self) -> bool {
        self != Compression::Zstd || cfg!(feature = "zstd")
    }

    /// Returns the format of this name.
    pub fn named(name: &str) -> Option<Compression> {
        let mut formats = [Compression::Lz4, Compression::Zstd].into_iter();
        formats.find(|format| format.name() == Some(name))
    }

    /// Returns the name of the format; `None` for [`Compression::Never`].
    pub fn name(self) -> Option<&'static str> {
        match self {
            Compression::Never => None,
            Compression::Lz4 => Some("lz4"),
            Compression::Zstd => Some("zstd"),
        }
    }
}

/// When received files are durable: stored on the disk, and not only in the memory of their host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When the message becomes visible.
    #[default]
    Message,
    /// Each file when it is complete.
    File,
    /// When the kernel writes it, some time after the round.
    Never,
}

/// The comparison by which files are not sent to a destination that has them at the same path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// No comparison: everything is sent.
    #[default]
    Never,
    /// The size and the modification time are compared.
    ByTime,
    ByContent,
}

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
