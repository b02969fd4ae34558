//! Output on terminals of 60, 80 and 120 columns, captured by tmux: no value is cut, and less important
//! columns are left out.

use std::fs;
use std::path::Path;
use std::process::Command;

use flitcast_tests::folder::Folder;
use flitcast_tests::processes::eventually;
use flitcast_tests::{flitcast, rows, scratch};

/// The last line of a terminal whose command has ended.
const OVER: &str = "over now";

/// A terminal of tmux, whose server ends with this.
struct Terminal {
    socket: String,
    dir: Folder,
}

impl Terminal {
    /// Opens a terminal of this width.
    fn open(columns: u32) -> Terminal {
        let dir = scratch();
        let terminal = Terminal {
            socket: dir.shown("tmux"),
            dir,
        };
        let size = format!("-x {columns} -y 50");
        terminal.tmux(&format!("-f /dev/null new-session -d {size} sh"));
        terminal
    }

    /// Runs a command of tmux and returns its output.
    fn tmux(&self, words: &str) -> String {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket]).args(words.split(' '));
        // Commands of other tests are not watched here.
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        let done = command.current_dir(self.dir.path()).output();
        let done = done.expect("tmux runs");
        assert!(done.status.success(), "tmux {words}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn line(&self, line: &str) {
        let words = ["-S", &self.socket, "send-keys", "-l", line];
        let done = Command::new("tmux").args(words).status();
        assert!(done.expect("tmux runs").success(), "{line}");
        self.tmux("send-keys Enter");
    }

    /// Runs a command to its end and returns the lines that the terminal then has.
    fn run(&self, line: &str) -> Vec<String> {
        // The end of an earlier command would be taken for that of this one.
        self.tmux("send-keys -R");
        self.line(&format!(
            "clear; {} {line}; echo over' now'",
            flitcast().display()
        ));
        eventually("the command has ended", || {
            let mut lines = self.lines();
            let end = lines.iter().position(|line| line == OVER)?;
            lines.truncate(end);
            Some(lines)
        })
    }

    fn lines(&self) -> Vec<String> {
        let shown = self.tmux("capture-pane -p -J");
        shown.lines().map(|it| it.trim_end().to_owned()).collect()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let server = ["-S", &self.socket, "kill-server"];
        let _ = Command::new("tmux").args(server).status();
    }
}

