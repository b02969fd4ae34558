//! Scripts for the `sh` of a host. They are sent over standard input: the login shell sees the same
//! command for all scripts, and all login shells interpret it the same way.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;

use super::binary::Binary;
use crate::site::placement::{DIRECTORY, Place, Ssh};

/// The command to run on a host.
pub struct RemoteCommand {
    /// Words before the program.
    pub prefix: Vec<OsString>,
    pub arguments: Vec<OsString>,
    /// Data for its standard input.
    pub input: Vec<u8>,
    /// Whether its standard input stays open after the data while the caller wants it to run.
    pub leashed: bool,
}

impl RemoteCommand {
    /// Creates the command that runs the program at a place.
    pub fn new(
        place: &Place,
        logs: &[String],
        arguments: Vec<OsString>,
        input: Vec<u8>,
        leashed: bool,
    ) -> RemoteCommand {
        let words = |words: &[String]| words.iter().map(OsString::from).collect::<Vec<_>>();
        RemoteCommand {
            prefix: words(&place.run),
            arguments: [words(logs), arguments].concat(),
            input,
            leashed,
        }
    }
}

/// Line on stderr after which all output on stderr is the program's; a login shell may have printed
/// before.
pub const BEGINS: &str = "flitcast: begins";
/// Line on stdout if the program is missing, followed by the name of the system.
pub const MISSING: &str = "flitcast: missing ";
/// Line on stdout if the program is served, followed by the port.
pub const SERVES: &str = "flitcast: serves ";
/// Time in seconds to connect to another host that serves the program. It has just been reached by
/// ssh.
const ANSWER_S: u32 = 5;
/// Time in seconds to copy the program of about 10 MB from another host: enough for 2 Mbit/s. Over
/// a slower link a copy from this machine is not worse.
pub const TAKING_S: u32 = 60;

/// Returns the command that makes a host's `sh` run the first `bytes` bytes of standard input. The
/// script's commands read the rest, so `dd` reads byte by byte and never more.
///
/// sh, csh and fish interpret the text between the single quotes the same way.
pub fn command(bytes: usize) -> String {
    format!("exec sh -c 'eval \"$(dd bs=1 count={bytes} 2>/dev/null)\"'")
}

/// Returns a script that runs a PE if the program exists, and reports it missing otherwise. The
/// process is a child of the shell, whose exit status contains the signal that killed it.
pub fn start(ssh: &Ssh, binary: &Binary, task: &RemoteCommand) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line(&format!(
        "if ! is_there; then safe || exit 1\necho '{MISSING}'\"$(uname -s) $(uname -m)\"; exit 0; fi"
    ));
    for name in &ssh.environment {
        if let Some(value) = std::env::var_os(name) {
            script.put(format!("{name}=").as_bytes());
            script.word(&value);
            script.line(&format!("; export {name}"));
        }
    }
    script.line(&format!("echo >&2; echo '{BEGINS}' >&2"));
    // The exit status reports a death, so the shell's own message is discarded.
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

/// Returns a script that serves the program at an address of the host while standard input is open.
pub fn serve(ssh: &Ssh, binary: &Binary, listen: IpAddr) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line("is_there || { echo 'flitcast is not there any more' >&2; exit 1; }");
    script.line(&format!("exec \"$binary\" self-serve {listen}"));
    script.finish()
}

/// Returns a script that copies the program from standard input.
pub fn copy(ssh: &Ssh, binary: &Binary) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.begin_copy();
    script.line("cat >\"$copy\" || exit 1");
    script.end_copy(binary, None);
    script.finish()
}

/// Returns a script that copies the program from another host. The peer is not authenticated, so
/// nothing is run before the digest is verified.
pub fn take(ssh: &Ssh, binary: &Binary, from: SocketAddr) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line(TOOLS);
    script.begin_copy();
    script.line(&format!("set -- {} {}", from.ip(), from.port()));
    script.line(&format!("answer={ANSWER_S}; taking='timeout {TAKING_S}'"));
    script.line(TAKE);
    // The size is limited, so that a forged copy cannot fill the disk.
    let size = binary.content.len();
    script.line(&format!("take \"$@\" | head -c {size} >\"$copy\""));
    script.end_copy(binary, Some(binary.sha256()));
    script.finish()
}

