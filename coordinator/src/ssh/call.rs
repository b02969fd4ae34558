//! One call of `ssh`: its command line, and what it and the host say.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::{Ssh, script};

/// For a host to answer, with all that ssh does before its first word of ours, in seconds.
/// Above `connect` of `limits.rs`: names are looked up and keys checked on the way.
const CONNECT_S: u32 = 10;
/// Longer lines are cut: nobody needs more of them.
const LONGEST_LINE: u64 = 16 * 1024;
/// Lines that wait to be looked at.
const LINES: usize = 64;

/// `ssh` that has a host do a script of so many bytes, which standard input begins with.
pub fn command(ssh: &Ssh, destination: &str, script_bytes: usize) -> Command {
    let mut command = Command::new("ssh");
    if let Some(config) = &ssh.config {
        command.arg("-F").arg(config);
    }
    // What a destination says itself is not overridden.
    if let Some(user) = ssh.user.as_ref().filter(|_| !destination.contains('@')) {
        command.args(["-l", user]);
    }
    if let Some(port) = ssh.port.filter(|_| !destination.starts_with("ssh://")) {
        command.args(["-p", &port.to_string()]);
    }
    let connect = format!("ConnectTimeout={CONNECT_S}");
    for option in [
        // Nobody is there to type a password.
        "BatchMode=yes",
        &connect,
        // What the user's configuration may ask for in sessions of another kind.
        "ClearAllForwardings=yes",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
    ] {
        command.args(["-o", option]);
    }
    command
        .args(["-T", "--", destination])
        .arg(script::command(script_bytes))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The terminal's Ctrl-C is for the coordinator; it tells the others.
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// The lines of a stream, whatever they hold, as they come.
pub fn lines(stream: impl AsyncRead + Send + Unpin + 'static) -> mpsc::Receiver<String> {
    let (say, said) = mpsc::channel(LINES);
    tokio::spawn(async move {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut stream)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)
                .await
            {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if say.send(text.trim_end().to_owned()).await.is_err() {
                return;
            }
        }
    });
    said
}
