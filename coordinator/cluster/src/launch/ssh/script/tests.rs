//! Scripts, run by this machine's `sh`.

use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::*;

/// Characters that a shell may interpret.
const ODD: &str = "a b'c\"d$HOME`e`\\!*;&|<>(){}#~\n=";

fn binary(content: &[u8]) -> Binary {
    Binary::new("0123456789abcdef".to_owned(), None, content.to_vec())
}

/// Runs a script as a host does, with a separate home directory and `input` after the script.
fn done(home: &Path, script: &[u8], input: &[u8]) -> Output {
    done_with(&std::env::var_os("PATH").unwrap(), home, script, input)
}

fn done_with(path: &OsStr, home: &Path, script: &[u8], input: &[u8]) -> Output {
    let mut child = Command::new("/bin/sh")
        .args(["-c", &command(script.len())])
        .env("HOME", home)
        .env("PATH", path)
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
        // `env` takes a word with `=` for a variable.
        directory: Some(format!("~/{}", ODD.replace(['\n', '='], ""))),
        environment: vec!["PATH".to_owned(), "FLITCAST_IS_NOT_SET".to_owned()],
        ..Ssh::default()
    }
}

#[test]
fn copied_programs_get_their_arguments_unchanged() {
    let home = tempfile::tempdir().unwrap();
    let ssh = odd_ssh();
    // The program prints its hash, or its arguments and its input.
    let binary = binary(
        b"#!/bin/sh\ncase $1 in self-hash) echo 0123456789abcdef; exit;; esac\n\
          printf '<%s>' \"$@\" >&2; cat >&2; kill -9 $$\n",
    );
    let task = RemoteCommand {
        prefix: vec!["env".into(), format!("ODD={ODD}").into()],
        arguments: vec![ODD.into(), "".into(), "-x".into()],
        input: b"and its input".to_vec(),
        leashed: false,
    };
    let start = start(&ssh, &binary, &task);
    let missing = done(home.path(), &start, &task.input);
    let stdout = String::from_utf8(missing.stdout).unwrap();
    assert!(stdout.starts_with("\nflitcast: missing Linux "), "{stdout}");

    let copied = done(home.path(), &copy(&ssh, &binary), &binary.content);
    assert!(copied.status.success(), "{copied:?}");
    let begun = done(home.path(), &start, &task.input);
    assert_eq!(begun.stdout, b"\n");
    // The shell prints no message about the death.
    let stderr = String::from_utf8(begun.stderr).unwrap();
    let expected = format!("\nflitcast: begins\n<{ODD}><><-x>and its input");
    assert_eq!(stderr, expected);
    assert_eq!(begun.status.code(), Some(128 + 9));
}

#[test]
fn files_that_others_can_write_are_not_run() {
    let home = tempfile::tempdir().unwrap();
    let ssh = Ssh::default();
    let binary = binary(
        b"#!/bin/sh\n: >~/it-ran\ncase $1 in self-hash) echo 0123456789abcdef;; *) echo; esac\n",
    );
    let task = RemoteCommand {
        prefix: Vec::new(),
        arguments: vec!["node".into()],
        input: Vec::new(),
        leashed: false,
    };
    let (start, copy) = (start(&ssh, &binary, &task), copy(&ssh, &binary));
    let [directory, ran] = [".cache/flitcast", "it-ran"].map(|path| home.path().join(path));
    let program = directory.join(binary.name());
    let set_mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let begun = || {
        let _ = std::fs::remove_file(&ran);
        let begun = done(home.path(), &start, b"");
        let output = String::from_utf8([begun.stdout, begun.stderr].concat()).unwrap();
        (begun.status.code(), output)
    };
    let assert_missing = || {
        let (code, output) = begun();
        assert!(output.contains("flitcast: missing Linux "), "{output}");
        assert_eq!(code, Some(0));
        assert!(!ran.exists());
    };
    let assert_copied = || {
        assert!(done(home.path(), &copy, &binary.content).status.success());
        assert!(begun().1.contains(BEGINS));
    };
    assert_copied();
    for mode in [0o720, 0o702, 0o777, 0o600] {
        set_mode(&program, mode);
        assert_missing();
        // Another copy replaces it.
        assert_copied();
    }
    let other = home.path().join("other");
    std::fs::rename(&program, &other).unwrap();
    std::os::unix::fs::symlink(&other, &program).unwrap();
    assert_missing();
    assert_copied();

    for mode in [0o720, 0o702, 0o1777] {
        set_mode(&directory, mode);
        let (code, output) = begun();
        assert_eq!(code, Some(1));
        let shown = directory.display();
        let expected = format!("others can write in {shown}: make it yours alone");
        assert!(output.contains(&expected), "{output}");
        assert!(!ran.exists());
        let refused = done(home.path(), &copy, &binary.content);
        assert!(String::from_utf8_lossy(&refused.stderr).contains(&expected));
        assert!(!ran.exists());
    }
    // The file belongs to the user but is another program.
    set_mode(&directory, 0o700);
    std::fs::write(&program, "#!/bin/sh\necho 0123456789abcdee\n").unwrap();
    assert_missing();
}

