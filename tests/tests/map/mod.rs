//! `flitcast map`: it scatters shards, runs a command on each, and gathers the output; with real
//! processes, byte for byte.

mod elsewhere;
mod ends;
mod failures;
mod joblog;
mod moving;
mod queue;
mod results;
mod second;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{names, set_mode};
use flitcast_tests::{Finished, Folder, Running, flitcast, scratch, start};

/// A folder with shards, and a place for results.
struct Place {
    dir: Folder,
}

impl Place {
    /// Creates a folder with these shards, each a single file.
    #[track_caller]
    fn new(shards: &[(u32, &str)]) -> Place {
        let place = Place { dir: scratch() };
        fs::create_dir(place.input()).expect("it can be made");
        for (pe, text) in shards {
            place.put(&format!("in put/p{pe}"), text);
        }
        place
    }

    /// Creates a folder with shards of these names, each a file with its name as content.
    #[track_caller]
    fn named(shards: &[&str]) -> Place {
        let place = Place::new(&[]);
        for shard in shards {
            place.put(&format!("in put/{shard}"), shard);
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn input(&self) -> PathBuf {
        self.path("in put")
    }

    fn output(&self) -> PathBuf {
        self.path("results")
    }

    #[track_caller]
    fn put(&self, name: &str, text: &str) {
        self.dir.put(name, text);
    }

    /// Starts `map` with these options, on a star of four PEs by default. In options and in the command, `@/` is
    /// the folder.
    #[track_caller]
    fn start(&self, options: &str, command: &[&str]) -> Running {
        let has_site = options.contains("--tree") || options.contains("--cluster");
        let tree = if has_site { "" } else { "--tree star:4" };
        let mut words = self.dir.words(&format!(
            "map {tree} {options} --input --output @/results --"
        ));
        let at = words.len() - 3;
        words.insert(at, self.dir.shown("in put"));
        let folder = self.dir.shown("");
        words.extend(command.iter().map(|word| word.replace("@/", &folder)));
        start(words)
    }

    #[track_caller]
    fn run(&self, options: &str, command: &[&str]) -> Finished {
        self.start(options, command).finish()
    }

    /// Runs `map` with a script for a shell.
    #[track_caller]
    fn shell(&self, options: &str, script: &str) -> Finished {
        self.run(options, &["sh", "-c", script])
    }

    /// Returns the content of a file below the results.
    #[track_caller]
    fn result(&self, name: &str) -> String {
        self.dir.read(&format!("results/{name}"))
    }

    /// Checks that these PEs have results, and that only these files are left beside shards and
    /// results.
    #[track_caller]
    fn assert_results(&self, pes: &[&str], beside: &[&str]) {
        assert_eq!(names(&self.output()), pes);
        self.assert_beside(&[&["in put", "results"], beside].concat());
    }

    /// Checks the entries of the folder.
    #[track_caller]
    fn assert_beside(&self, beside: &[&str]) {
        let mut expected: Vec<&str> = beside.to_vec();
        expected.sort_unstable();
        assert_eq!(names(self.dir.path()), expected);
    }

    /// Returns whether a PE's command has made the file `up`.
    fn is_up(&self, pe: u32) -> bool {
        let up = format!("tasks/p{pe}/directory/up");
        self.work().is_some_and(|work| work.join(up).exists())
    }

    /// Returns the working folder, once it exists.
    fn work(&self) -> Option<PathBuf> {
        let mut names = names(&self.dir).into_iter();
        let work = names.find(|name| name.starts_with(".flitcast-map-"))?;
        Some(self.path(&work))
    }
}

fn mode(path: &Path) -> u32 {
    let found = fs::metadata(path).expect("it is there");
    found.permissions().mode() & 0o7777
}

/// Returns `map` as a user other than root, who is subject to permissions.
fn map_without_root(place: &Place, script: &str) -> Command {
    set_mode(&place.path(""), 0o777);
    let is_root = rustix::process::geteuid().is_root();
    let mut map = Command::new(if is_root { "setpriv" } else { "env" });
    if is_root {
        map.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    map.arg(flitcast()).args(["map", "--tree", "star:4"]);
    map.arg("--input").arg(place.input());
    map.arg("--output").arg(place.output());
    map.args(["--", "sh", "-c", script]);
    map
}
