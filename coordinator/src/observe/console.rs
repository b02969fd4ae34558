//! Output on the user's terminal besides the result: lines from the PEs, and a progress bar if
//! stderr is a terminal.

use std::io::{self, Write as _};
use std::time::Duration;

use flitcast_proto::{PeId, RoundId};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::observe::phase::Phase;
use crate::system::terminal;
use crate::text::stderr::{self, LogLine};
use crate::text::units::{Bytes, Nanos};

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
    bar: ProgressBar,
}

impl Console {
    /// Creates a console; it shows a progress bar if stderr is a terminal.
    pub fn new() -> Console {
        let target = match terminal::size(io::stderr()) {
            Some(_) if !stderr::is_json() => {
                ProgressDrawTarget::term_like_with_hz(Box::new(Terminal), 10)
            }
            _ => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        bar.set_style(
            ProgressStyle::with_template("{prefix} [{bar:30}] {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        Console { bar }
    }

    /// Prints what the user should know, without damaging the progress bar.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| stderr::note(text));
    }

    /// Passes on a line that a PE or its command has written on stderr.
    pub fn line_of(&self, pe: PeId, line: &str) {
        self.bar.suspend(|| stderr::line_of(pe, line));
    }

    /// Shows that `edges` of `of` edges have been measured.
    pub fn measured(&self, edges: usize, of: usize) {
        if edges == 0 {
            self.begin("measuring".to_owned(), of as u64);
        }
        self.bar.set_position(edges as u64);
        let edge = (edges + 1).min(of);
        self.bar.set_message(format!("edge {edge} of {of}"));
    }

    /// Starts the progress bar of a round of `bytes` bytes.
    pub fn begin(&self, name: String, bytes: u64) {
        self.bar.reset();
        self.bar.set_length(bytes.max(1));
        self.bar.set_prefix(name);
    }

    /// Shows that `moved` bytes have moved after `elapsed`, and the estimated remaining time.
    pub fn moved(&self, moved: u64, elapsed: Duration, predicted_ns: u64) {
        let total = self.bar.length().unwrap_or(1);
        let left = left_ns(moved, total, elapsed, predicted_ns);
        self.bar.set_position(moved);
        self.bar.set_message(format!(
            "{} of {}, {} left",
            Bytes(moved),
            Bytes(total),
            Nanos(left)
        ));
    }

    /// Shows that `done` of `of` commands have ended successfully.
    pub fn done(&self, done: usize, of: usize) {
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{done} of {of} done"));
    }

    /// Prints that a round has taken `times` times as long as predicted so far.
    pub fn slow(&self, round: RoundId, times: f64, phase: Phase) {
        self.note(&format!(
            "round {round} is slow, x {times:.1} against the prediction so far: {phase}"
        ));
    }

    /// Removes the progress bar.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The terminal on stderr, as the progress bar draws on it.
#[derive(Debug)]
struct Terminal;

/// The width of a terminal that does not know its own.
const USUAL_COLUMNS: usize = 80;

impl Terminal {
    fn put(&self, text: &str) -> io::Result<()> {
        let mut terminal = LogLine::DROPPABLE;
        terminal.write_all(text.as_bytes())
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        let columns = terminal::size(io::stderr()).map(|(_, columns)| columns);
        let columns = columns.filter(|&columns| columns > 0);
        columns.unwrap_or(USUAL_COLUMNS) as u16
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.put(&control(n, 'A'))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.put(&control(n, 'B'))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.put(&control(n, 'C'))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.put(&control(n, 'D'))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.put(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.put(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the sequence that moves the cursor `n` places in a direction.
fn control(n: usize, direction: char) -> String {
    match n {
        0 => String::new(),
        n => format!("\x1b[{n}{direction}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_edges_are_measured_than_there_are() {
        let console = Console::new();
        for of in [1, 2, 7] {
            let told: Vec<String> = (0..=of)
                .map(|edges| {
                    console.measured(edges, of);
                    console.bar.message()
                })
                .collect();
            let expected = (1..=of)
                .chain([of])
                .map(|edge| format!("edge {edge} of {of}"));
            assert_eq!(told, expected.collect::<Vec<_>>());
        }
    }
}
