//! What is done on a host, as scripts for its `sh`. They come over standard input: the
//! command that the login shell sees is the same for all, and no shell reads it otherwise.

use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;

use super::binary::Binary;
use super::hosts::RemoteCommand;
use crate::site::ssh::Ssh;

/// Said on stderr, where a login shell may have said something else: from here on, what is
/// said there is the program's.
pub const BEGINS: &str = "flitcast: begins";
/// Said on stdout: the program is not there. The system follows.
pub const MISSING: &str = "flitcast: missing ";
/// Said on stdout: the program is handed out. The port follows.
pub const SERVES: &str = "flitcast: serves ";
/// For another host to let somebody in who takes the program from it, in seconds: one that
/// has just been called by ssh is there.
const ANSWER_S: u32 = 5;
/// And for all of the program, some 10 MB: an edge with 2 Mbit/s has the time, and over one
/// that is slower a copy from here is no worse.
pub const TAKING_S: u32 = 60;

/// The command that has a host's `sh` do what the first `bytes` of standard input say; the
/// rest is left for what the script runs. Byte by byte, so that not one more is read.
///
/// Between single quotes there is nothing here that the shells known as sh, csh and fish
/// read differently.
pub fn command(bytes: usize) -> String {
    format!("exec sh -c 'eval \"$(dd bs=1 count={bytes} 2>/dev/null)\"'")
}

/// Plays a PE if the program is there, else says so. The process that plays it is a child of
/// the shell, which tells by its exit status what signal has killed it.
pub fn start(ssh: &Ssh, binary: &Binary, task: &RemoteCommand) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line("if ! is_there; then safe || exit 1");
    script.line(&format!(
        "echo '{MISSING}'\"$(uname -s) $(uname -m)\"; exit 0; fi"
    ));
    for name in &ssh.environment {
        if let Some(value) = std::env::var_os(name) {
            script.put(format!("{name}=").as_bytes());
            script.word(&value);
            script.line(&format!("; export {name}"));
        }
    }
    script.line(&format!("echo >&2; echo '{BEGINS}' >&2"));
    // What the shell itself would say of a death, its exit status says.
    script.line("exec 3>&2 2>/dev/null >/dev/null");
    script.put(b"(exec 2>&3 3>&-; exec ");
    for word in &task.prefix {
        script.word(word);
        script.put(b" ");
    }
    script.put(b"\"$binary\"");
    for word in &task.arguments {
        script.put(b" ");
        script.word(word);
    }
    script.line(")");
    script.line("exit $?");
    script.finish()
}

/// Hands the program out to others at an address of the host's, as long as standard input
/// goes on.
pub fn serve(ssh: &Ssh, binary: &Binary, listen: IpAddr) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line("is_there || { echo 'flitcast is not there any more' >&2; exit 1; }");
    script.line(&format!("exec \"$binary\" self-serve {listen}"));
    script.finish()
}

/// Puts what comes on standard input where the program is to be.
pub fn copy(ssh: &Ssh, binary: &Binary) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.begin_copy();
    script.line("cat >\"$copy\" || exit 1");
    script.end_copy(binary, None);
    script.finish()
}

/// Puts there what another host hands out, if it is the program: nobody knows who answers at
/// that address, so nothing of it is run before its digest is found right.
pub fn take(ssh: &Ssh, binary: &Binary, from: SocketAddr) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line("for tool in timeout head sha256sum; do");
    script.line("command -v $tool >/dev/null || { echo \"there is no $tool\" >&2; exit 1; }");
    script.line("done");
    script.begin_copy();
    script.line(&format!("set -- {} {}", from.ip(), from.port()));
    script.line(&format!("answer={ANSWER_S}; taking='timeout {TAKING_S}'"));
    script.line("if command -v bash >/dev/null; then");
    // Bash has no limit of its own for this, so it knocks first.
    script.line("timeout $answer bash -c ': <\"/dev/tcp/$0/$1\"' \"$@\" || {");
    script.line("echo \"no answer from $1\" >&2; exit 1; }");
    script.line("take() { $taking bash -c 'cat <\"/dev/tcp/$0/$1\"' \"$@\"; }");
    script.line("elif command -v python3 >/dev/null; then");
    script.line("take() { $taking python3 -c 'import shutil, socket, sys");
    script.line("(address, port, answer), out = sys.argv[1:], sys.stdout.buffer");
    script.line("taken = socket.create_connection((address, int(port)), int(answer))");
    script.line("shutil.copyfileobj(taken.makefile(\"rb\"), out)' \"$@\" $answer; }");
    script.line("elif command -v nc >/dev/null; then");
    script.line("take() { $taking nc -w $answer \"$@\" </dev/null; }");
    script.line("else echo 'there is no bash, python3 or nc' >&2; exit 1; fi");
    // However much is sent, the disk does not fill up.
    let size = binary.content.len();
    script.line(&format!("take \"$@\" | head -c {size} >\"$copy\""));
    script.end_copy(binary, Some(binary.sha256()));
    script.finish()
}