/// Checks that no line is wider than the terminal, and that the rows below the first line of headings have as
/// many cells as there are headings, which are some of these, in their order. Returns the headings.
fn check_table(lines: &[String], columns: u32, all: &str) -> Vec<String> {
    let all: Vec<&str> = all.split(", ").collect();
    let shown = lines.join("\n");
    for line in lines {
        assert!(
            line.chars().count() <= columns as usize,
            "{columns}: {shown}"
        );
    }
    let cells = |line: &str| {
        // The branches of a tree and the mark of the best row are not cells.
        let line = line.trim_start_matches(['│', '├', '└', '─', ' ', '*']);
        let parts = line.split("  ").map(str::trim);
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    let are_headings = |line: &String| {
        let mut cells = cells(line).into_iter().peekable();
        cells.peek().is_some() && cells.all(|cell| all.contains(&&*cell))
    };
    let head = lines.iter().position(are_headings);
    let head = head.unwrap_or_else(|| panic!("no table: {shown}"));
    let headings = cells(&lines[head]);
    let mut rest = all.iter();
    for heading in &headings {
        assert!(
            rest.any(|it| it == heading),
            "{columns}, {heading}: {shown}"
        );
    }
    let rows = lines[head + 1..].iter().take_while(|line| !line.is_empty());
    for row in rows {
        assert_eq!(cells(row).len(), headings.len(), "{columns}: {shown}");
    }
    headings
}

#[test]
#[ignore = "needs tmux"]
fn a_report_leaves_columns_out_before_it_breaks_a_line() {
    const ALL: &str = "PE, parent, depth, bytes, predicted, measured, min, max, peak memory";
    for columns in [60, 80, 120] {
        let terminal = Terminal::open(columns);
        let lines = terminal.run("scatter --tree kary:2:4 --size 100KiB --rounds 3");
        let headings = check_table(&lines, columns, ALL);
        assert!(headings.iter().any(|it| it == "measured"), "{lines:?}");
        let are_all = headings.join(", ") == ALL;
        assert!(columns == 80 || are_all == (columns == 120), "{lines:?}");
        let verified = "  verified     every byte and digest matched";
        assert!(lines.iter().any(|line| line == verified), "{lines:?}");
    }
}

/// The commands with other tables, and all headings of these.
const TABLES: &str = "
    bench gather --tree kary:2:4 --size 100KiB --rounds 1 --warm-up 0 \
        | algorithm, predicted, median, min, p95, spread, error, goodput, collisions, slip, max slip
    compare gather --network mesh:4x4 --lengths uniform:0..64:7 \
        | tree, algorithm, steps, over bound, control, largest buffer
    compare broadcast --network complete:8 --size 10 \
        | tree, algorithm, steps, over bound, most kept
    compare broadcast -n 3 --size 10KiB | algorithm, tree, flits of, predicted, steps, to the best
    map --input in --output out --force --jobs 1 -- wc -c | shard, PE, bytes, exit, time, results
    calibrate --tree star:3 --seconds 0.5 \
        | edge, latency, within, rate, within, a flit, within, burst, within
";

#[test]
#[ignore = "needs tmux"]
fn other_tables_leave_columns_out_as_well() {
    let cluster = "pe = [{ name = 'alpha', address = '127.0.0.1' },
        { name = 'beta', address = '127.0.0.2', parent = 'alpha' }]\n";
    const STATUS: &str = "PE, address, process, for, starts, lag, memory";
    for columns in [60, 80, 120] {
        let terminal = Terminal::open(columns);
        terminal.dir.put("c.toml", cluster);
        for shard in ["in/a", "in/b with a name", "in/c"] {
            terminal.dir.put(shard, shard);
        }
        for [line, all] in rows(TABLES) {
            let lines = terminal.run(line);
            let headings = check_table(&lines, columns, all);
            assert!(headings.len() > 1, "{line}: {lines:?}");
            let is_wide = line.starts_with("bench") || line.starts_with("calibrate");
            assert!(
                columns < 120 || is_wide || headings.join(", ") == all,
                "{line}: {lines:?}"
            );
        }
        terminal.run("up c.toml");
        let mut lines = terminal.run("status c.toml");
        terminal.run("down c.toml");
        // Folders before the table may be longer.
        lines.retain(|line| line.starts_with("  PE") || line.contains("  P"));
        let headings = check_table(&lines, columns, STATUS);
        assert_eq!(headings.join(", ") == STATUS, columns > 60, "{lines:?}");
    }
}

#[test]
#[ignore = "needs tmux"]
fn a_running_round_fits_into_the_terminal() {
    const ALL: &str = "PE, host, state, message, moved, down, up, buffered, memory";
    for columns in [60, 80, 120] {
        let terminal = Terminal::open(columns);
        let round = "gather --tree kary:2:4 --size 20MiB --link rate=40mbit";
        terminal.line(&format!("{} {round} 2> /dev/null &", flitcast().display()));
        terminal.line(&format!("clear; {} watch --wait 30s", flitcast().display()));
        let lines = eventually("the round is shown", || {
            let lines = terminal.lines();
            let begin = lines
                .iter()
                .position(|line| line.starts_with("gather on kary"))?;
            let is_round = lines[begin..]
                .iter()
                .any(|line| line.starts_with("round 1 of 1 "));
            is_round.then(|| lines[begin..].to_vec())
        });
        let headings = check_table(&lines, columns, ALL);
        let are_all = headings.join(", ") == ALL;
        assert!(columns == 80 || are_all == (columns == 120), "{lines:?}");
        terminal.tmux("send-keys C-c");
    }
}

#[test]
#[ignore = "needs tmux"]
fn progress_has_a_percentage_and_the_time_that_is_left() {
    for columns in [60, 80, 120] {
        let terminal = Terminal::open(columns);
        let round = "scatter --tree star:3 --size 3MiB --link rate=40mbit";
        terminal.line(&format!("clear; {} {round}", flitcast().display()));
        let line = eventually("bytes move", || {
            let mut lines = terminal.lines().into_iter();
            lines.find(|line| line.starts_with("scatter [") && line.contains(" left"))
        });
        assert!(
            line.contains(" % ") && line.len() < columns as usize,
            "{line}"
        );
        let is_compared = line.contains(" in all, predicted ");
        assert!(columns == 80 || is_compared == (columns == 120), "{line}");
    }
}

