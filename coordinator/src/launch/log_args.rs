//! How the processes that are started here log: as the command line says.

/// How child processes log.
#[derive(Clone, Debug)]
pub struct LogArgs {
    /// Arguments for `flitcast node`.
    pub args: Vec<String>,
    /// Whether their lines are JSON, and so are passed on as they are.
    pub json: bool,
}