/// A script between braces: one that is cut off is none, and does nothing.
struct Script(Vec<u8>);

impl Script {
    /// One that knows where the program is, and what a login shell has said before.
    fn new(ssh: &Ssh, binary: &Binary) -> Script {
        let mut script = Script(b"{\necho\ndirectory=".to_vec());
        let below_home = ssh.directory.strip_prefix("~/");
        if below_home.is_some() {
            script.put(b"\"${HOME:?}\"/");
        }
        script.word(OsStr::new(below_home.unwrap_or(&ssh.directory)));
        script.line(&format!("\nbinary=\"$directory/{}\"", binary.name()));
        // Hosts and users may share the directory, so what stands there is run if nobody else
        // could have put it there, and if it is what it is called.
        script.line("own() { [ -O \"$1\" ] && case $(ls -ld \"$1\") in");
        script.line("?????w*|????????w*) return 1;; ??????????*) ;; *) return 1;; esac; }");
        script.line(
            "is_there() { [ -f \"$binary\" ] && [ ! -L \"$binary\" ] && [ -x \"$binary\" ] &&",
        );
        script.line("own \"$directory/.\" && own \"$binary\" &&");
        let hash = &binary.hash;
        script.line(&format!(
            "[ \"$(\"$binary\" self-hash 2>/dev/null </dev/null)\" = {hash} ]; }}"
        ));
        script.line("safe() { [ ! -e \"$directory\" ] || own \"$directory/.\" || {");
        script
            .line("echo \"others can write in $directory: make it yours alone (chmod go-w),\" \\");
        script.line("'or name another one in the cluster file, [launch] directory' >&2");
        script.line("return 1; }; }");
        script
    }

    /// The program gets a name of its own, `$copy`, until it is known to be what it should be.
    fn begin_copy(&mut self) {
        self.line("umask 077; mkdir -p \"$directory\" && safe || exit 1");
        // Hosts may share the directory, and process numbers are a host's own.
        self.line("copy=\"$directory/.$(uname -n).$$.new\"");
        self.line("trap 'rm -f \"$copy\"' EXIT; trap 'exit 1' HUP INT TERM");
    }

    /// It is whole, has the digest that it should have, if that is known, and runs and says
    /// itself that it is what was sent; then it becomes visible.
    fn end_copy(&mut self, binary: &Binary, sha256: Option<&str>) {
        let (size, hash) = (binary.content.len(), &binary.hash);
        let otherwise = "{ echo 'it is not what was sent' >&2; exit 1; }";
        self.line("size=$(wc -c <\"$copy\")");
        self.line(&format!(
            "[ \"$size\" -eq {size} ] || {{ echo \"only $size of {size} bytes came\" >&2; exit 1; }}"
        ));
        if let Some(sha256) = sha256 {
            self.line("digest=$(sha256sum <\"$copy\") || exit 1");
            self.line(&format!(
                "[ \"${{digest%% *}}\" = {sha256} ] || {otherwise}"
            ));
        }
        self.line("chmod 700 \"$copy\" || exit 1");
        self.line("hash=$(\"$copy\" self-hash) || { echo 'it does not run there' >&2; exit 1; }");
        self.line(&format!("[ \"$hash\" = {hash} ] || {otherwise}"));
        self.line("mv -f \"$copy\" \"$binary\" || exit 1");
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn line(&mut self, line: &str) {
        self.put(line.as_bytes());
        self.put(b"\n");
    }

    /// One word, whatever is in it.
    fn word(&mut self, word: &OsStr) {
        self.put(b"'");
        for &byte in word.as_bytes() {
            match byte {
                b'\'' => self.put(b"'\\''"),
                byte => self.0.push(byte),
            }
        }
        self.put(b"'");
    }

    fn finish(mut self) -> Vec<u8> {
        self.put(b"}\n");
        self.0
    }
}

#[cfg(test)]
mod tests;