/// Commands whose output is the same at each run.
const SAME_EACH_TIME: [&str; 8] = [
    "plan scatter --tree kary:2:7 --lengths equal:2",
    "compare gather --network mesh:4x4 --lengths uniform:0..64:7",
    "compare exchange --network complete:8 --lengths each:2",
    "tree --network torus:3x3",
    "plan scatter --tree kary:2:5 --lengths equal:1 -v",
    "scatter --tree kary:2:7 --input nowhere --output out",
    "gather --tree nope:3 --size 1x",
    "watch",
];

/// Reports of rounds whose links take longer than the processes.
const WITH_TIMES: [&str; 6] = [
    "scatter -n 4 --size 100KiB --link latency=9ms",
    "gather --tree kary:2:5 --size 100KiB --link latency=9ms",
    "gossip --network ring:4 --size 100KiB --link latency=9ms",
    "exchange --network complete:4 --size 10KiB --link latency=9ms -q",
    "broadcast --tree star:20 --size 1KiB --link latency=9ms --dry-run",
    "scatter --tree star:3 --size 100KiB --flit-size 64KiB --link latency=9ms -v 2> /dev/null",
];

/// Returns what is the same in each report of a command: its first sentence and its table without the values,
/// and the labels of the lines below.
fn without_values(report: &[String]) -> Vec<String> {
    let is_value = |word: &str| word.starts_with(|it: char| it.is_ascii_digit());
    let shown = |line: &str| {
        let words = line.split_whitespace();
        let words = words.map(|word| if is_value(word) { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    let mut parts = report.split(|line| line.is_empty());
    let [first, table, rest] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let first = [shown(&first.join(" "))].into_iter();
    let labels = rest
        .iter()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  "));
    let labels = labels.map(|(label, _)| label.to_owned());
    // Packets may be lost in any round.
    let labels = labels.filter(|label| !label.is_empty() && label != "resent");
    let rows = table.iter().map(|line| shown(line));
    first.chain(rows).chain(labels).collect()
}

/// Shows a map of which one shard is done and two run, and ends it.
fn watched_map(terminal: &Terminal) -> Vec<String> {
    for shard in ["in/a", "in/b", "in/c", "in/d"] {
        terminal.dir.put(shard, "x");
    }
    let script = "[ $FLITCAST_SHARD = b ] || sleep 1000";
    terminal.dir.put("script", script);
    let map = "map --tree star:3 --input in --output out --speculate never -- sh $PWD/script";
    terminal.line(&format!("{} {map} 2> /dev/null &", flitcast().display()));
    let shown = eventually("b is done, and others run", || {
        let shown = terminal.run("watch --once");
        let text = shown.join("\n");
        let is_shown = ["\n1 of 4 shards", " running a ", " running d "];
        is_shown.iter().all(|it| text.contains(it)).then_some(shown)
    });
    terminal.run("--version; kill $!; wait");
    shown
}

/// `FLITCAST_PINS=write` writes the files.
#[test]
#[ignore = "needs tmux"]
fn captures_are_as_in_the_golden_files() {
    for columns in [60, 80, 120] {
        let terminal = Terminal::open(columns);
        let same = SAME_EACH_TIME.map(|line| (line, terminal.run(line)));
        let timed = WITH_TIMES.map(|line| (line, without_values(&terminal.run(line))));
        let watched = without_values(&watched_map(&terminal));
        let captures = same
            .into_iter()
            .chain(timed)
            .chain([("watch --once", watched)])
            .map(|(line, shown)| format!("$ flitcast {line}\n{}\n", shown.join("\n").trim_end()));
        let captures: Vec<String> = captures.collect();
        let name = format!("{columns}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/terminal");
        let captures = captures.join("\n");
        if std::env::var_os("FLITCAST_PINS").is_some() {
            fs::create_dir_all(&path).expect("it can be made");
            fs::write(path.join(&name), &captures).expect("it can be written");
        }
        let golden = fs::read_to_string(path.join(&name)).expect("it is there");
        assert_eq!(captures, golden, "{name}");
    }
}
