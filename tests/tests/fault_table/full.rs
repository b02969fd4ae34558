//! Row 13 for everything that is written: on a full disk, the error names the file and no partial
//! file is left.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{fill, names};
use flitcast_tests::kept::Kept;
use flitcast_tests::run::{said, start_with};
use flitcast_tests::{flitcast, scratch};

use crate::disks::SmallDisk;
use crate::{alone, words};

/// The remaining room on a disk.
#[derive(Clone, Copy)]
enum Left {
    /// Any number of names, and this number of pages of content.
    Pages(usize),
    /// Content, and this number of names.
    Names(usize),
}

const PAGE: usize = 4096;

/// Returns a disk with only this room, and the number of bytes that fill it.
#[track_caller]
fn disk_with(left: Left, at: &Path) -> SmallDisk {
    let disk = SmallDisk::mounted(at, "size=256k,nr_inodes=100");
    let fills = at.join("full");
    match left {
        Left::Pages(pages) => {
            let file = File::create(&fills).expect("there is room for a name");
            let mut filled = 0;
            while (&file).write_all(&[7; PAGE]).is_ok() {
                filled += PAGE;
            }
            let filled = filled - pages * PAGE;
            file.set_len(filled as u64).expect("less is possible");
        }
        Left::Names(count) => {
            fs::create_dir(&fills).expect("there is room for a name");
            let mut made = 0;
            while File::create(fills.join(made.to_string())).is_ok() {
                made += 1;
            }
            for name in made - count..made {
                fs::remove_file(fills.join(name.to_string())).expect("it was made");
            }
        }
    }
    disk
}

/// Returns the files below a directory, without the one that fills the disk.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for name in names(directory) {
        let path = directory.join(name);
        match path.symlink_metadata().expect("it is listed").is_dir() {
            _ if path.ends_with("full") => {}
            true => files.extend(files_below(&path)),
            false => files.push(path),
        }
    }
    files
}

struct Case {
    what: &'static str,
    left: Left,
    /// The command; `@` is the disk and `#` the input.
    line: &'static str,
    code: i32,
    says: &'static [&'static str],
    /// Part of the names of files that may be left on the disk.
    leaves: Option<&'static str>,
}

const FULL: &str = "No space left on device";
/// The record of a round that failed.
const RECORD: Option<&str> = Some(".flitcast-round-");

const CASES: &[Case] = &[
    Case {
        what: "a file of a scattered message",
        left: Left::Pages(4),
        line: "scatter --tree path:2 --input #/long --output @/out",
        code: 1,
        says: &["error: P1: ", "cannot write `@/out/p1/long`", FULL],
        leaves: RECORD,
    },
    Case {
        what: "a file of a gathered message",
        left: Left::Pages(4),
        line: "gather --tree path:2 --input #/long --output @/out",
        code: 1,
        says: &["error: P0: ", "cannot write `@/out/p1/long`", FULL],
        leaves: RECORD,
    },
    Case {
        what: "the record of a round that failed",
        left: Left::Pages(0),
        line: "scatter --tree path:2 --input #/long --output @/out",
        code: 1,
        says: &[
            "cannot write `@/out/p1/long`",
            "retry: cannot write @/out/.flitcast-round-",
        ],
        leaves: None,
    },
    Case {
        what: "folders",
        left: Left::Names(20),
        line: "scatter --tree path:2 --input #/folders --output @/out",
        code: 1,
        says: &["error: P1: ", "cannot create `@/out/p1/folder ", FULL],
        leaves: RECORD,
    },
    Case {
        what: "symlinks",
        left: Left::Names(20),
        line: "scatter --tree path:2 --input #/links --output @/out",
        code: 1,
        says: &["error: P1: ", "cannot create `@/out/p1/link ", FULL],
        leaves: RECORD,
    },
    Case {
        what: "the output itself",
        left: Left::Names(1),
        line: "scatter --tree path:2 --input #/links --output @/deep/down/out",
        code: 2,
        says: &["error: ", "@/deep/down/out", FULL],
        leaves: None,
    },
    Case {
        what: "a page",
        left: Left::Pages(0),
        line: "scatter --tree path:2 --size 1KiB --report @/page.html",
        code: 1,
        says: &["error: cannot write @/page.html: ", FULL],
        leaves: None,
    },
    Case {
        what: "a trace",
        left: Left::Pages(0),
        line: "scatter --tree path:2 --size 1KiB --trace @/trace.json",
        code: 1,
        says: &["error: cannot write @/trace.json: ", FULL],
        leaves: None,
    },
    Case {
        what: "a profile",
        left: Left::Pages(0),
        line: "calibrate --tree path:2 --seconds 0.5 --output @/profile.toml",
        code: 1,
        says: &["error: cannot write @/profile.toml: ", FULL],
        leaves: None,
    },
    Case {
        what: "samples, before the first",
        left: Left::Pages(0),
        line: "bench gather --tree path:2 --size 1KiB --rounds 1 --raw @/raw.csv",
        code: 2,
        says: &["error: --raw @/raw.csv: it cannot be made: ", FULL],
        leaves: None,
    },
    Case {
        what: "samples, later",
        left: Left::Pages(1),
        line: "bench gather --tree path:2 --size 1KiB --rounds 60 --raw @/raw.csv",
        code: 1,
        says: &["@/raw.csv: it cannot be written: ", FULL],
        leaves: Some("raw.csv"),
    },
    Case {
        what: "what a command says",
        left: Left::Pages(20),
        line: "map --tree path:2 --input #/links --output @/out -- head -c 1000000 /dev/zero",
        code: 1,
        says: &["P1", FULL],
        leaves: None,
    },
    Case {
        what: "pages of the manual",
        left: Left::Pages(3),
        line: "man @/man",
        code: 2,
        says: &["error: ", "@/man/flitcast", FULL],
        leaves: Some("man/flitcast"),
    },
];

