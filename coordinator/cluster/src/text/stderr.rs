//! Standard error. A separate thread writes it, so that a stopped terminal (Ctrl-S) or a stalled
//! reader delays nothing else. Log lines that do not fit into the queue meanwhile are dropped and
//! counted; messages for the user are never dropped.
//!
//! With `--log-format json` each message is a JSON object on one line, as log lines are.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io::{self, Write};
use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use flitcast_proto::PeId;
use tracing_subscriber::fmt::MakeWriter;

use crate::system::terminal;
use crate::text::figures::wrapped;
use crate::text::pe_names::{in_log_line, with_names};
use crate::text::printable::{in_one_line, printable};
use crate::text::screen::{Style, on_stderr};

/// The target of messages for the user, which no filter of log lines hides.
pub const MESSAGES: &str = "messages";

/// Maximum number of bytes that wait to be written: some 30,000 log lines.
const QUEUED_BYTES: usize = 4 << 20;

/// Maximum time that the end of the process waits for the rest to be written.
const AT_EXIT: Duration = Duration::from_secs(5);

/// Number of spaces in front of what follows of a divided line, beside those of its beginning.
const FURTHER: usize = 4;

/// Text that waits to be written.
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Pieces that did not fit since the last one that did.
    dropped: u64,
    is_writing: bool,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue::EMPTY);
static FILLED: Condvar = Condvar::new();
static WRITTEN: Condvar = Condvar::new();
/// The thread that writes, once there is something to write.
static THREAD: Once = Once::new();
static JSON: AtomicBool = AtomicBool::new(false);

pub fn set_json(json: bool) {
    JSON.store(json, Relaxed);
}

/// Returns whether messages are JSON objects.
pub fn is_json() -> bool {
    JSON.load(Relaxed)
}

/// Waits until all text is written, or for some seconds.
pub fn finish() {
    let is_left = |queue: &mut Queue| queue.is_writing || !queue.pieces.is_empty();
    let _ = WRITTEN.wait_timeout_while(queue(), AT_EXIT, is_left);
}

/// Prints an error and its remedy.
pub fn error(text: impl Display) {
    let text = with_names(&text.to_string());
    match is_json() {
        true => tracing::error!(target: MESSAGES, "{text}"),
        false => put_labelled(Style::Red, "error:", &text),
    }
}

pub fn warning(text: impl Display) {
    let text = with_names(&text.to_string());
    match is_json() {
        true => tracing::warn!(target: MESSAGES, "{text}"),
        false => put_labelled(Style::Yellow, "warning:", &text),
    }
}

/// Prints information for the user.
pub fn note(text: impl Display) {
    let text = with_names(&text.to_string());
    match is_json() {
        true => tracing::info!(target: MESSAGES, "{text}"),
        false => put(
            in_lines(&printable(text), terminal::columns(io::stderr())),
            true,
        ),
    }
}

/// Puts a message behind a coloured word.
fn put_labelled(style: Style, label: &str, text: &str) {
    let lines = in_lines(
        &printable(format_args!("{label} {text}")),
        terminal::columns(io::stderr()),
    );
    let text = lines.strip_prefix(label).unwrap_or(&lines);
    put(format!("{}{text}", on_stderr(style, label)), true);
}

