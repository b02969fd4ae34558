//! The appearance of output: how much a report contains, colours, and the width of the terminal.
//!
//! The command line chooses it once for the whole process.

use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

use clap::ValueEnum;

use crate::system::terminal;

/// How much a run prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Errors and warnings alone.
    Quiet,
    /// The lines that answer most questions.
    #[default]
    Short,
    /// All lines.
    Full,
}

/// When text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colors {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A way to emphasise text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A heading.
    Bold,
    /// Success.
    Green,
    /// The word before a warning.
    Yellow,
    /// The word before an error.
    Red,
}

static CHOSEN: OnceLock<(Detail, Colors)> = OnceLock::new();

/// Chooses the appearance, unless it has been chosen before.
pub fn choose(detail: Detail, colors: Colors) {
    // The first choice holds.
    let _ = CHOSEN.set((detail, colors));
}

pub fn detail() -> Detail {
    CHOSEN.get().copied().unwrap_or_default().0
}

/// Returns the columns of the terminal on stdout; `None` if stdout is not a terminal, or does
/// not report its size.
pub fn columns() -> Option<usize> {
    terminal::columns(io::stdout())
}

/// Formats text in a style if stdout is coloured.
pub fn on_stdout(style: Style, text: &str) -> String {
    painted(style, text, is_colored(io::stdout().is_terminal()))
}

/// Formats text in a style if stderr is coloured.
pub fn on_stderr(style: Style, text: &str) -> String {
    painted(style, text, is_colored(io::stderr().is_terminal()))
}

pub fn is_stderr_colored() -> bool {
    is_colored(io::stderr().is_terminal())
}

fn is_colored(is_terminal: bool) -> bool {
    match CHOSEN.get().copied().unwrap_or_default().1 {
        Colors::Always => true,
        Colors::Never => false,
        Colors::Auto => {
            let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
            is_terminal && !is_set("NO_COLOR")
        }
    }
}

fn painted(style: Style, text: &str, is_colored: bool) -> String {
    let code = match style {
        _ if !is_colored => return text.to_owned(),
        Style::Bold => "1",
        Style::Green => "32",
        Style::Yellow => "1;33",
        Style::Red => "1;31",
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_where_colours_are_wanted() {
        assert_eq!(painted(Style::Red, "error:", false), "error:");
        assert_eq!(
            painted(Style::Red, "error:", true),
            "\x1b[1;31merror:\x1b[0m"
        );
    }
}
