//! The comparison of files with those that a destination has.

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