/// Checks that a copy failed for this reason, and that nothing is kept of it.
#[track_caller]
fn assert_refused(home: &Path, output: &Output, why: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(why), "{stderr}");
    let kept = std::fs::read_dir(home.join(".cache/flitcast")).unwrap();
    assert_eq!(kept.count(), 0);
}

#[test]
fn incomplete_copies_are_not_kept() {
    let home = tempfile::tempdir().unwrap();
    let (ssh, binary) = (Ssh::default(), binary(b"#!/bin/sh\necho another\n"));
    let copy = copy(&ssh, &binary);
    for (content, why) in [
        (&binary.content[..9], "only 9 of 23 bytes came"),
        (b"#!/no/such/interpreter\n", "it does not run there"),
        (&binary.content, "it is not what was sent"),
    ] {
        assert_refused(home.path(), &done(home.path(), &copy, content), why);
    }
}

#[test]
fn truncated_scripts_do_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (ssh, binary) = (Ssh::default(), binary(b""));
    let copy = copy(&ssh, &binary);
    for bytes in 0..copy.len() - 2 {
        let cut = done(home.path(), &copy[..bytes], b"");
        assert_eq!(cut.stdout, b"");
        assert!(!home.path().join(".cache").exists(), "{bytes} bytes");
    }
}

/// Runs the script `take` with a server that sends `content`, with these tools and those that all
/// hosts have.
fn taken(home: &Path, tools: &[&str], binary: &Binary, content: &[u8]) -> Output {
    let usual = "cat chmod dd head ls mkdir mv rm sha256sum sh timeout uname wc";
    let path = home.join("bin");
    std::fs::create_dir_all(&path).unwrap();
    for tool in usual.split(' ').chain(tools.iter().copied()) {
        let script = format!("command -v {tool}");
        let found = Command::new("/bin/sh").args(["-c", &script]).output();
        let found = String::from_utf8(found.unwrap().stdout).unwrap();
        let _ = std::os::unix::fs::symlink(found.trim(), path.join(tool));
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let content = content.to_vec();
    // The thread ends with the test.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // The first connection only tests whether the port is open.
            let _ = stream.unwrap().write_all(&content);
        }
    });
    let script = take(&Ssh::default(), binary, address);
    done_with(path.as_os_str(), home, &script, b"")
}

#[test]
fn programs_are_copied_from_another_host() {
    let program = b"#!/bin/sh\necho 0123456789abcdef\n";
    let binary = binary(program);
    // Surplus bytes are cut off.
    for content in [&program[..], &[&program[..], b"and more"].concat()] {
        let home = tempfile::tempdir().unwrap();
        let taken = taken(home.path(), &["bash"], &binary, content);
        assert!(taken.status.success(), "{taken:?}");
        let program = home.path().join(".cache/flitcast").join(binary.name());
        assert_eq!(std::fs::read(program).unwrap(), binary.content);
    }
}

#[test]
fn different_programs_from_another_host_are_not_run() {
    let home = tempfile::tempdir().unwrap();
    let right = b"#!/bin/sh\n: >~/it-ran; echo 0123456789abcdef\n";
    let wrong = b"#!/bin/sh\n: >~/it-ran; echo 0123456789abcdef;";
    let binary = binary(right);
    for (content, why) in [
        (&wrong[..], "it is not what was sent".to_owned()),
        (&right[..9], format!("only 9 of {} bytes came", right.len())),
        (b"", format!("only 0 of {} bytes came", right.len())),
    ] {
        let refused = taken(home.path(), &["bash"], &binary, content);
        assert_refused(home.path(), &refused, &why);
        assert!(!home.path().join("it-ran").exists());
    }
    // The right content is run: it prints its hash.
    let right = taken(home.path(), &["bash"], &binary, right);
    assert!(right.status.success(), "{right:?}");
    assert!(home.path().join("it-ran").exists());
}

#[test]
fn failed_copies_report_the_reason() {
    let home = tempfile::tempdir().unwrap();
    let binary = binary(b"#!/bin/sh\n");
    let stderr = |output: Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let without = stderr(taken(home.path(), &[], &binary, &binary.content));
    assert_eq!(without, "there is no bash, python3 or nc\n");
    // No process listens at a port that was just closed.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let script = take(&Ssh::default(), &binary, address);
    let unanswered = stderr(done(home.path(), &script, b""));
    assert!(
        unanswered.contains("no answer from 127.0.0.1\n"),
        "{unanswered}"
    );
}
