//! The messages that a command line requests, and their lengths on a tree.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use flitcast_node::payload;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::MAX_DELIVERIES;
use flitcast_proto::wire::control::{FilePayload, Payload};

use super::input::measure_input;
use crate::files::matrix_file::{self, Cells};
use crate::job::fault::{NoPayload, of_output};
use crate::options::args::RoundArgs;
use crate::options::workload::{Lengths, check_total};
use crate::site::topology::of_option;
use crate::text::faults::Faults;
use crate::text::units::{MAX_TOTAL_BYTES, parse_bytes};

/// The requested messages, independent of the tree.
pub enum RequestedMessages {
    Files {
        input: PathBuf,
        output: PathBuf,
    },
    /// Bytes that every receiver can check.
    Synthetic {
        /// The option that requests them.
        option: &'static str,
        lengths: Lengths,
    },
    /// Synthetic messages of a total exchange, whose lengths a file gives for each pair.
    Matrix(PathBuf),
}

impl RequestedMessages {
    /// Returns the requested messages, or all errors in the options.
    pub fn of(
        args: &RoundArgs,
        layout: Layout,
        spread: Option<&'static str>,
    ) -> Result<RequestedMessages, Faults> {
        let mut faults = Faults::default();
        let kinds = [
            ("--input", args.input.is_some()),
            ("--size", args.transfer.size.is_some()),
            ("--lengths", args.transfer.lengths.is_some()),
        ];
        let given = kinds
            .iter()
            .filter_map(|(kind, given)| given.then_some(*kind));
        for pair in given.collect::<Vec<_>>().windows(2) {
            let (one, other) = (pair[0], pair[1]);
            faults.add(anyhow!(
                "{one} and {other} both define the messages; choose one"
            ));
        }
        let typed = |option, is_given: bool| is_given.then_some(option);
        let (input, output) = (args.input.is_some(), args.output.is_some());
        let compress = args.transmission.compress.is_some();
        for (option, needs, is_there) in [
            (typed("--input", input), "--output", output),
            (typed("--output", output), "--input", input),
            (spread, "--input", input),
            (args.selection.first_option(), "--input", input),
            (typed("--sync", args.sync.is_some()), "--input", input),
            (typed("--archive", args.selection.archive), "--input", input),
            (typed("--compress", compress), "--input", input),
            (args.replacing.first_option(), "--output", output),
        ] {
            if let Some(option) = option
                && !is_there
            {
                faults.add(anyhow!("{option} goes with {needs}, which is not there"));
            }
        }
        let transfer = &args.transfer;
        let messages = match (&args.input, &args.output, &transfer.size, &transfer.lengths) {
            (Some(input), Some(output), ..) => Ok(RequestedMessages::Files {
                input: input.clone(),
                output: output.clone(),
            }),
            (.., Some(size), _) => RequestedMessages::of_size(size),
            (.., Some(lengths)) => RequestedMessages::of_lengths(lengths, layout),
            (None, ..) => Err(NoPayload.into()),
            // The output is missing.
            (Some(_), ..) => return Err(faults),
        };
        match faults.take(messages) {
            Some(messages) if faults.0.is_empty() => Ok(messages),
            _ => Err(faults),
        }
    }

    fn of_size(size: &str) -> anyhow::Result<RequestedMessages> {
        let option = "--size";
        let bytes = parse_bytes(size).map_err(of_option(option))?;
        let lengths = Lengths::of_size(bytes);
        Ok(RequestedMessages::Synthetic { option, lengths })
    }

    fn of_lengths(text: &str, layout: Layout) -> anyhow::Result<RequestedMessages> {
        let option = "--lengths";
        match text.parse::<Lengths>() {
            Ok(Lengths::List(list)) if layout == Layout::Pieces && list.len() > 1 => bail!(
                "--lengths: a total exchange has a message of each PE for each other one: name a file \
                 with a row for each sender, or write equal:MEAN"
            ),
            Err(_) if layout == Layout::Pieces && !text.contains(':') => {
                Ok(RequestedMessages::Matrix(text.into()))
            }
            lengths => {
                let lengths = lengths.map_err(of_option(option))?;
                Ok(RequestedMessages::Synthetic { option, lengths })
            }
        }
    }

    pub fn absolute(self) -> RequestedMessages {
        // An empty path was refused before.
        let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            RequestedMessages::Files { input, output } => RequestedMessages::Files {
                input: from_root(input),
                output: from_root(output),
            },
            RequestedMessages::Matrix(path) => RequestedMessages::Matrix(from_root(path)),
            synthetic => synthetic,
        }
    }

    /// Returns the messages of an operation on a tree, and the lengths by delivery. Files are sent as in
    /// `files`; those `elsewhere` are on other hosts, and are not checked here.
    pub fn for_tree(
        self,
        tree: &Tree,
        operation: Algorithm,
        files: FilePayload,
        elsewhere: bool,
    ) -> Result<(Payload, Vec<u64>), Faults> {
        let pes = tree.len();
        if operation.collective().deliveries(tree) > MAX_DELIVERIES.max(pes) {
            let most = MAX_DELIVERIES.isqrt();
            return Err(anyhow!(
                "{pes} PEs: where each has a message for all others, or for each, there can be {most}"
            )
            .into());
        }
        let lengths = match self {
            RequestedMessages::Files { input, output } => {
                let names = &files.output_names[..];
                let entries = tree
                    .ids()
                    .map(|pe| payload::output_entry(Path::new(""), pe, names));
                let longest = entries.max_by_key(|entry| entry.as_os_str().len());
                let longest = longest.unwrap_or_default();
                let folder = match operation.collective().is_of_pairs() {
                    true => output.join(&longest),
                    false => output.clone(),
                };
                if let Some(why) = payload::output_fault(folder.join(longest)) {
                    return Err(of_output(&output, why).into());
                }
                let payload = FilePayload {
                    input,
                    output,
                    ..files
                };
                let bytes = match elsewhere {
                    true => vec![0; operation.collective().deliveries(tree)],
                    false => {
                        let names = &payload.output_names;
                        measure_input(&payload, operation, tree, names, |_| false)?
                    }
                };
                return Ok((Payload::Files(payload), bytes));
            }
            RequestedMessages::Matrix(path) => read_matrix(&path, pes),
            RequestedMessages::Synthetic { option, lengths } => {
                deal(option, &lengths, pes, operation.collective().layout())
            }
        };
        let lengths = lengths?;
        let bytes = operation.collective().by_delivery(tree, &lengths);
        Ok((Payload::Synthetic { lengths }, bytes))
    }
}

