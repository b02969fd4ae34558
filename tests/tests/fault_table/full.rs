//! Row 13 for everything that is written: on a full disk, the error names the file and no partial
//! file is left.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use flitcast_tests::files::{fill_with_short, names};
use flitcast_tests::kept::Kept;
use flitcast_tests::run::{run_program, start_with};
use flitcast_tests::{flitcast, rows, scratch};

use crate::disks::SmallDisk;
use crate::{alone, words};

const PAGE: usize = 4096;

/// Returns a disk with room for `4 pages` of content and any number of names, or for `4 names` and any
/// content.
fn disk_with(room: &str, at: &Path) -> SmallDisk {
    let disk = SmallDisk::mounted(at, "size=256k,nr_inodes=100");
    let fills = at.join("full");
    let (count, what) = room.split_once(' ').expect("a number of what");
    let count: usize = count.parse().expect("a number");
    if what == "pages" {
        let file = File::create(&fills).expect("there is room for a name");
        let mut filled = 0;
        while (&file).write_all(&[7; PAGE]).is_ok() {
            filled += PAGE;
        }
        let filled = filled - count * PAGE;
        file.set_len(filled as u64).expect("less is possible");
    } else {
        fs::create_dir(&fills).expect("there is room for a name");
        let mut made = 0;
        while File::create(fills.join(made.to_string())).is_ok() {
            made += 1;
        }
        for name in made - count..made {
            fs::remove_file(fills.join(name.to_string())).expect("it was made");
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

const FULL: &str = "No space left on device";

/// The room on a disk, the exit status of a command, the command, its errors apart from [`FULL`] with
/// `..` between them, and a part of the names of files that may be left: `.flitcast-round-` is the record
/// of a round that failed. `@` is the disk, and `#` the input.
const CASES: &str = "
    4 pages  | 1 | scatter --tree path:2 --input #/short --output @/out   | error: P1: .. cannot write `@/out/p1/short | .flitcast-round-
    4 pages  | 1 | gather --tree path:2 --input #/short --output @/out    | error: P0: .. cannot write `@/out/p1/short | .flitcast-round-
    20 names | 1 | scatter --tree path:2 --input #/folders --output @/out | error: P1: .. cannot create `@/out/p1/folder  | .flitcast-round-
    20 names | 1 | scatter --tree path:2 --input #/links --output @/out   | error: P1: .. cannot create `@/out/p1/link  | .flitcast-round-
    1 names  | 2 | scatter --tree path:2 --input #/links --output @/deep/down/out | error: .. @/deep/down/out | -
    0 pages  | 1 | scatter --tree path:2 --size 1KiB --report @/page.html | error: cannot write @/page.html: | -
    0 pages  | 1 | scatter --tree path:2 --size 1KiB --trace @/trace.json | error: cannot write @/trace.json: | -
    0 pages  | 1 | calibrate --tree path:2 --seconds 0.5 --output @/profile.toml | error: cannot write @/profile.toml: | -
    # Samples: before the first, and later.
    0 pages  | 2 | bench gather --tree path:2 --size 1KiB --rounds 1 --raw @/raw.csv  | error: --raw @/raw.csv: it cannot be made: | -
    1 pages  | 1 | bench gather --tree path:2 --size 1KiB --rounds 60 --raw @/raw.csv | @/raw.csv: it cannot be written: | raw.csv
    20 pages | 1 | map --tree path:2 --input #/links --output @/out -- head -c 1000000 /dev/zero | P1 | -
    3 pages  | 2 | man @/man | error: .. @/man/flitcast | man/flitcast
";

fn inputs(at: &Path) {
    fill_with_short(&at.join("short/p1"), 60);
    let [folders, links] = ["folders", "links"].map(|kind| at.join(kind).join("p1"));
    let make = |number| {
        fs::create_dir_all(folders.join(format!("folder {number:02}")))?;
        fs::create_dir_all(&links)?;
        symlink("nowhere", links.join(format!("link {number:02}")))
    };
    (0..60).try_for_each(make).expect("a scratch directory");
}

#[test]
#[ignore = "needs root"]
fn row_13_each_output_on_a_full_disk() {
    let _alone = alone();
    let dir = scratch();
    inputs(dir.path());
    let input = dir.display().to_string();
    for [room, code, line, expected, leaves] in rows(CASES) {
        let place = dir.join("disk");
        let _disk = disk_with(room, &place);
        let disk = place.display().to_string();
        let at = |text: &str| text.replace('@', &disk).replace('#', &input);
        // The state of running commands is another case.
        let finished = start_with(words(&at(line)), &[("XDG_RUNTIME_DIR", dir.path())]);
        let finished = finished.finish();
        finished.fails(code.parse().expect("a number"), &[FULL]);
        for part in expected.split(" .. ") {
            finished.stderr_has(&[&at(part)]);
        }
        for path in files_below(&place) {
            let name = path.display().to_string();
            let may_be = leaves != "-" && name.contains(leaves);
            assert!(may_be, "{line} leaves {name}");
            // Text that is incomplete has whole lines only.
            let text = fs::read_to_string(&path).expect("it is text");
            let end = text.lines().last();
            assert!(text.ends_with('\n'), "{line}: {name} ends in {end:?}");
        }
    }
}

#[test]
#[ignore = "needs root"]
fn row_13_a_command_whose_picture_has_no_room_runs_all_the_same() {
    let _alone = alone();
    let dir = scratch();
    let place = dir.join("disk");
    let _disk = disk_with("0 pages", &place);
    // A flit a second, so that it lasts until the first picture.
    let line = "scatter --tree path:2 --size 128KiB --link rate=1mbit -vv";
    let finished = start_with(words(line), &[("XDG_RUNTIME_DIR", &place)])
        .finish()
        .ok();
    let picture = place.join("flitcast").display().to_string();
    finished.stderr_has(&["nobody can watch this", &picture, FULL]);
    assert_eq!(files_below(&place), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "needs root"]
fn row_13_a_cluster_whose_state_has_no_room_is_not_up() {
    let _alone = alone();
    for room in ["0 pages", "1 names"] {
        let mut kept = Kept::tree();
        let place = kept.path("run");
        let _disk = disk_with(room, &place);
        let finished = kept.up("up FILE");
        assert_ne!(finished.code, Some(0), "{}", finished.stdout);
        finished.stderr_has(&["error: ", &place.display().to_string(), FULL]);
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
        let full = full.expect("Linux has it");
        let mut command = Command::new(flitcast());
        let failed = run_program(command.args(words(line)).stdout(full));
        failed.fails(1, &["cannot print the result", FULL]);
    }
}
