//! Certificates, secrets and their reports; processes without certificates or with revoked ones.

mod claims;
mod lent;
mod revoked;
mod strangers;

use std::os::unix::fs::PermissionsExt as _;

use flitcast_tests::files::{names, set_mode};
use flitcast_tests::fuzz::hex;
use flitcast_tests::impostor::Stage;
use flitcast_tests::processes::eventually;
use flitcast_tests::table::refusals;
use flitcast_tests::{reported, run, scratch, start};

#[test]
fn an_authority_is_founded_once_and_keeps_its_keys_to_itself() {
    let dir = scratch();
    let folder = dir.join("ca");
    let made = dir.run("ca init @/ca --pes 2 --days 7").ok();
    let expected = "certificates for 3 from the coordinator to P1, valid until 20";
    let expected = format!("in {}: {expected}", folder.display());
    assert!(made.stdout.starts_with(&expected), "{}", made.stdout);
    let all =
        "ca.key ca.pem coordinator.key coordinator.pem issued.txt p0.key p0.pem p1.key p1.pem";
    assert_eq!(names(&folder).join(" "), all);
    for file in all.split(' ') {
        let found = std::fs::metadata(folder.join(file)).expect("it is there");
        let expected = if file.ends_with(".pem") { 0o644 } else { 0o600 };
        assert_eq!(found.permissions().mode() & 0o777, expected, "{file}");
    }
    let before = dir.read("ca/ca.key");
    let again = dir.run("ca init @/ca");
    again.fails(2, &["the folder is not empty"]);
    assert_eq!(dir.read("ca/ca.key"), before);

    // A key that others can read is refused.
    let line = "gather --tree path:2 --size 1 --credentials @/ca";
    for (file, code) in [("coordinator.key", 2), ("p1.key", 1)] {
        let key = dir.join("ca").join(file);
        set_mode(&key, 0o640);
        let expected = "others can read this private key (mode 640); chmod 600 it";
        let expected = format!("{}: {expected}", key.display());
        dir.run(line).fails(code, &[&expected]);
        set_mode(&key, 0o600);
    }
    dir.run(line).ok();
}

#[test]
fn all_errors_of_a_command_line_are_reported_at_once() {
    for (line, parts) in refusals(
        "",
        "
        ca issue /no/such/folder q1 px p99999999999 --days 0 | --days 0: from 1 to 3660 | `q1`: unknown name | `px`: unknown name | `p99999999999`: unknown name
        ca issue /no/such/folder p1 | /no/such/folder/ca.key: No such file
        ca init /proc/none --pes 0 | --pes 0: from 1 to
        gather --tree path:0 --credentials /no/such/folder --size 1 | --tree path:0
        gather --tree path:2 --credentials /no/such/folder --size 1 | --credentials: /no/such/folder/ca.pem: No such file
    ",
    ) {
        let refused = run(line.split_whitespace()).with_code(2);
        let lines: Vec<&str> = refused.stderr.lines().collect();
        assert_eq!(lines.len(), parts.len(), "{line}: {}", refused.stderr);
        for (line, part) in lines.iter().zip(parts) {
            assert!(line.contains(part), "no `{part}` in `{line}`");
        }
    }
}

#[test]
fn every_report_names_missing_security() {
    let line = "--tree path:3 --size 1KiB --insecure";
    let expected = "INSECURE: sent in the clear, and nobody had to show who they are";
    for command in ["scatter", "gather", "bench gather --rounds 1"] {
        let line = format!("{command} {line}");
        run(line.split_whitespace()).ok().prints(&[expected]);
        assert_eq!(reported(&line).value("/security"), "insecure");
    }
    let line = format!("scatter --timeouts disk=10ms --input /no/such {line}");
    run(line.split_whitespace()).with_code(2);
}

/// No log, no output of `ps` for other users and no environment contains it.
#[test]
fn a_launch_keeps_its_secret_to_itself() {
    let stage = Stage::path(3, 1);
    let running = start(stage.arguments("gather --size 1KiB -vvv"));
    let impostor = stage.enter();
    let admission = impostor.admission.clone();
    assert_eq!(admission.credentials, None, "on loopback there are none");
    let processes = eventually("all processes run", || {
        let all = running.processes();
        (all.iter().filter(|process| process.pe().is_some()).count() >= 2).then_some(all)
    });
    let mut seen = Vec::new();
    for process in processes {
        for file in ["cmdline", "environ"] {
            let shown = std::fs::read(format!("/proc/{}/{file}", process.pid));
            seen.extend(shown.unwrap_or_default());
        }
    }
    let is_seen = seen.windows(5).any(|window| window == b"--pe\0");
    assert!(is_seen, "it was looked at");
    drop(impostor);
    let finished = running.finish().with_code(1);
    seen.extend(finished.stdout.bytes().chain(finished.stderr.bytes()));
    let bytes = stage.secret();
    assert_eq!(admission.secret, flitcast_proto::wire::Secret::new(bytes));
    let hex = hex(&bytes);
    let listed = format!("{:?}", &bytes[..4]);
    let listed = listed.trim_end_matches(']').trim_start_matches('[');
    for shape in [
        &bytes[..8],
        &hex.as_bytes()[..16],
        hex[..16].to_uppercase().as_bytes(),
        listed.as_bytes(),
    ] {
        let found = seen.windows(shape.len()).any(|window| window == shape);
        assert!(!found, "{} is shown", String::from_utf8_lossy(shape));
    }
}
