//! A snapshot of a running command as lines of text, and their output on a terminal.

use std::collections::BTreeMap;
use std::io::{self, Write};

use flitcast_proto::PeId;

use crate::render::tree::branches;
use flitcast_cluster::observe::live::snapshot::{PePicture, Snapshot};
use flitcast_cluster::text::figures;
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::title::title;
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};

/// Number of lines above the PEs: operation, progress, an empty line and headings.
const HEAD: usize = 5;
/// Characters of a progress bar.
const BAR: u64 = 30;

/// Returns the operation and the cluster in a few words.
pub fn name(picture: &Snapshot) -> String {
    let it = picture;
    printable(title(&it.operation, &it.cluster, &it.algorithm))
}

/// Formats the snapshot in at most `most` lines of at most `width` characters. If not all PEs fit, the
/// most important ones are shown; likewise columns.
pub fn lines(picture: &Snapshot, most: Option<usize>, width: Option<usize>) -> Vec<String> {
    let mut lines = head(picture, width);
    let all = picture.pes.len();
    let room = most.map_or(all, |most| most.saturating_sub(HEAD));
    let chosen: Vec<(PeId, String)> = match all <= room {
        true => drawn(picture),
        // One line is for the number of the other PEs.
        false => notable(picture, room.saturating_sub(1)),
    };
    let mut table = rows(picture, &chosen, width);
    if table.iter().any(|line| !fits(line, width)) {
        // A deep tree has no room for its branches.
        let flat = chosen.iter().map(|(pe, _)| (*pe, String::new()));
        table = rows(picture, &flat.collect::<Vec<_>>(), width);
    }
    lines.extend(table);
    match all - chosen.len().min(all) {
        0 => {}
        more => lines.push(format!("  and {more} more")),
    }
    lines
}

fn fits(line: &str, width: Option<usize>) -> bool {
    width.is_none_or(|width| line.chars().count() <= width)
}

/// Joins as many parts, the most important ones first, as fit into a line.
fn line_of(parts: &[String], between: &str, width: Option<usize>) -> String {
    let counts = (1..=parts.len()).rev();
    let mut lines = counts.map(|count| parts[..count].join(between));
    let fitting = lines.find(|line| fits(line, width));
    fitting.unwrap_or_else(|| parts.first().cloned().unwrap_or_default())
}

fn head(picture: &Snapshot, width: Option<usize>) -> Vec<String> {
    let (moved, bytes) = (picture.moved_bytes, picture.bytes);
    let title = [
        format!("{}: {} PEs", name(picture), picture.pes.len()),
        format!("process {}", picture.pid),
    ];
    let title = line_of(&title, ", ", width);
    let (Some(elapsed), Some(predicted)) = (picture.elapsed_ns, picture.predicted_ns) else {
        return vec![title, printable(&picture.doing), String::new()];
    };
    let share = |whole: u64| match bytes {
        0 => 0,
        bytes => (u128::from(whole) * u128::from(moved.min(bytes)) / u128::from(bytes)) as u64,
    };
    let done = "=".repeat(share(BAR) as usize);
    let whole = Nanos(elapsed + picture.left_ns.unwrap_or(0));
    let rate = Rate {
        bytes: moved,
        nanos: elapsed.max(1),
    };
    let (round, rounds) = (picture.round, picture.rounds);
    let progress = [
        format!("round {round} of {rounds}  {:>3} %", share(100)),
        format!("{} of {}", Bytes(moved), Bytes(bytes)),
        rate.to_string(),
        format!("[{done:<width$}]", width = BAR as usize),
    ];
    let times = [
        format!("{} so far, {whole} expected in all", Nanos(elapsed)),
        format!("predicted {}", Nanos(predicted)),
    ];
    vec![
        title,
        line_of(&progress, "  ", width),
        line_of(&times, "; ", width),
        String::new(),
    ]
}

/// Returns all PEs in the order of the tree, with its branches.
fn drawn(picture: &Snapshot) -> Vec<(PeId, String)> {
    let mut children: BTreeMap<PeId, Vec<PeId>> = BTreeMap::new();
    for pe in &picture.pes {
        if let (Some(parent), true) = (pe.parent, pe.pe > 0) {
            children.entry(PeId(parent)).or_default().push(PeId(pe.pe));
        }
    }
    branches(|pe| children.get(&pe).map_or(&[], Vec::as_slice))
}

