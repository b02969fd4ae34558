//! What reaches the user's terminal beside the result: lines from the PEs, and a
//! progress bar where there is a terminal to show it.

use std::time::Duration;

use flitcast_proto::RoundId;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::observe::phase::Phase;
use crate::text::units::{Bytes, Nanos};

/// What is left of a round when so many bytes of all have moved, in nanoseconds: the
/// prediction holds until the round itself tells better.
pub fn left_ns(moved: u64, total: u64, elapsed: Duration, predicted_ns: u64) -> u64 {
    let elapsed_ns = elapsed.as_nanos() as f64;
    let (moved, total) = (moved as f64, total.max(1) as f64);
    let by_rate = elapsed_ns * (total / moved.max(1.0));
    let share = (moved / total).clamp(0.0, 1.0);
    let whole = share * by_rate + (1.0 - share) * predicted_ns as f64;
    (whole - elapsed_ns).max(0.0) as u64
}

/// Stderr, shared.
#[derive(Clone, Debug)]
pub struct Console {
    bar: ProgressBar,
}

impl Console {
    /// With a bar for so many bytes in all, if stderr is a terminal.
    pub fn new() -> Console {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(10));
        bar.set_style(
            ProgressStyle::with_template("{prefix} [{bar:30}] {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("=> "),
        );
        Console { bar }
    }

    /// A line that must not tear the bar.
    pub fn line(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// So many edges of these are measured.
    pub fn measured(&self, edges: usize, of: usize) {
        if edges == 0 {
            self.begin("measuring".to_owned(), of as u64);
        }
        self.bar.set_position(edges as u64);
        self.bar.set_message(format!("edge {} of {of}", edges + 1));
    }

    /// A round begins.
    pub fn begin(&self, name: String, bytes: u64) {
        self.bar.reset();
        self.bar.set_length(bytes.max(1));
        self.bar.set_prefix(name);
    }

    /// So many bytes have moved; the round is predicted to take so long in all.
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

    /// So many of the commands that are run have ended well.
    pub fn done(&self, done: usize, of: usize) {
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{done} of {of} done"));
    }

    /// A round takes so many times longer than predicted.
    pub fn slow(&self, round: RoundId, times: f64, phase: Phase) {
        self.line(&format!(
            "round {round} is slow, x {times:.1} against the prediction so far: {phase}"
        ));
    }

    /// Nothing is under way any more.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