/// Divides lines that are longer than a terminal is wide at words. Lines with commands stay whole, so that
/// they can be copied.
fn in_lines(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let line = |line: &str| {
        if line.chars().count() <= columns || line.contains("flitcast ") {
            return line.to_owned();
        }
        let indent = line.chars().take_while(|&it| it == ' ').count();
        let room = columns.saturating_sub(indent + FURTHER).max(1);
        let gap = format!("\n{}", " ".repeat(indent + FURTHER));
        " ".repeat(indent) + &wrapped(&line[indent..], room).join(&gap)
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Passes on a line that a PE or its command has written on stderr.
pub fn line_of(pe: PeId, line: &str) {
    let line = in_log_line(line);
    match is_json() {
        // A log line of a PE is a JSON object already.
        true if line.starts_with('{') && line.ends_with('}') => put(line, false),
        true => tracing::info!(target: MESSAGES, %pe, "{line}"),
        false => put(format!("{pe}| {}", in_one_line(line)), false),
    }
}

/// Prints a line that the command on a shard has written, which a PE ran.
pub fn line_of_shard(shard: &str, pe: PeId, line: &str) {
    match is_json() {
        true => tracing::info!(target: MESSAGES, %pe, shard, "{line}"),
        false => put(
            format!("{}| {}", in_one_line(shard), in_one_line(line)),
            false,
        ),
    }
}

/// Returns the text of a line of a PE: of a JSON object its message.
pub fn text_of(line: String) -> String {
    let object = is_json().then(|| serde_json::from_str::<serde_json::Value>(&line).ok());
    let message = object.flatten().and_then(|object| {
        let message = object.pointer("/fields/message")?.as_str()?;
        Some(message.to_owned())
    });
    message.unwrap_or(line)
}

/// Puts a line that may be dropped unless it is a message.
fn put(line: String, is_message: bool) {
    queue().put((line + "\n").into_bytes(), is_message);
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    const EMPTY: Queue = Queue {
        pieces: VecDeque::new(),
        bytes: 0,
        dropped: 0,
        is_writing: false,
    };

    fn put(&mut self, piece: Vec<u8>, is_message: bool) {
        THREAD.call_once(|| drop(thread::spawn(write)));
        if self.bytes + piece.len() > QUEUED_BYTES && !is_message {
            self.dropped += 1;
            return;
        }
        self.bytes += piece.len();
        self.pieces.push_back(piece);
        FILLED.notify_one();
    }
}

fn write() {
    loop {
        let is_empty = |queue: &mut Queue| queue.pieces.is_empty();
        let waited = FILLED.wait_while(queue(), is_empty);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let pieces = take(&mut queue.pieces);
        let dropped = take(&mut queue.dropped);
        queue.is_writing = true;
        drop(queue);
        for piece in pieces {
            // There is no way to report the failure.
            let _ = io::stderr().write_all(&piece);
            self::queue().bytes -= piece.len();
        }
        if dropped > 0 {
            warning(format_args!(
                "{dropped} lines were dropped here: nobody read stderr"
            ));
        }
        self::queue().is_writing = false;
        WRITTEN.notify_all();
    }
}

/// The writer of log lines, which may be dropped, and of messages, which may not.
pub struct LogLines;

/// A writer of one log line, or of text on a terminal.
pub struct LogLine {
    is_message: bool,
}

impl LogLine {
    /// A writer of text that may be dropped.
    pub const DROPPABLE: LogLine = LogLine { is_message: false };
}

impl<'a> MakeWriter<'a> for LogLines {
    type Writer = LogLine;

    fn make_writer(&'a self) -> LogLine {
        LogLine::DROPPABLE
    }

    fn make_writer_for(&'a self, meta: &tracing::Metadata<'_>) -> LogLine {
        LogLine {
            is_message: meta.target() == MESSAGES,
        }
    }
}

impl Write for LogLine {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let line = in_log_line(&String::from_utf8_lossy(text));
        queue().put(line.into_bytes(), self.is_message);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_divided_at_words_but_commands_are_not() {
        let command = "  flitcast resume a-folder-with-a-long-name/.flitcast-round";
        let text = format!("error: one two three four\n  where: five six seven\n{command}");
        assert_eq!(in_lines(&text, None), text);
        let divided = "error: one two\n    three four\n  where: five\n      six seven\n";
        assert_eq!(in_lines(&text, Some(20)), format!("{divided}{command}"));
    }

    #[test]
    fn what_does_not_fit_is_dropped_but_for_messages() {
        let mut queue = Queue::EMPTY;
        let part = QUEUED_BYTES / 4;
        for _ in 0..7 {
            queue.put(vec![b'x'; part], false);
        }
        assert_eq!((queue.pieces.len(), queue.dropped), (4, 3));
        queue.put(vec![b'x'; part], true);
        queue.put(vec![b'x'; 1], false);
        assert_eq!((queue.pieces.len(), queue.dropped), (5, 4));
        assert_eq!(queue.bytes, 5 * part);
    }
}
