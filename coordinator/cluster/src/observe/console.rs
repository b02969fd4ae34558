//! Output on the user's terminal besides the result: lines from the PEs, and a progress bar if
//! stderr is a terminal.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flitcast_proto::{PeId, RoundId};

use crate::observe::phase::Phase;
use crate::system::terminal;
use crate::text::screen::{self, Detail};
use crate::text::stderr::{self, LogLine};
use crate::text::units::{Bytes, Nanos, Rate};

/// Estimates the remaining time of a round in nanoseconds, given the bytes moved so far and in
/// total. The weight moves from the predicted duration to the measured rate as the round proceeds.
pub fn left_ns(moved: u64, total: u64, elapsed: Duration, predicted_ns: u64) -> u64 {
    let elapsed_ns = elapsed.as_nanos() as f64;
    let (moved, total) = (moved as f64, total.max(1) as f64);
    let by_rate = elapsed_ns * (total / moved.max(1.0));
    let share = (moved / total).clamp(0.0, 1.0);
    let whole = share * by_rate + (1.0 - share) * predicted_ns as f64;
    (whole - elapsed_ns).max(0.0) as u64
}

/// A shared handle for output on stderr.
#[derive(Clone, Debug)]
pub struct Console {
    bar: Arc<Mutex<Bar>>,
}

impl Console {
    /// Creates a console; it shows a progress bar if stderr is a terminal.
    pub fn of_stderr() -> Console {
        let bar = Bar {
            is_shown: !stderr::is_json()
                && screen::detail() != Detail::Quiet
                && terminal::size(io::stderr()).is_some(),
            ..Bar::default()
        };
        let bar = Arc::new(Mutex::new(bar));
        Console { bar }
    }

    fn bar(&self) -> MutexGuard<'_, Bar> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints what the user should know, without damaging the progress bar.
    pub fn note(&self, text: &str) {
        self.bar().suspend(|| stderr::note(text));
    }

    pub fn line_of(&self, pe: PeId, line: &str) {
        self.bar().suspend(|| stderr::line_of(pe, line));
    }

    pub fn line_of_shard(&self, shard: &str, pe: PeId, line: &str) {
        self.bar()
            .suspend(|| stderr::line_of_shard(shard, pe, line));
    }

    /// Shows that `edges` of `of` edges have been measured.
    pub fn measured(&self, edges: usize, of: usize) {
        if edges == 0 {
            self.begin("measuring".to_owned(), of as u64);
        }
        let edge = (edges + 1).min(of);
        let fact = format!("edge {edge} of {of}");
        self.bar().show(edges as u64, vec![fact]);
    }

    /// Starts the progress bar of a round of `bytes` bytes.
    pub fn begin(&self, name: String, bytes: u64) {
        let mut bar = self.bar();
        (bar.name, bar.total) = (name, bytes.max(1));
        bar.show(0, Vec::new());
    }

    /// Shows that `moved` bytes have moved after `elapsed`: the remaining time, the rate, the bytes, and
    /// the expected time of the whole round beside the prediction.
    pub fn moved(&self, moved: u64, elapsed: Duration, predicted_ns: u64) {
        let mut bar = self.bar();
        let total = bar.total;
        let left = left_ns(moved, total, elapsed, predicted_ns);
        let nanos = elapsed.as_nanos() as u64;
        let rate = Rate {
            bytes: moved,
            nanos: nanos.max(1),
        };
        let (whole, predicted) = (Nanos(nanos + left), Nanos(predicted_ns));
        bar.show(
            moved,
            vec![
                format!("{} left", Nanos(left)),
                rate.to_string(),
                format!("{} of {}", Bytes(moved), Bytes(total)),
                format!("{whole} in all, predicted {predicted}"),
            ],
        );
    }

    /// Shows that `done` of `of` commands have ended successfully, and the estimated time until all have.
    pub fn done(&self, done: usize, of: usize, left: Option<Duration>) {
        let left = left.map(|left| format!("{} left", Nanos(left.as_nanos() as u64)));
        let facts = [format!("{done} of {of} done")].into_iter().chain(left);
        self.bar().show(done as u64, facts.collect());
    }

    /// Prints that a round has taken `times` times as long as predicted so far.
    pub fn slow(&self, round: RoundId, times: f64, phase: Phase) {
        self.note(&format!(
            "round {round} is slow, x {times:.1} against the prediction so far: {phase}"
        ));
    }

    /// Removes the progress bar.
    pub fn clear(&self) {
        let mut bar = self.bar();
        bar.erase();
        bar.is_shown = false;
    }
}

/// Number of characters between the brackets of the progress bar.
const CELLS: usize = 30;

