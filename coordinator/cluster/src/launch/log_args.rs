//! Logging of child processes, as the command line requests it.

/// Logging of child processes.
#[derive(Clone, Debug)]
pub struct LogArgs {
    /// Arguments for `flitcast node`.
    pub args: Vec<String>,
}
