//! Whether what a file holds is in memory, or has to come from its disk first.

use std::fs::File;
use std::io::IoSliceMut;

use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// A file is looked at in so many places, evenly.
const PLACES: u64 = 8;
/// Closer together there is no use in looking: the kernel reads so much at once.
const APART: u64 = 128 << 10;

/// About how many bytes of a file of `size` bytes are not in memory. The kernel is asked for
/// single bytes without waiting for the disk; where it cannot be asked so, everything counts
/// as there.
pub(super) fn cold_bytes(file: &File, size: u64) -> u64 {
    let places = size.div_ceil(APART).min(PLACES);
    let is_cold = |place: &u64| {
        let mut byte = [0];
        let at = place * size / places;
        let read = preadv2(
            file,
            &mut [IoSliceMut::new(&mut byte)],
            at,
            ReadWriteFlags::NOWAIT,
        );
        read == Err(Errno::AGAIN)
    };
    let cold = (0..places).filter(is_cold).count() as u64;
    match places {
        0 => 0,
        _ => (u128::from(size) * u128::from(cold) / u128::from(places)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&[1; 300_000])?;
        assert_eq!(cold_bytes(&file, 300_000), 0);
        assert_eq!(cold_bytes(&file, 0), 0);
        Ok(())
    }
}
