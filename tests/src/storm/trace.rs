//! A log of all events in order: always hashed, so that two runs of a seed can be compared, and
//! printed if requested.

use std::fmt::Write as _;
use std::io::Write as _;

use twox_hash::XxHash3_128;

/// A log of events.
pub(super) struct Trace {
    hash: XxHash3_128,
    line: String,
    is_printed: bool,
}

impl Trace {
    pub(super) fn new(is_printed: bool) -> Trace {
        Trace {
            hash: XxHash3_128::new(),
            line: String::new(),
            is_printed,
        }
    }

    pub(super) fn note(&mut self, now_ns: u64, what: std::fmt::Arguments<'_>) {
        self.line.clear();
        let (ms, ns) = (now_ns / 1_000_000, now_ns % 1_000_000);
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.line, "{ms:>6}.{ns:06} ms  {what}");
        self.hash.write(self.line.as_bytes());
        if self.is_printed {
            // The reader of a pipe may close it.
            let _ = std::io::stdout().write_all(self.line.as_bytes());
        }
    }

    pub(super) fn digest(&self) -> u128 {
        self.hash.finish_128()
    }
}
