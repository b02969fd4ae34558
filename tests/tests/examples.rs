//! The examples of the manual (`coordinator/docs`), as a reader would try them: page by page in an
//! empty folder, one block after the other.
//!
//! The info string of a fence defines the kind of a block:
//!
//! - `sh` is run by bash, with `flitcast` in PATH, and must succeed;
//! - `sh not run: needs ..` is for readers who have what it needs;
//! - `toml cluster.toml` is the content of that file;
//! - `text exact` is the output of the block before it, `text` only an example of it.
//!
//! A picture that a page shows, `pictures/NAME.svg`, is the file `NAME.svg` that its examples
//! write.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::names;
use flitcast_tests::net::own_net;
use flitcast_tests::run::{CACHE_VARIABLE, begin};
use flitcast_tests::{Folder, flitcast, scratch};

/// The table of contents, and a page that only explains terms.
const WITHOUT_EXAMPLES: [&str; 2] = ["SUMMARY.md", "terms.md"];

/// A fenced block: its info string, and its lines.
type Block<'a> = (&'a str, String);

/// The folder and the network in which a page's examples run.
struct Place {
    folder: Folder,
    net: String,
}

fn manual() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../coordinator/docs")
}

/// Returns all fenced blocks of a page.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(kind) = lines.find_map(|line| line.strip_prefix("```")) {
        let within = lines.by_ref().take_while(|line| *line != "```");
        let block: String = within.flat_map(|line| [line, "\n"]).collect();
        blocks.push((kind, block));
    }
    blocks
}

impl Place {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces the addresses of a page, which another test may use.
    fn moved(&self, text: &str) -> String {
        text.replace("127.0.0.", &format!("{}.", self.net))
    }

    /// Runs a block and returns its output; no process may be left.
    fn run(&self, script: &str) -> String {
        let mut bash = Command::new("bash");
        let programs = flitcast().parent().expect("it is in a folder");
        let path = std::env::var("PATH").expect("there is one");
        bash.args(["-euo", "pipefail", "-c", &self.moved(script)])
            .current_dir(self.at("here"))
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("HOME", self.at("home"))
            .env("XDG_RUNTIME_DIR", self.at("run"))
            .env(CACHE_VARIABLE, self.at("cache"));
        let ended = begin(bash).finish();
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(
            ended.code,
            Some(0),
            "this example fails:\n{script}\n{output}"
        );
        ended.stdout.replace(&format!("{}.", self.net), "127.0.0.")
    }
}

fn try_page(name: &str) {
    let page = fs::read_to_string(manual().join(format!("{name}.md")));
    let page = page.expect("it is in the manual");
    let place = Place {
        folder: scratch(),
        net: own_net(),
    };
    for folder in ["here", "home", "run"] {
        fs::create_dir(place.at(folder)).expect("it can be made");
    }
    let mut printed = None;
    let mut ran = 0;
    for (kind, block) in blocks(&page) {
        match kind.split_once(' ').unwrap_or((kind, "")) {
            ("sh", "") => {
                printed = Some(place.run(&block));
                ran += 1;
            }
            ("sh", why) => {
                let needed = why.strip_prefix("not run: needs ");
                assert!(needed.is_some(), "{name}: what does this need?\n{block}");
                printed = None;
            }
            ("toml", file) if !file.is_empty() => {
                let file = place.at("here").join(file);
                fs::write(file, place.moved(&block)).expect("it can be written");
            }
            ("text", "exact") => assert_eq!(printed.as_deref(), Some(&*block), "{name}"),
            ("text", "") => {}
            _ => panic!("{name}: nobody knows what to do with a block of `{kind}`"),
        }
    }
    assert!(ran > 0, "{name} has no example");
    for picture in pictures(&page) {
        let committed = fs::read_to_string(manual().join("pictures").join(picture));
        let drawn = fs::read_to_string(place.at("here").join(picture)).ok();
        let is_it = drawn.is_some() && drawn == committed.ok();
        let fault = "is not what the example draws";
        assert!(is_it, "{name}: pictures/{picture} {fault}");
    }
}

fn pictures(page: &str) -> impl Iterator<Item = &str> {
    let links = page.split("](pictures/").skip(1);
    let pictures = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    // Screenshots differ from run to run.
    pictures.filter(|name| name.ends_with(".svg"))
}

/// A test for each page, so that they run side by side.
macro_rules! pages {
    ($($page:ident)*) => {
        $(#[test]
        fn $page() {
            try_page(stringify!($page));
        })*

        #[test]
        fn every_page_is_tried() {
            let mut pages = BTreeSet::from([$(concat!(stringify!($page), ".md").to_owned()),*]);
            pages.extend(WITHOUT_EXAMPLES.map(str::to_owned));
            let there = names(&manual()).into_iter();
            let there = there.filter(|name| name.ends_with(".md"));
            assert_eq!(pages, there.collect());
        }
    };
}

pages! {
    algorithms all_to_all broadcast cards clusters commands concepts faults files first formats gossip
    launching map measuring packets planning security trees troubleshooting watching
}
