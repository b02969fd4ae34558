//! The time at which files that have arrived survive a power cut.

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
