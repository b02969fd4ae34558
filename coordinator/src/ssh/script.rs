//! What is done on a host, as scripts for its `sh`. They come over standard input: the
//! command that the login shell sees is the same for all, and no shell reads it otherwise.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use super::Ssh;
use super::binary::Binary;
use super::hosts::Task;

/// Said on stderr, where a login shell may have said something else: from here on, what is
/// said there is the program's.
pub const BEGINS: &str = "flitcast: begins";
/// Said on stdout: the program is not there. The system follows.
pub const MISSING: &str = "flitcast: missing ";

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
pub fn start(ssh: &Ssh, binary: &Binary, task: &Task) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    script.line("if [ ! -x \"$binary\" ]; then");
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

/// Puts what comes on standard input where the program is to be: under a name of its own
/// until it is whole and runs, and has said itself that it is what was sent.
pub fn copy(ssh: &Ssh, binary: &Binary) -> Vec<u8> {
    let mut script = Script::new(ssh, binary);
    let (size, hash) = (binary.content.len(), &binary.hash);
    script.line("umask 077; mkdir -p \"$directory\" || exit 1");
    // Hosts may share the directory, and process numbers are a host's own.
    script.line("copy=\"$directory/.$(uname -n).$$.new\"");
    script.line("trap 'rm -f \"$copy\"' EXIT; trap 'exit 1' HUP INT TERM");
    script.line("cat >\"$copy\" || exit 1");
    script.line("size=$(wc -c <\"$copy\")");
    script.line(&format!(
        "[ \"$size\" -eq {size} ] || {{ echo \"only $size of {size} bytes came\" >&2; exit 1; }}"
    ));
    script.line("chmod 700 \"$copy\" || exit 1");
    script.line("hash=$(\"$copy\" self-hash) || { echo 'it does not run there' >&2; exit 1; }");
    script.line(&format!(
        "[ \"$hash\" = {hash} ] || {{ echo 'it is not what was sent' >&2; exit 1; }}"
    ));
    script.line("mv -f \"$copy\" \"$binary\" || exit 1");
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
        script
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
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Output, Stdio};

    use super::*;

    /// Whatever a shell could do something with.
    const ODD: &str = "a b'c\"d$HOME`e`\\!*;&|<>(){}#~\n=";

    fn binary(content: &[u8]) -> Binary {
        Binary {
            content: content.to_vec(),
            hash: "0123456789abcdef".to_owned(),
            system: None,
        }
    }

    /// Has `sh` do it as a host's would, in a home of its own, with `input` behind it.
    fn done(home: &std::path::Path, script: &[u8], input: &[u8]) -> Output {
        let mut child = Command::new("sh")
            .args(["-c", &command(script.len())])
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&[script, input].concat()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    fn odd_ssh() -> Ssh {
        Ssh {
            // What has a `=` is no program to env, which the test runs it with.
            directory: format!("~/{}", ODD.replace(['\n', '='], "")),
            environment: vec!["PATH".to_owned(), "FLITCAST_IS_NOT_SET".to_owned()],
            ..Ssh::default()
        }
    }

    #[test]
    fn what_is_copied_runs_with_every_word_as_it_was() {
        let home = tempfile::tempdir().unwrap();
        let ssh = odd_ssh();
        // Says who it is, or its arguments and what it is told.
        let binary = binary(
            b"#!/bin/sh\ncase $1 in self-hash) echo 0123456789abcdef; exit;; esac\n\
              printf '<%s>' \"$@\" >&2; cat >&2; kill -9 $$\n",
        );
        let task = Task {
            prefix: vec!["env".into(), format!("ODD={ODD}").into()],
            arguments: vec![ODD.into(), "".into(), "-x".into()],
            input: b"and its input".to_vec(),
            leashed: false,
        };
        let start = start(&ssh, &binary, &task);
        let missing = done(home.path(), &start, &task.input);
        let said = String::from_utf8(missing.stdout).unwrap();
        assert!(said.starts_with("\nflitcast: missing Linux "), "{said}");

        let copied = done(home.path(), &copy(&ssh, &binary), &binary.content);
        assert!(copied.status.success(), "{copied:?}");
        let begun = done(home.path(), &start, &task.input);
        assert_eq!(begun.stdout, b"\n");
        // Nothing of the shell's own about a death.
        let said = String::from_utf8(begun.stderr).unwrap();
        assert_eq!(
            said,
            format!("\nflitcast: begins\n<{ODD}><><-x>and its input")
        );
        assert_eq!(begun.status.code(), Some(128 + 9));
    }

    #[test]
    fn what_did_not_come_whole_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let (ssh, binary) = (Ssh::default(), binary(b"#!/bin/sh\necho another\n"));
        let copy = copy(&ssh, &binary);
        for (content, why) in [
            (&binary.content[..9], "only 9 of 23 bytes came"),
            (b"#!/no/such/interpreter\n", "it does not run there"),
            (&binary.content, "it is not what was sent"),
        ] {
            let refused = done(home.path(), &copy, content);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(1), "{said}");
            assert!(said.contains(why), "{said}");
            let kept = std::fs::read_dir(home.path().join(".cache/flitcast")).unwrap();
            assert_eq!(kept.count(), 0);
        }
    }

    #[test]
    fn half_a_script_does_nothing() {
        let home = tempfile::tempdir().unwrap();
        let (ssh, binary) = (Ssh::default(), binary(b""));
        let copy = copy(&ssh, &binary);
        for bytes in 0..copy.len() - 2 {
            let cut = done(home.path(), &copy[..bytes], b"");
            assert_eq!(cut.stdout, b"");
            assert!(!home.path().join(".cache").exists(), "{bytes} bytes");
        }
    }
}