/// Functions of every script. Hosts and users may share the directory, so a file is run only if no
/// other user could have put it there and its hash matches its name.
const CHECKS: &str = r#"own() { [ -O "$1" ] && case $(ls -ld "$1") in
?????w*|????????w*) return 1;; ??????????*) ;; *) return 1;; esac; }
is_there() { [ -f "$binary" ] && [ ! -L "$binary" ] && [ -x "$binary" ] &&
own "$directory/." && own "$binary" &&
[ "$("$binary" self-hash 2>/dev/null </dev/null)" = "$right" ]; }
safe() { [ ! -e "$directory" ] || own "$directory/." || {
echo "others can write in $directory: make it yours alone (chmod go-w)," \
'or name another one in the cluster file, [launch] directory' >&2
return 1; }; }"#;

const TOOLS: &str = r#"for tool in timeout head sha256sum; do
command -v $tool >/dev/null || { echo "there is no $tool" >&2; exit 1; }
done"#;

/// The function that copies the program from the address and the port that are its arguments. Bash
/// has no time limit for connecting, so a first connection tests it.
const TAKE: &str = r#"if command -v bash >/dev/null; then
timeout $answer bash -c ': <"/dev/tcp/$0/$1"' "$@" || {
echo "no answer from $1" >&2; exit 1; }
take() { $taking bash -c 'cat <"/dev/tcp/$0/$1"' "$@"; }
elif command -v python3 >/dev/null; then
take() { $taking python3 -c 'import shutil, socket, sys
(address, port, answer), out = sys.argv[1:], sys.stdout.buffer
taken = socket.create_connection((address, int(port)), int(answer))
shutil.copyfileobj(taken.makefile("rb"), out)' "$@" $answer; }
elif command -v nc >/dev/null; then
take() { $taking nc -w $answer "$@" </dev/null; }
else echo 'there is no bash, python3 or nc' >&2; exit 1; fi"#;

/// The end of a copy of `$sent` bytes, with this `$digest` if it is set.
const END_COPY: &str = r#"other() { echo 'it is not what was sent' >&2; exit 1; }
size=$(wc -c <"$copy")
[ "$size" -eq $sent ] || { echo "only $size of $sent bytes came" >&2; exit 1; }
if [ "$digest" ]; then
came=$(sha256sum <"$copy") || exit 1
[ "${came%% *}" = $digest ] || other; fi
chmod 700 "$copy" || exit 1
hash=$("$copy" self-hash) || { echo 'it does not run there' >&2; exit 1; }
[ "$hash" = $right ] || other
mv -f "$copy" "$binary" || exit 1"#;

/// A script in braces: `sh` reports a truncated one as a syntax error and runs nothing.
struct Script(Vec<u8>);

impl Script {
    /// Starts a script: defines the path of the program and its checks. The empty line ends any
    /// text that a login shell has printed.
    fn new(ssh: &Ssh, binary: &Binary) -> Script {
        let mut script = Script(b"{\necho\ndirectory=".to_vec());
        let directory = ssh.directory.as_deref().unwrap_or(DIRECTORY);
        let below_home = directory.strip_prefix("~/");
        if below_home.is_some() {
            script.put(b"\"${HOME:?}\"/");
        }
        script.word(OsStr::new(below_home.unwrap_or(directory)));
        script.line(&format!("\nbinary=\"$directory/{}\"", binary.name()));
        script.line(&format!("right={}", binary.hash));
        script.line(CHECKS);
        script
    }

    /// Starts a copy under a temporary name, `$copy`.
    fn begin_copy(&mut self) {
        // Hosts may share the directory, and process ids are unique on one host only.
        self.line(
            r#"umask 077; mkdir -p "$directory" && safe || exit 1
copy="$directory/.$(uname -n).$$.new"
trap 'rm -f "$copy"' EXIT; trap 'exit 1' HUP INT TERM"#,
        );
    }

    /// Ends a copy: checks its size, its digest if given, and that it runs and prints the right
    /// hash; then renames it.
    fn end_copy(&mut self, binary: &Binary, sha256: Option<&str>) {
        let (size, sha256) = (binary.content.len(), sha256.unwrap_or_default());
        self.line(&format!("sent={size} digest={sha256}"));
        self.line(END_COPY);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn line(&mut self, line: &str) {
        self.put(line.as_bytes());
        self.put(b"\n");
    }

    /// Appends one word, quoted for the shell.
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