/// Returns the `most` most important PEs in the order of the tree.
fn notable(picture: &Snapshot, most: usize) -> Vec<(PeId, String)> {
    let mut ranked: Vec<&PePicture> = picture.pes.iter().collect();
    ranked.sort_by_key(|pe| std::cmp::Reverse(worth(pe)));
    let chosen: Vec<u32> = ranked.iter().take(most).map(|pe| pe.pe).collect();
    let mut drawn = drawn(picture);
    drawn.retain(|(pe, _)| chosen.contains(&pe.0));
    // The branches are removed, because they are incomplete without all PEs.
    let plain = |(pe, before): (PeId, String)| (pe, before.replace(['├', '└', '│', '─'], " "));
    drawn.into_iter().map(plain).collect()
}

/// Returns the importance of a PE: P0 first; then silent PEs; then those with the highest rate on
/// their edge; then those with the most bytes left.
fn worth(pe: &PePicture) -> (bool, bool, u64, u64) {
    let rate = pe.edge.map_or(0, |edge| {
        edge.down_bytes_per_s.unwrap_or(0) + edge.up_bytes_per_s.unwrap_or(0)
    });
    let lacking = pe.bytes.saturating_sub(pe.moved_bytes);
    let is_silent = pe.state.starts_with("silent");
    (pe.pe == 0, is_silent, rate, lacking)
}

/// The columns of the table from the least important one on.
const LEAST: [&str; 8] = [
    "buffered", "message", "memory", "up", "host", "down", "state", "moved",
];

fn rows(picture: &Snapshot, chosen: &[(PeId, String)], width: Option<usize>) -> Vec<String> {
    let by_id: BTreeMap<u32, &PePicture> = picture.pes.iter().map(|pe| (pe.pe, pe)).collect();
    const ALL: [&str; 9] = [
        "PE", "host", "state", "message", "moved", "down", "up", "buffered", "memory",
    ];
    // No message moves while commands run.
    let is_map = picture.shards.is_some();
    let is_shown =
        |column: usize| !is_map || matches!(ALL[column], "PE" | "host" | "state" | "memory");
    let mut table = figures::table((0..ALL.len()).filter(|it| is_shown(*it)).map(|it| ALL[it]));
    for (id, before) in chosen {
        let Some(pe) = by_id.get(&id.0) else { continue };
        let moved = match pe.bytes {
            0 => "-".to_owned(),
            bytes => {
                let moved = u128::from(pe.moved_bytes.min(bytes));
                format!("{} %", moved * 100 / u128::from(bytes))
            }
        };
        let nanos = 1_000_000_000;
        let rate = |bytes| Rate { bytes, nanos }.to_string();
        let rate = |bytes: Option<u64>| bytes.map_or("-".to_owned(), rate);
        let cells = [
            format!("{}{id}", before.strip_prefix("  ").unwrap_or(before)),
            printable(pe.name.as_deref().unwrap_or(&pe.address)),
            printable(&pe.state),
            Bytes(pe.bytes).to_string(),
            moved,
            rate(pe.edge.and_then(|edge| edge.down_bytes_per_s)),
            rate(pe.edge.and_then(|edge| edge.up_bytes_per_s)),
            pe.buffered_flits.to_string(),
            match pe.resident_bytes {
                0 => "-".to_owned(),
                bytes => Bytes(bytes).to_string(),
            },
        ];
        let cells = cells.into_iter().enumerate();
        table.add_row(cells.filter(|(it, _)| is_shown(*it)).map(|(_, cell)| cell));
    }
    let text = figures::fitted(table, 3, &LEAST, width);
    text.lines().map(str::to_owned).collect()
}

/// The lines of this program on a terminal.
#[derive(Debug, Default)]
pub struct Screen {
    lines: usize,
}

