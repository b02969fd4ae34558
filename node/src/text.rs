//! Text for error messages.

/// Quotes a text of a peer, short enough for an error message.
pub fn clipped(text: &str) -> String {
    const MAX_CHARS: usize = 160;
    format!("{text:?}").chars().take(MAX_CHARS).collect()
}