/// Number of characters between the brackets where other figures need the room.
const FEW_CELLS: usize = 10;

/// Minimum time from one drawing of the progress bar to the next.
const REDRAW: Duration = Duration::from_millis(100);

/// The width of a terminal that does not report its own.
const USUAL_COLUMNS: usize = 80;

/// A progress bar: one line at the end of the output on stderr.
#[derive(Debug, Default)]
struct Bar {
    is_shown: bool,
    name: String,
    done: u64,
    total: u64,
    /// The facts beside the percentage, the most important first.
    facts: Vec<String>,
    /// When it was drawn, while it is on the terminal.
    drawn: Option<Instant>,
}

impl Bar {
    /// Changes the bar; draws it if it was not drawn a moment ago.
    fn show(&mut self, done: u64, facts: Vec<String>) {
        (self.done, self.facts) = (done, facts);
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if self.is_shown && is_due {
            self.draw();
        }
    }

    /// Prints something above the bar.
    fn suspend(&mut self, print: impl FnOnce()) {
        let was_drawn = self.drawn.is_some();
        self.erase();
        print();
        if was_drawn {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let columns = terminal::columns(io::stderr());
        let line = self.line(columns.unwrap_or(USUAL_COLUMNS));
        self.put(&format!("\r\x1b[2K{line}"));
        self.drawn = Some(Instant::now());
    }

    fn erase(&mut self) {
        if self.drawn.take().is_some() {
            self.put("\r\x1b[2K");
        }
    }

    /// Returns the bar as text that is narrower than the terminal, so that it is one line. Facts that do
    /// not fit are left out, the least important first.
    fn line(&self, columns: usize) -> String {
        let share = |whole: u128| {
            let done = u128::from(self.done.min(self.total));
            (done * whole / u128::from(self.total.max(1))) as usize
        };
        let percent = format!("{:>3} %", share(100));
        let room = columns.saturating_sub(1);
        let fits = |text: &String| text.chars().count() <= room;
        let bar = |cells: usize| {
            let filled = "=".repeat(share(cells as u128));
            let head = if filled.len() < cells { ">" } else { "" };
            format!("{} [{:cells$}] {percent}", self.name, filled + head)
        };
        let plain = format!("{} {percent}", self.name);
        let few = self.facts.iter().take(1).fold(bar(FEW_CELLS), with_fact);
        let begin = match self.facts.iter().fold(bar(CELLS), with_fact) {
            all if fits(&all) => return all,
            _ if fits(&few) => bar(FEW_CELLS),
            _ => plain,
        };
        let more = self.facts.iter().scan(begin.clone(), |line, fact| {
            *line = with_fact(line.clone(), fact);
            Some(line.clone())
        });
        let line = more.take_while(fits).last().unwrap_or(begin);
        line.chars().take(room).collect()
    }

    fn put(&self, text: &str) {
        let mut terminal = LogLine::DROPPABLE;
        // The writer puts it into a queue, which does not fail.
        let _ = terminal.write_all(text.as_bytes());
    }
}

fn with_fact(line: String, fact: &String) -> String {
    format!("{line}  {fact}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_edges_are_measured_than_there_are() {
        let console = Console::of_stderr();
        for of in [1, 2, 7] {
            for (edges, edge) in (0..).zip((1..=of).chain([of])) {
                console.measured(edges, of);
                assert_eq!(console.bar().facts, [format!("edge {edge} of {of}")]);
            }
        }
    }

    #[test]
    fn a_bar_is_one_line_of_the_terminal() {
        let bar = |done| Bar {
            name: "round 1".to_owned(),
            total: 1 << 60,
            done,
            facts: ["1.5 s left", "12 MB/s"].map(str::to_owned).to_vec(),
            ..Bar::default()
        };
        let cells = format!("{}>{}", "=".repeat(15), " ".repeat(14));
        let all = format!("round 1 [{cells}]  50 %  1.5 s left  12 MB/s");
        assert_eq!(bar(1 << 59).line(80), all);
        assert_eq!(bar(1 << 59).line(all.len() + 1), all);
        let shorter = "round 1 [=====>    ]  50 %  1.5 s left";
        assert_eq!(bar(1 << 59).line(all.len()), format!("{shorter}  12 MB/s"));
        assert_eq!(bar(1 << 59).line(shorter.len() + 8), shorter);
        assert_eq!(bar(1 << 59).line(30), "round 1  50 %  1.5 s left");
        assert_eq!(bar(1 << 59).line(20), "round 1  50 %");
        assert_eq!(bar(1 << 59).line(8), "round 1");
        let full = format!("round 1 [{}] 100 %", "=".repeat(30));
        assert!(bar(u64::MAX).line(80).starts_with(&full));
    }
}
