//! Options about the bytes on all connections.

use clap::Args;
use flitcast_proto::Compression;

/// Options about the bytes on all connections.
#[derive(Clone, Debug, Default, Args)]
pub struct TransmissionArgs {
    /// Let each PE send at this rate at most, on all its connections together, like 200mbit (kbit, mbit,
    /// gbit), from 64kbit on.
    #[arg(long, value_name = "RATE", hide_short_help = true)]
    pub bwlimit: Option<String>,
    /// Compress flits if that is predicted to be quicker: with lz4, or with zstd, which saves more bytes in
    /// more time and is the default if Flitcast was built with it.
    #[arg(
        long,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = Compression::BEST.name(),
        value_parser = available_compression,
        hide_short_help = true
    )]
    pub compress: Option<Compression>,
}

/// Returns the compression with this name.
///
/// # Errors
///
/// Returns an error if there is none, or if this program was built without it.
pub fn available_compression(name: &str) -> Result<Compression, String> {
    match Compression::named(name) {
        Some(compression) if compression.is_available() => Ok(compression),
        Some(_) => Err(format!(
            "this flitcast was built without {name}; use lz4, or build it with `--features {name}`"
        )),
        None => Err(format!("`{name}` is not a compression: lz4 or zstd")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_the_program_lacks_are_refused() {
        assert_eq!(available_compression("lz4"), Ok(Compression::Lz4));
        let zstd = available_compression("zstd");
        match Compression::Zstd.is_available() {
            true => assert_eq!(zstd, Ok(Compression::Zstd)),
            false => assert!(zstd.unwrap_err().contains("--features zstd")),
        }
        assert!(available_compression("gzip").is_err());
    }
}
