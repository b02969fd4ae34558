//! The formats of compressed flits.

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
