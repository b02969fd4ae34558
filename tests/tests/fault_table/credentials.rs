//! Row 23: processes with a false identity.

use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Register};
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, Secret};
use flitcast_tests::edge::Edge;
use flitcast_tests::impostor::{Stage, spoken};
use flitcast_tests::{Finished, Folder, scratch, start};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};

use crate::hostile::hung_up;
use crate::{alone, served, timed};

/// Credentials for three PEs, some of which a test spoils.
struct Credentials(Folder);

impl Credentials {
    #[track_caller]
    fn new() -> Credentials {
        let dir = scratch();
        dir.run("ca init @/ca --pes 3").ok();
        Credentials(dir)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join("ca").join(name)
    }

    #[track_caller]
    fn gather(&self) -> Finished {
        self.0
            .run("gather --tree path:3 --size 1KiB --credentials @/ca")
    }

    /// Runs a gather with them, which must fail with these words about P2.
    #[track_caller]
    fn refused(&self, case: &str, told: &str) {
        let finished = timed("23", case, Some(2.0), || self.gather());
        finished.fails(1, &["the cluster did not come up: P2 ended", told]);
    }
}

#[track_caller]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("it is there")
}

#[test]
fn row_23_a_certificate_of_another_authority() {
    let _alone = alone();
    let (folder, other) = (Credentials::new(), Credentials::new());
    for name in ["p2.pem", "p2.key"] {
        std::fs::copy(other.file(name), folder.file(name)).expect("it can be");
    }
    let told = "/ca/p2.pem: the certificate was issued by another authority";
    folder.refused("a certificate of another authority", told);
}

/// No neighbour has a certificate that the PE with both authorities trusts.
#[test]
fn row_23_a_process_of_another_authority() {
    let _alone = alone();
    let (folder, other) = (Credentials::new(), Credentials::new());
    let dir = &folder.0;
    // It finds the assigned credentials elsewhere.
    let (from, to) = (folder.0.display(), other.0.display());
    let text = format!("from={from} to={to}\nexec \"${{@/#$from/$to}}\"\n");
    let script = dir.put("elsewhere", text);
    let text = format!(
        "[[pe]]\nname = \"a\"\naddress = \"127.0.0.1\"\n\
         [[pe]]\nname = \"b\"\naddress = \"127.0.0.1\"\nparent = \"a\"\n\
         run = [\"bash\", \"{}\"]\n",
        script.display()
    );
    dir.put("cluster.toml", text);
    let line = "gather --size 1KiB --credentials @/ca --cluster @/cluster.toml";
    let case = "a process of another authority";
    let finished = timed("23", case, Some(2.0), || dir.run(line));
    finished.with_code(1).says(&[
        "the cluster did not come up: P1 b ended with exit status 1",
        "cannot reach the coordinator at 127.0.0.1:",
        "the certificate was issued by another authority",
    ]);
}

#[test]
fn row_23_an_expired_certificate() {
    let _alone = alone();
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let folder = Credentials::new();
    let key = KeyPair::from_pem(&read(&folder.file("ca.key"))).expect("it is one");
    let mut authority = CertificateParams::default();
    let name = "Flitcast cluster authority";
    authority.distinguished_name.push(DnType::CommonName, name);
    let authority = Issuer::new(authority, key);
    let mut params = CertificateParams::new(vec!["p2.flitcast.internal".to_owned()]);
    let params = params.as_mut().expect("it is a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.not_before = (SystemTime::now() - 9 * DAY).into();
    params.not_after = (SystemTime::now() - 2 * DAY).into();
    let key = KeyPair::from_pem(&read(&folder.file("p2.key"))).expect("it is one");
    let expired = params.signed_by(&key, &authority).expect("it can be");
    std::fs::write(folder.file("p2.pem"), expired.pem()).expect("it can be");
    let told = "/ca/p2.pem: the certificate expired on 20";
    folder.refused("an expired certificate", told);
    // With a new certificate, the run succeeds.
    folder.0.run("ca issue @/ca p2").ok();
    folder.gather().ok();
}

#[test]
fn row_23_the_certificate_of_another_pe() {
    let _alone = alone();
    let folder = Credentials::new();
    for end in ["pem", "key"] {
        let [from, to] = ["p1", "p2"].map(|pe| folder.file(&format!("{pe}.{end}")));
        std::fs::copy(from, to).expect("it can be");
    }
    let told = "/ca/p2.pem: the certificate is for P1, not for P2";
    folder.refused("the certificate of another PE", told);
}

#[test]
fn row_23_another_version() {
    let _alone = alone();
    // A later build, and one from before.
    for (min, max) in [(90, 99), (MIN_VERSION - 1, MIN_VERSION - 1)] {
        let stage = Stage::path(3, 1);
        // It checks that no process is left, either.
        let finished = timed("23", "another version", Some(2.0), || {
            let running = start(stage.arguments("gather --size 1KiB"));
            served(running, stage.enter_speaking(min, max))
        });
        let theirs = format!("P1: the peer speaks protocol versions {min} to {max}, ");
        let ours = format!("this side {MIN_VERSION} to {MAX_VERSION}");
        finished.fails(1, &[&theirs, &ours, " at 127.0.7.2:"]);
    }
}

#[test]
fn row_23_two_processes_with_one_id() {
    let _alone = alone();
    let stage = Stage::limited(3, 1, 2, "exec sleep 600");
    timed("23", "two processes with one id", Some(2.0), || {
        let running = start(stage.arguments("gather --size 1KiB"));
        let both = [stage.enter(), stage.enter()];
        let finished = running.finish();
        let [first, second] = both.map(|it| it.address().to_string());
        finished.fails(1, &["P1: registered twice, from ", &first, &second]);
    });
}

/// The client has everything but the secret of the launch: neither the coordinator nor a PE
/// answers.
#[test]
fn row_23_who_does_not_know_the_secret() {
    let _alone = alone();
    let wrong = Secret::new([0; Secret::BYTES]);
    let stage = Stage::limited(3, 1, 2, "exec sleep 600");
    let mut running = start(stage.arguments("gather --size 1KiB"));
    let impostor = stage.enter();
    let register = impostor.register((MIN_VERSION, MAX_VERSION));
    let lying = FromPe::Register(Register {
        pe: PeId(2),
        secret: wrong,
        ..register
    });
    timed("23", "no secret, at the coordinator", Some(2.0), || {
        let mut stranger = TcpStream::connect(impostor.coordinator()).expect("it listens");
        stranger.write_all(&spoken(&lying)).expect("it is open");
        hung_up(&mut stranger);
    });
    let told = "does not know the secret of this launch";
    running.wait_for(&["turned a connection away", told]);
    // The third PE never registers: a PE that registers twice ends the wait.
    let _again = stage.enter();
    running.finish().with_code(1);

    let stage = Stage::path(3, 1);
    let mut running = start(stage.arguments("gather --size 0"));
    let impostor = stage.enter();
    let assignment = impostor.assignment();
    let parent = assignment.parent_listen.as_ref().expect("it has a parent");
    let lying = EdgeFrame::Hello(Hello {
        secret: wrong,
        ..impostor.hello()
    });
    timed("23", "no secret, at a PE", Some(2.0), || {
        let mut edge = Edge::new(TcpStream::connect(parent).expect("it listens"));
        edge.say(&lying);
        hung_up(&mut edge.incoming.stream);
    });
    running.wait_for(&["P0| ", told]);
    running.interrupt();
}
