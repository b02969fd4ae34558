//! Files of clusters whose processes ssh or others start.

use super::*;
use crate::site::placement::{Place, SlurmStep, Ssh, Starter};

#[test]
fn hosts_that_ssh_reaches() {
    let pes = "[[pe]]\nname = 'a'\naddress = '10.0.0.1'\n\
               [[pe]]\nname = 'b c'\naddress = '10.0.0.2'\nssh = 'me@b'\nparent = 'a'\n";
    let head = "coordinator = '10.0.0.9'\nlaunch.kind = 'ssh'\n";
    let placement = good(&format!("{head}{pes}")).placement;
    let reached = placement.places.iter().map(Place::destination);
    assert_eq!(reached.collect::<Vec<_>>(), ["a", "me@b"]);
    assert_eq!(placement.launch, Launch::Ssh(Ssh::default()));

    let head = "coordinator = '10.0.0.9'\n[launch]\nkind = 'ssh'\nuser = 'me'\nport = 2222\n\
                config = 'c'\ndirectory = '/opt/f'\nenvironment = ['LANG', '_x1']\nbinary = 'b'\n";
    let cluster = good(&format!("{head}{pes}"));
    let Launch::Ssh(ssh) = cluster.placement.launch else {
        panic!("it is ssh");
    };
    assert_eq!((ssh.user.as_deref(), ssh.port), (Some("me"), Some(2222)));
    assert_eq!(ssh.directory.as_deref(), Some("/opt/f"));
    assert_eq!(ssh.environment, ["LANG", "_x1"]);
    let files = cluster.settings.files.iter();
    let files = files.map(|named| (named.key, named.path.to_str()));
    let expected = [("binary", Some("b")), ("config", Some("c"))];
    assert_eq!(files.collect::<Vec<_>>(), expected);
}

#[test]
fn files_that_ssh_cannot_use_are_refused() {
    let pe = "[[pe]]\nname = 'a'\naddress = '10.0.0.1'\n";
    refused(
        &format!(
            "coordinator = '10.0.0.9:7'\n[launch]\nkind = 'ssh'\nuser = '-l'\nport = 0\nconfig = ''\n\
             directory = 'here'\nenvironment = ['A=B']\nbinary = 7\n{pe}ssh = '-oProxyCommand=x'"
        ),
        &[
            "t:1:15: the coordinator has a port, 7, and nobody joins: leave it out, or say kind = \"join\" in [launch]",
            "t:4:8: user must be the name of a user, in quotes, not `'-l'`",
            "t:5:8: port must be a number from 1 to 65535, not `0`",
            "t:6:10: config must be a file, in quotes, not `''`",
            "t:7:13: directory must be a path on the hosts that begins with / or ~/, in quotes, not `'here'`",
            "t:8:15: environment must be a list of variables' names, like [\"LANG\"], not `['A=B']`",
            "t:9:10: binary must be a file, in quotes, not `7`",
            "t:13:7: ssh must be what ssh is given to reach its host, like \"me@a.example\", not `'-oProxyCommand=x'`",
        ],
    );
    refused(
        &format!("[launch]\nkind = 'ssh'\n{}", pe.replace("'a'", "'a b'")),
        &[
            "t:2:8: the coordinator listens on 127.0.0.1, where a b at 10.0.0.1 does not reach it: say coordinator = \"ADDRESS\", where the hosts reach this machine",
            "t:3:1: ssh cannot be given `a b`: say how it reaches the host, like ssh = \"me@a.example\"",
        ],
    );
    refused(
        &format!("[launch]\nuser = 'me'\n{pe}ssh = 'me@a'"),
        &[
            "t:2:8: user is for hosts that ssh reaches: leave it out, or say kind = \"ssh\" in [launch]",
            "t:6:7: ssh is for hosts that ssh reaches: leave it out, or say kind = \"ssh\" in [launch]",
        ],
    );
}

#[test]
fn starters_of_slurm_and_compose() {
    let slurm = "coordinator = '0.0.0.0:7117'\ntree = 'star:5'\n[launch]\nkind = 'slurm'\n";
    let starter = |text: &str| good(text).placement.starter().cloned();
    let step = |options: &[&str]| {
        let options = options.iter().map(ToString::to_string).collect();
        Some(Starter::Slurm(SlurmStep { options }))
    };
    assert_eq!(starter(slurm), step(&[]));
    let more = format!("{slurm}options = ['--partition=short', '-v']\n");
    assert_eq!(starter(&more), step(&["--partition=short", "-v"]));

    let compose = "coordinator = '10.0.0.9:7117'\n[launch]\nkind = 'compose'\nfile = 'c.yaml'\n";
    let cluster = good(&format!("{compose}{JOINING}"));
    let Some(Starter::Compose(services)) = cluster.placement.starter() else {
        panic!("it is compose");
    };
    assert_eq!(services.file.to_str(), Some("c.yaml"));
    assert_eq!(cluster.settings.files[0].key, "file");
    assert!(cluster.placement.is_joined() && cluster.placement.is_elsewhere());
}

#[test]
fn missing_and_useless_keys_of_starters_are_reported() {
    let launch = "[launch]\nkind = 'slurm'\nfile = 'c'\nuser = 'me'";
    refused(
        &format!("coordinator = '10.0.0.9'\n{launch}\n{JOINING}run = ['nice']\n"),
        &[
            "t:1:15: kind = \"slurm\" needs a port to listen on: coordinator = \"ADDRESS:PORT\", like \"198.18.0.1:7117\"",
            "t:4:8: file is for kind = \"compose\" in [launch]: leave it out, or say that",
            "t:5:8: user is for hosts that ssh reaches: leave it out, or say kind = \"ssh\" in [launch]",
            "t:9:7: a has a run, and with kind = \"slurm\" others start it: leave it out",
        ],
    );
    refused_each(
        JOINING,
        r#"
        coordinator = '10.0.0.9:1'\n[launch]\nkind = 'compose' | t:3:8: kind = "compose" needs the compose file: file = "compose.yaml"
        [launch]\noptions = ['-v'] | t:2:11: options is for kind = "slurm" or "compose" in [launch]: leave it out, or say that
        "#,
    );
}
