//! The comparison of files with those that a destination has.

/// Which files of a message are not sent to a destination that has them at the same path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Update {
    /// None: everything is sent.
    #[default]
    Never,
    /// Those with the same size and modification time.
    ByTime,
    /// Those with the same content.
    ByContent,
}
