//! `flitcast completions` and `flitcast man`: every command is in them.

use flitcast_tests::files::names;
use flitcast_tests::{run, scratch};

const COMMANDS: &str = "bench broadcast ca calibrate check compare completions down exchange gather \
    gossip health man map node plan resume scatter status tree up watch";

fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.split(' ')
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).ok().stdout;
        for command in commands() {
            assert!(script.contains(command), "{shell}: {command}");
        }
        for option in ["spanning", "credentials", "format"] {
            assert!(script.contains(option), "{shell}: {option}");
        }
    }
    run("completions cmd".split(' ')).with_code(2);
}

#[test]
fn every_command_has_a_page() {
    let dir = scratch();
    dir.run("man @/new/man1").ok();
    let mut pages: Vec<String> = commands()
        .map(|command| format!("flitcast-{command}.1"))
        .collect();
    let operations = "broadcast exchange gather gossip scatter";
    for (command, below) in [
        ("bench", operations),
        ("ca", "init issue revoke"),
        ("compare", operations),
        ("plan", operations),
    ] {
        let below = below.split(' ');
        pages.extend(below.map(|below| format!("flitcast-{command}-{below}.1")));
    }
    pages.push("flitcast.1".to_owned());
    pages.sort();
    assert_eq!(names(&dir.join("new/man1")), pages);
    let read = |page: &str| dir.read(&format!("new/man1/{page}"));
    for page in &pages {
        let text = read(page);
        let title = page.trim_end_matches(".1");
        assert!(text.contains(&format!(".TH {title} 1")), "{page}");
        let status = ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n";
        assert!(text.contains(status), "{page}");
    }
    let check = read("flitcast-check.1");
    let examples = ".SH EXAMPLES\n.nf\nflitcast check cluster.toml\n";
    assert!(check.contains(examples), "{check}");
    let full = run("man /proc/none".split(' ')).with_code(2);
    let stderr = &full.stderr;
    assert!(stderr.starts_with("error: /proc/none: "), "{stderr}");
}

#[test]
fn the_help_ends_with_the_exit_status() {
    let help = run("--help".split(' ')).ok().stdout;
    let (_, table) = help.split_once("Exit status:\n").expect("it is there");
    let codes = table
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let expected = ["0", "1", "2", "130", "129", "131", "143"];
    assert_eq!(codes.collect::<Vec<_>>(), expected);
}