impl Screen {
    /// Replaces the lines shown before. All output is written at once and restores the terminal's
    /// modes, so an interruption leaves the terminal unchanged.
    pub fn show(&mut self, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
        let mut text = String::new();
        if self.lines > 0 {
            text.push_str(&format!("\x1b[{}A", self.lines));
        }
        // Turns off line wrapping: a long line is cut.
        text.push_str("\r\x1b[?7l");
        for line in lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J\x1b[?7h");
        self.lines = lines.len();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flitcast_cluster::observe::live::snapshot::EdgePicture;

    /// Returns a snapshot of a round of `pes` PEs on a path; P2 is the busiest.
    fn picture(pes: u32) -> Snapshot {
        let pe = |pe: u32| PePicture {
            pe,
            parent: pe.checked_sub(1),
            address: "127.0.0.1".to_owned(),
            state: "waiting".to_owned(),
            bytes: 1 << 20,
            moved_bytes: 1 << 18,
            edge: (pe > 0).then_some(EdgePicture {
                down_bytes_per_s: Some(if pe == 2 { 2_100_000 } else { 1000 }),
                ..EdgePicture::default()
            }),
            resident_bytes: 8 << 20,
            ..PePicture::default()
        };
        Snapshot {
            pid: 77,
            operation: "scatter".to_owned(),
            algorithm: "fdf".to_owned(),
            cluster: "path".to_owned(),
            phase: "round".to_owned(),
            round: 2,
            rounds: 3,
            moved_bytes: 1 << 20,
            bytes: 3 << 20,
            elapsed_ns: Some(1_500_000_000),
            predicted_ns: Some(4_000_000_000),
            left_ns: Some(3_000_000_000),
            pes: (0..pes).map(pe).collect(),
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_round_is_shown_with_its_tree() {
        let lines = lines(&picture(3), None, None);
        let expected = [
            "scatter on path by fdf: 3 PEs, process 77",
            "round 2 of 3   33 %  1 MiB of 3 MiB  699 kB/s  [==========                    ]",
            "1.50 s so far, 4.50 s expected in all; predicted 4.00 s",
            "",
        ];
        assert_eq!(lines[..4], expected);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<String> = lines[4..].iter().map(|line| words(line)).collect();
        let expected = [
            "PE host state message moved down up buffered memory",
            "P0 127.0.0.1 waiting 1 MiB 25 % - - 0 8 MiB",
            "└─ P1 127.0.0.1 waiting 1 MiB 25 % 1.00 kB/s - 0 8 MiB",
            "└─ P2 127.0.0.1 waiting 1 MiB 25 % 2.10 MB/s - 0 8 MiB",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let cases = [3, 70].into_iter();
        for (pes, width) in cases.flat_map(|pes| (30..140).map(move |it| (pes, it))) {
            for line in lines(&picture(pes), None, Some(width)) {
                // The head keeps what it begins with.
                assert!(line.chars().count() <= width.max(38), "{width}: {line}");
                let cells: Vec<&str> = line.split("  ").filter(|it| !it.is_empty()).collect();
                assert!(!cells.is_empty() || line.is_empty(), "{line}");
            }
        }
        let narrow = lines(&picture(3), None, Some(60));
        assert!(!narrow[4].contains("message") && narrow[4].contains("memory"));
    }

    #[test]
    fn a_small_terminal_shows_p0_and_who_is_busiest() {
        for most in 8..40 {
            let lines = lines(&picture(1000), Some(most), None);
            assert_eq!(lines.len(), most, "{lines:#?}");
            let shown = |pe: &str| lines.iter().any(|line| line.contains(pe));
            assert!(shown(" P0 ") && shown(" P2 "), "{lines:#?}");
            let more = format!("and {} more", 1000 - (most - HEAD - 1));
            assert!(lines[most - 1].contains(&more), "{lines:#?}");
        }
    }

    #[test]
    fn pictures_take_the_place_of_each_other() {
        let mut screen = Screen::default();
        let mut shown = Vec::new();
        let lines = ["a".to_owned(), "b".to_owned()];
        screen.show(&lines, &mut shown).unwrap();
        screen.show(&lines[..1], &mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let expected = "\r\x1b[?7la\x1b[K\nb\x1b[K\n\x1b[J\x1b[?7h\
                        \x1b[2A\r\x1b[?7la\x1b[K\n\x1b[J\x1b[?7h";
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_cannot_contain_terminal_escapes() {
        let mut hostile = picture(2);
        hostile.cluster = "\x1b[2J".to_owned();
        hostile.pes[1].name = Some("a\x1b]0;b\x07".to_owned());
        hostile.pes[1].state = "\x1b[31m".to_owned();
        for line in lines(&hostile, None, None) {
            assert!(!line.contains('\x1b') && !line.contains('\x07'), "{line:?}");
        }
    }
}