fn inputs(at: &Path) {
    fill(&at.join("long/p1/long"), 100_000);
    for (kind, count) in [("folders", 60), ("links", 60)] {
        let root = at.join(kind).join("p1");
        fs::create_dir_all(&root).expect("a scratch directory");
        for number in 0..count {
            let made = match kind {
                "folders" => fs::create_dir(root.join(format!("folder {number:02}"))),
                _ => symlink("nowhere", root.join(format!("link {number:02}"))),
            };
            made.expect("a scratch directory");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_whatever_is_written_to_a_full_disk() {
    let _alone = alone();
    let dir = scratch();
    inputs(dir.path());
    let input = dir.display().to_string();
    for case in CASES {
        let place = dir.join("disk");
        let _disk = disk_with(case.left, &place);
        let at = |text: &str| {
            text.replace('@', &place.display().to_string())
                .replace('#', &input)
        };
        // The state of running commands is another case.
        let finished = start_with(words(&at(case.line)), &[("XDG_RUNTIME_DIR", dir.path())]);
        let finished = finished.finish().with_code(case.code);
        let what = case.what;
        for part in case.says {
            finished.says(&[&at(part)]);
        }
        for path in files_below(&place) {
            let name = path.display().to_string();
            let may_be = case.leaves.is_some_and(|leaves| name.contains(leaves));
            assert!(may_be, "{what} leaves {name}");
            // Text that is incomplete has whole lines only.
            let text = fs::read_to_string(&path).expect("it is text");
            let end = text.lines().last();
            assert!(text.ends_with('\n'), "{what}: {name} ends in {end:?}");
        }
    }
}

/// A command runs even if it cannot publish its state.
#[test]
#[ignore = "needs root"]
fn row_13_a_command_whose_picture_has_no_room_runs_all_the_same() {
    let _alone = alone();
    let dir = scratch();
    let place = dir.join("disk");
    let _disk = disk_with(Left::Pages(0), &place);
    // A flit a second, so that it lasts until the first picture.
    let line = "scatter --tree path:2 --size 128KiB --link rate=1mbit -vv";
    let finished = start_with(words(line), &[("XDG_RUNTIME_DIR", &place)])
        .finish()
        .ok();
    let picture = place.join("flitcast").display().to_string();
    finished.says(&["nobody can watch this", &picture, FULL]);
    assert_eq!(files_below(&place), Vec::<PathBuf>::new());
}

/// The state of a running cluster.
#[test]
#[ignore = "needs root"]
fn row_13_a_cluster_whose_state_has_no_room_is_not_up() {
    let _alone = alone();
    for left in [Left::Pages(0), Left::Names(1)] {
        let mut kept = Kept::tree();
        let place = kept.path("run");
        let _disk = disk_with(left, &place);
        let finished = kept.up("up FILE");
        assert_ne!(finished.code, Some(0), "{}", finished.stdout);
        finished.says(&["error: ", &place.display().to_string(), FULL]);
        assert_eq!(files_below(&place), Vec::<PathBuf>::new());
        let finished = kept.run("status FILE");
        assert_ne!(finished.code, Some(0), "{}", finished.stdout);
    }
}

/// Standard output to a full disk or device.
#[test]
fn row_13_results_that_cannot_be_printed() {
    let _alone = alone();
    for line in [
        "scatter --tree path:2 --size 1 --format json",
        "bench gather --tree path:2 --size 1KiB --rounds 1 --format csv",
        "plan gather --tree path:3 --lengths 1,1",
        "compare gather --tree path:3 --lengths 1,1",
        "tree --tree path:3",
    ] {
        let full = File::options().write(true).open("/dev/full");
        let mut command = Command::new(flitcast());
        command
            .args(words(line))
            .stdout(full.expect("Linux has it"));
        said(&mut command).fails(1, &["cannot print the result", FULL]);
    }
}
