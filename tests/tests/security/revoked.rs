//! Revoked certificates and expired authorities: every listener rejects them, with the reason.

use std::path::Path;
use std::time::{Duration, SystemTime};

use flitcast_tests::files::names;
use flitcast_tests::joining::{Joining, dismiss, leave};
use flitcast_tests::kept::Kept;
use flitcast_tests::processes::{eventually, until};
use flitcast_tests::scratch;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};

/// Copies the credentials to a host without the later revocations.
#[track_caller]
fn copied(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("it can be made");
    for name in names(from) {
        // With its permissions.
        std::fs::copy(from.join(&name), to.join(&name)).expect("it can be copied");
    }
}

#[test]
fn a_pe_with_revoked_certificates_gets_new_ones() {
    let dir = scratch();
    let folder = dir.join("keys");
    dir.run("ca init @/keys --pes 3").ok();
    let gather = || dir.run("gather --tree path:3 --size 1KiB --credentials @/keys");
    let text = "tree = \"path:3\"\ncoordinator = \"127.0.0.1:7117\"\n\
        [launch]\nkind = \"join\"\n[security]\ncredentials = \"keys\"\n";
    dir.put("cluster.toml", text);
    let check = || dir.run("check @/cluster.toml");
    // All of P2's credentials: the first ones, and their replacement.
    copied(&folder, &dir.join("stolen"));
    dir.run("ca issue @/keys p2").ok();
    let expected = "all certificates of P2 are revoked; revoked.pem lists 2, and belongs beside";
    dir.run("ca revoke @/keys p2").ends(0, &[expected]);
    let why = "keys/p2.pem: the certificate of P2 was revoked";
    gather().ends(1, &["the cluster did not come up: P2 ended", why]);
    check().ends(2, &["cluster.toml:6:15: credentials: ", why]);
    dir.run("ca issue @/keys p1 p2").ok();
    gather().ok();
    let good = "there and good: the coordinator, P0,";
    check().ends(0, &[good, "revoked: 2 by revoked.pem"]);
    // The first certificate stays revoked, also in a later list.
    for file in ["p2.pem", "p2.key"] {
        let stolen = dir.join("stolen").join(file);
        std::fs::copy(stolen, folder.join(file)).expect("it can be");
    }
    gather().ends(1, &[why]);
    dir.run("ca issue @/keys p2").ok();
    dir.run("ca revoke @/keys coordinator")
        .ends(0, &["revoked.pem lists 3"]);
    let why = "keys/coordinator.pem: the certificate of the coordinator was revoked";
    gather().ends(2, &[why]);
    let nobody = "P7 has no certificate that was issued here and is still valid";
    dir.run("ca revoke @/keys p7").ends(2, &[nobody]);
    // A list of another authority.
    let others = dir.join("others");
    dir.run("ca init @/others --pes 3").ok();
    dir.run("ca revoke @/others p1").ok();
    let list = |folder: &Path| folder.join("revoked.pem");
    std::fs::copy(list(&others), list(&folder)).expect("it can be");
    let why = "revoked.pem beside it is no list of certificates that the authority in ca.pem has";
    gather().ends(2, &["keys/coordinator.pem: ", why]);
    dir.put("keys/revoked.pem", "no list");
    let why = "keys/revoked.pem: it is no list of certificates that the authority in ca.pem has";
    gather().ends(2, &[why]);
}

/// Rejected by the coordinator's listener, and by the PE that connects to it.
#[test]
fn joining_with_a_revoked_certificate_is_refused() {
    let cluster = Joining::new(&[0, 0], "60s");
    copied(&cluster.path("ca"), &cluster.path("old"));
    cluster.dir.run("ca revoke @/ca p1").ok();
    let mut running = cluster.guarded("gather --size 1KiB");
    running.wait_for(&["waiting up to"]);
    let refused = cluster.node(1, "--credentials DIR/old").finish();
    let at = format!("P1 may not join at {}", cluster.at());
    refused.ends(1, &[&at, "the certificate of P1 was revoked"]);
    running.wait_for(&["P1 may not join: the certificate of P1 was revoked"]);
    cluster.dir.run("ca issue @/ca p1").ok();
    let nodes = cluster.nodes("");
    running.finish().ok();
    leave(nodes);

    cluster.dir.run("ca revoke @/ca coordinator").ok();
    let mut running = cluster.command("gather --size 1KiB --credentials DIR/old");
    running.wait_for(&["waiting up to"]);
    let refused = cluster.node(2, "--credentials DIR/ca").finish();
    let expected = "the certificate of the coordinator was revoked";
    refused.ends(1, &["P2 may not join", expected]);
    running.wait_for(&["the other end refuses this process: its certificate was revoked"]);
    running.interrupt();
}