/// Computes the lengths of all messages between `pes` PEs.
fn deal(option: &str, lengths: &Lengths, pes: usize, layout: Layout) -> anyhow::Result<Vec<u64>> {
    let dealt = |lengths: &Lengths, count| lengths.deal(count).map_err(of_option(option));
    match layout {
        Layout::Pieces => {
            // Row by row, without the message of a PE to itself.
            let lengths = match lengths {
                Lengths::List(one) => &Lengths::of_size(one.first().copied().unwrap_or(0)),
                dealt => dealt,
            };
            let mut others = dealt(lengths, pes * (pes - 1))?.into_iter();
            let cell = |i| match i % (pes + 1) {
                0 => 0,
                _ => others.next().unwrap_or(0),
            };
            Ok((0..pes * pes).map(cell).collect())
        }
        Layout::Shards => lengths.deal_to_all(pes).map_err(of_option(option)),
        _ => {
            let lengths = dealt(lengths, pes - 1)?;
            let are_alike = || lengths.windows(2).all(|pair| pair[0] == pair[1]);
            ensure!(
                layout != Layout::Whole || are_alike(),
                "--lengths: a broadcast has one message; give its length with --size"
            );
            Ok(lengths)
        }
    }
}

/// Reads the lengths of a total exchange, row by row.
fn read_matrix(path: &Path, pes: usize) -> anyhow::Result<Vec<u64>> {
    let bytes = Cells {
        unit: "bytes",
        most: MAX_TOTAL_BYTES,
    };
    let rows = matrix_file::load(path, bytes).map_err(of_option("--lengths"))?;
    let count = rows.len();
    ensure!(
        count == pes,
        "--lengths: {count} rows and columns, but there are {pes} PEs"
    );
    let lengths = rows.concat();
    check_total(&lengths).map_err(of_option("--lengths"))?;
    Ok(lengths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::test_tree::tree;

    const GOSSIP: Algorithm = Algorithm::GOSSIP_FLOOD;
    const EXCHANGE: Algorithm = Algorithm::EXCHANGE_TREE;

    fn synthetic(lengths: &str) -> RequestedMessages {
        RequestedMessages::Synthetic {
            option: "--lengths",
            lengths: lengths.parse().unwrap(),
        }
    }

    fn lengths(messages: RequestedMessages, operation: Algorithm) -> Result<Vec<u64>, String> {
        let lengths = messages.for_tree(&tree("star:3"), operation, FilePayload::default(), false);
        let lengths = lengths.map(|(_, bytes)| bytes);
        lengths.map_err(|faults| faults.to_string())
    }

    #[test]
    fn lengths_are_those_of_each_pe_or_of_each_pair() {
        let gossip = lengths(synthetic("1,0,3"), GOSSIP);
        assert_eq!(gossip, Ok(vec![0, 1, 1, 0, 0, 0, 3, 3, 0]));
        let ramp = lengths(synthetic("ramp:40"), GOSSIP);
        assert_eq!(ramp, Ok(vec![0, 20, 20, 40, 0, 40, 60, 60, 0]));
        let exchange = Ok(vec![0, 5, 5, 5, 0, 5, 5, 5, 0]);
        assert_eq!(lengths(synthetic("5"), EXCHANGE), exchange);
        assert_eq!(lengths(synthetic("equal:5"), EXCHANGE), exchange);
        let short = lengths(synthetic("1,2"), GOSSIP).unwrap_err();
        assert!(short.contains("one for each PE from P0 to P2"), "{short}");
        let files = FilePayload::default();
        let many = synthetic("5").for_tree(&tree("star:1025"), EXCHANGE, files, false);
        let many = many.unwrap_err().0[0].to_string();
        assert!(many.contains("1025 PEs") && many.contains("1024"), "{many}");
    }

    #[test]
    fn a_matrix_gives_the_lengths_of_all_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bytes.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            lengths(RequestedMessages::Matrix(path.clone()), EXCHANGE)
        };
        let bytes = Ok(vec![0, 1, 2, 3, 0, 4, 5, 6, 0]);
        assert_eq!(read("0,1,2\n3,0,4\n5,6,0\n"), bytes);
        let refused = |text: &str, expected: &str| {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        };
        refused("0,1\n2,0\n", "2 rows and columns, but there are 3 PEs");
        refused("0,1,2\n3,7,4\n5,6,0\n", "7 bytes of a PE for itself");
    }
}
