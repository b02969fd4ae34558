//! The costs of processes on this host, measured by a separate process, so that watching, tracing and
//! logging of this one do not include it.

use std::process::Stdio;

use tokio::process::Command;

use crate::limits::MEASURE_HOST;
use crate::system::children::PROGRAM;
use crate::timeout_stream::in_time;

/// Returns the output of `flitcast calibrate --host --format json` for plain or encrypted connections;
/// empty if the measurement fails or takes too long.
pub async fn measure(encrypted: bool) -> String {
    let mut measuring = Command::new(PROGRAM);
    measuring
        .arg0("flitcast")
        .args(["calibrate", "--host", "--format", "json"])
        .args(encrypted.then_some("--encrypted"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .env_remove("RUST_LOG")
        .kill_on_drop(true);
    match in_time(MEASURE_HOST, measuring.output()).await {
        Ok(output) => String::from_utf8(output.stdout).unwrap_or_default(),
        Err(error) => {
            tracing::info!(%error, "what processes cost here cannot be measured");
            String::new()
        }
    }
}