/// Rejected on edges between PEs, where the coordinator does not see the certificate.
#[test]
fn neighbours_with_revoked_certificates_are_refused_and_named() {
    // P0 - P1 - P2.
    let cluster = Joining::new(&[0, 1], "60s");
    for (revoked, knows, expected) in [
        ("p1", 2, "P2 h2: cannot reach P1 h1 at "),
        ("p2", 1, "error: P2"),
    ] {
        let (old, new) = (format!("old-{revoked}"), format!("new-{revoked}"));
        copied(&cluster.path("ca"), &cluster.path(&old));
        copied(&cluster.path("ca"), &cluster.path(&new));
        cluster
            .dir
            .run(&format!("ca revoke @/{new} {revoked}"))
            .ok();
        let folder = |pe| if pe == knows { &new } else { &old };
        let mut nodes: Vec<_> = (0..3)
            .map(|pe| cluster.node(pe, &format!("--credentials DIR/{}", folder(pe))))
            .collect();
        let line = format!("gather --size 1KiB --credentials DIR/{old}");
        let failed = cluster.command(&line).finish();
        failed.ends(1, &[expected]);
        let named = format!("the certificate of {} was revoked", revoked.to_uppercase());
        match knows {
            // The PE that calls reports it to the coordinator, ...
            2 => failed.ends(1, &["the certificate of P1 h1 was revoked"]),
            // ... and the PE that is called, by any client, logs it.
            _ => drop(nodes[1].wait_for(&["turned a connection away", &named])),
        }
        for node in nodes {
            node.finish();
        }
    }
}

/// PEs that stay, and those of a daemon, read the list and their credentials again for each
/// command.
#[test]
fn running_pes_get_revocations_with_the_next_command() {
    let cluster = Joining::new(&[0, 0], "1s");
    let mut nodes = cluster.nodes("--stay");
    let patient = "gather --size 1KiB --timeouts connect=1s";
    cluster.guarded(patient).finish().ok();
    cluster.dir.run("ca revoke @/ca p2").ok();
    let failed = cluster.guarded("gather --size 1KiB").finish();
    failed.ends(1, &["P2 h2 has yet to join"]);
    nodes[2].wait_for(&["ca/p2.pem: the certificate of P2 was revoked; trying again"]);
    cluster.dir.run("ca issue @/ca p2").ok();
    eventually("it joins with the new one", || {
        let done = cluster.guarded("gather --size 1KiB").finish();
        (done.code == Some(0)).then_some(())
    });
    dismiss(nodes);

    let security = "[security]\ncredentials = \"ca\"";
    let mut kept = Kept::new(2, security, |pe| match pe {
        0 => String::new(),
        _ => "parent = \"h0\"".to_owned(),
    });
    kept.run("ca init ca --pes 2").ok();
    kept.up("up FILE").ok();
    kept.run("ca revoke ca p1").ok();
    let failed = kept.run("gather --cluster FILE --size 1KiB");
    failed.ends(1, &["P1 h1 has yet to join"]);
    kept.run("ca issue ca p1").ok();
    let finished = kept.run("gather --cluster FILE --size 1KiB");
    finished.ends(0, &["security     TLS 1.3 both ways, certificates in "]);
    kept.run("ca revoke ca coordinator").ok();
    let failed = kept.run("gather --cluster FILE --size 1KiB");
    let expected = "coordinator.pem: the certificate of the coordinator was revoked";
    failed.ends(2, &[expected]);
    kept.run("down FILE").ok();
    until("nothing is left", || kept.processes().is_empty());
}

#[test]
fn nothing_outlives_its_authority() {
    let dir = scratch();
    let made = dir
        .run("ca init @/keys --pes 2 --days 90 --authority-days 1")
        .ok();
    let (_, until) = made
        .stdout
        .split_once("valid until ")
        .expect("it is printed");
    let (until, ends) = until.split_once('\n').expect("it is printed");
    let expected = format!(
        "the authority itself is valid until {until}, and all that it has issued at most as long"
    );
    assert!(ends.starts_with(&expected), "{}", made.stdout);
    let issued = dir.run("ca issue @/keys p1 --days 90").ok();
    issued.prints(&[until]);
    let line = "gather --tree path:2 --size 1KiB --credentials @/keys";
    dir.run(line).ok();
    // The same authority after its end. A certificate that it has issued is valid for a day.
    let key = KeyPair::from_pem(&dir.read("keys/ca.key")).expect("it is one");
    let mut authority = CertificateParams::default();
    let name = "Flitcast cluster authority";
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let hour = Duration::from_secs(3600);
    authority.not_before = (SystemTime::now() - 9 * hour).into();
    authority.not_after = (SystemTime::now() - hour).into();
    let ended = authority.self_signed(&key).expect("it can be");
    dir.put("keys/ca.pem", ended.pem());
    let why = "keys/ca.pem: the certificate expired on 20";
    dir.run(line).ends(2, &[why]);
    dir.run("ca issue @/keys p1").ends(2, &[why]);
    let join = "node --pe 1 --join 127.0.0.1:1 --wait 1s --credentials @/keys";
    dir.run(join).ends(2, &[why]);
}
