//! What processes cost where this one runs: found by a process of its own, so that what watches,
//! traces and logs this one knows nothing of it.

use std::io;
use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use crate::limits::MEASURE_HOST;
use crate::system::children::PROGRAM;

/// What `flitcast calibrate --host --format json` says, of plain connections or of encrypted ones;
/// nothing where it cannot tell, or takes too long.
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
    let output = timeout(MEASURE_HOST, measuring.output()).await;
    match output.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(output) => String::from_utf8(output.stdout).unwrap_or_default(),
        Err(error) => {
            tracing::info!(%error, "what processes cost here cannot be measured");
            String::new()
        }
    }
}
