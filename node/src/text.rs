//! What is said to people.

/// What a peer said, short enough for an error message.
pub fn clipped(what: &dyn std::fmt::Debug) -> String {
    const LONGEST: usize = 160;
    format!("{what:?}").chars().take(LONGEST).collect()
}
