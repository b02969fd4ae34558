//! The messages that a command line asks for, and their lengths on a tree.

use std::path::{Path, PathBuf};

use flitcast_node::payload;
use flitcast_plan::Algorithm;
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::MAX_DELIVERIES;
use flitcast_proto::wire::control::{FilePayload, Payload};
use flitcast_proto::{PeId, Tree};

use super::input::measure_input;
use crate::files::matrix_file::{self, Cells};
use crate::job::fault::RequestError;
use crate::options::args::RoundArgs;
use crate::options::workload::{DealError, Lengths};
use crate::text::units::{MAX_TOTAL_BYTES, parse_bytes};

/// The requested messages, independent of the tree.
pub enum AskedMessages {
    /// Files.
    Files {
        /// Path of the input.
        input: PathBuf,
        /// Path of the output.
        output: PathBuf,
    },
    /// Bytes that every receiver can check.
    Synthetic {
        /// The option that requests them.
        option: &'static str,
        /// The lengths.
        lengths: Lengths,
    },
    /// Synthetic messages of a total exchange, whose lengths a file gives for each pair.
    Matrix(PathBuf),
}

/// Placement of files, and how the output is treated.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilesAt {
    /// Whether all files are distributed over the PEs.
    pub spread: bool,
    /// Whether existing files in the output are replaced.
    pub replace: bool,
    /// Whether the files are on other hosts, and are not checked here.
    pub elsewhere: bool,
    /// Whether each PE has its own folder, without its name.
    pub apart: bool,
}

impl AskedMessages {
    /// Returns the requested messages, or all errors in the options.
    pub fn of(
        args: &RoundArgs,
        layout: Layout,
        spread: bool,
    ) -> Result<AskedMessages, Vec<RequestError>> {
        let mut faults = Vec::new();
        let kinds = [
            ("--input", args.input.is_some()),
            ("--size", args.transfer.size.is_some()),
            ("--lengths", args.transfer.lengths.is_some()),
        ];
        let given: Vec<_> = kinds
            .iter()
            .filter(|(_, given)| *given)
            .map(|(kind, _)| *kind)
            .collect();
        for pair in given.windows(2) {
            faults.push(RequestError::TwoPayloads(pair[0], pair[1]));
        }
        let (input, output) = ("--input", "--output");
        for (option, is_given, needs, is_there) in [
            (input, args.input.is_some(), output, args.output.is_some()),
            (output, args.output.is_some(), input, args.input.is_some()),
            ("--spread", spread, input, args.input.is_some()),
            ("--force", args.force, output, args.output.is_some()),
        ] {
            if is_given && !is_there {
                faults.push(RequestError::Alone { option, needs });
            }
        }
        let asked = if let (Some(input), Some(output)) = (&args.input, &args.output) {
            Some(AskedMessages::Files {
                input: input.clone(),
                output: output.clone(),
            })
        } else if let Some(size) = &args.transfer.size {
            let option = "--size";
            match parse_bytes(size) {
                Ok(size) => Some(AskedMessages::Synthetic {
                    option,
                    lengths: Lengths::of_size(size),
                }),
                Err(source) => {
                    faults.push(RequestError::Size { option, source });
                    None
                }
            }
        } else if let Some(lengths) = &args.transfer.lengths {
            match lengths.parse::<Lengths>() {
                Ok(Lengths::List(list)) if layout == Layout::Pieces && list.len() > 1 => {
                    faults.push(RequestError::ListOfPieces);
                    None
                }
                Err(_) if layout == Layout::Pieces && !lengths.contains(':') => {
                    Some(AskedMessages::Matrix(lengths.into()))
                }
                Ok(lengths) => Some(AskedMessages::Synthetic {
                    option: "--lengths",
                    lengths,
                }),
                Err(error) => {
                    faults.push(RequestError::NoLengths(error));
                    None
                }
            }
        } else {
            if given.is_empty() {
                faults.push(RequestError::NoPayload);
            }
            None
        };
        match asked {
            Some(asked) if faults.is_empty() => Ok(asked),
            _ => Err(faults),
        }
    }

    /// Makes all paths absolute.
    pub fn absolute(self) -> AskedMessages {
        // An empty path was refused before.
        let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            AskedMessages::Files { input, output } => AskedMessages::Files {
                input: from_root(input),
                output: from_root(output),
            },
            AskedMessages::Matrix(path) => AskedMessages::Matrix(from_root(path)),
            synthetic => synthetic,
        }
    }

    /// Returns the messages of an operation on a tree, and the lengths by delivery.
    pub fn for_tree(
        self,
        tree: &Tree,
        operation: Algorithm,
        files: FilesAt,
    ) -> Result<(Payload, Vec<u64>), Vec<RequestError>> {
        let pes = tree.len();
        if operation.collective().deliveries(tree) > MAX_DELIVERIES.max(pes) {
            let most = MAX_DELIVERIES.isqrt();
            return Err(vec![RequestError::TooManyPairs { pes, most }]);
        }
        match self {
            AskedMessages::Files { input, output } => {
                // The longest name.
                let last = PeId(tree.len().saturating_sub(1) as u32);
                let folder = match operation.collective().is_of_pairs() {
                    true => payload::destination(&output, last),
                    false => output.clone(),
                };
                if let Some(why) = payload::output_fault(&folder, last) {
                    return Err(vec![RequestError::Output { path: output, why }]);
                }
                let bytes = match files.elsewhere {
                    true => vec![0; operation.collective().deliveries(tree)],
                    false => measure_input(&input, operation, files.spread, tree, |_| false)?,
                };
                let payload = Payload::Files(FilePayload {
                    input,
                    spread: files.spread,
                    output,
                    replace: files.replace,
                    apart: files.apart,
                });
                Ok((payload, bytes))
            }
            AskedMessages::Matrix(path) => {
                let lengths = read_matrix(&path, tree.len()).map_err(|fault| vec![fault])?;
                let bytes = operation.collective().by_delivery(tree, &lengths);
                Ok((Payload::Synthetic { lengths }, bytes))
            }
            AskedMessages::Synthetic { option, lengths } => {
                let lengths = deal(option, &lengths, tree, operation.collective().layout());
                let lengths = lengths.map_err(|fault| vec![fault])?;
                let bytes = operation.collective().by_delivery(tree, &lengths);
                Ok((Payload::Synthetic { lengths }, bytes))
            }
        }
    }
}

/// Computes the lengths of all messages on a tree.
fn deal(
    option: &'static str,
    lengths: &Lengths,
    tree: &Tree,
    layout: Layout,
) -> Result<Vec<u64>, RequestError> {
    let pes = tree.len();
    let fault = |source| RequestError::Lengths { option, source };
    let dealt = |lengths: &Lengths, count| lengths.deal(count).map_err(fault);
    match (layout, lengths) {
        (Layout::Pieces, _) => {
            // Row by row, without the message of a PE to itself.
            let lengths = match lengths {
                Lengths::List(one) => &Lengths::of_size(one.first().copied().unwrap_or(0)),
                dealt => dealt,
            };
            let mut others = dealt(lengths, pes * (pes - 1))?.into_iter();
            let cell = |i| {
                if i % (pes + 1) == 0 {
                    0
                } else {
                    others.next().unwrap_or(0)
                }
            };
            Ok((0..pes * pes).map(cell).collect())
        }
        (Layout::Shards, _) => lengths.deal_to_all(pes).map_err(fault),
        _ => {
            let lengths = dealt(lengths, pes - 1)?;
            match layout == Layout::Whole && !are_alike(&lengths) {
                true => Err(RequestError::SeveralLengths),
                false => Ok(lengths),
            }
        }
    }
}

/// Reads the lengths of a total exchange, row by row.
fn read_matrix(path: &Path, pes: usize) -> Result<Vec<u64>, RequestError> {
    let bytes = Cells {
        unit: "bytes",
        most: MAX_TOTAL_BYTES,
    };
    let rows = matrix_file::load(path, bytes).map_err(RequestError::Matrix)?;
    if rows.len() != pes {
        let rows = rows.len();
        return Err(RequestError::MatrixOfOthers { rows, pes });
    }
    let lengths: Vec<u64> = rows.into_iter().flatten().collect();
    let total = lengths.iter().map(|&bytes| u128::from(bytes)).sum();
    match total > u128::from(MAX_TOTAL_BYTES) {
        true => Err(RequestError::Lengths {
            option: "--lengths",
            source: DealError::TotalTooLarge { total },
        }),
        false => Ok(lengths),
    }
}

/// Returns whether these are the lengths of one message.
fn are_alike(lengths: &[u64]) -> bool {
    lengths.windows(2).all(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use flitcast_proto::tree::TreeSpec;

    use super::*;

    const GOSSIP: Algorithm = Algorithm::GOSSIP_FLOOD;
    const EXCHANGE: Algorithm = Algorithm::EXCHANGE_TREE;

    fn star(pes: usize) -> Tree {
        let tree: TreeSpec = format!("star:{pes}").parse().unwrap();
        tree.build().unwrap()
    }

    fn synthetic(lengths: &str) -> AskedMessages {
        AskedMessages::Synthetic {
            option: "--lengths",
            lengths: lengths.parse().unwrap(),
        }
    }

    fn owed(asked: AskedMessages, operation: Algorithm) -> Result<Vec<u64>, String> {
        let owed = asked.for_tree(&star(3), operation, FilesAt::default());
        let owed = owed.map(|(_, bytes)| bytes);
        owed.map_err(|faults| faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn lengths_are_those_of_each_pe_or_of_each_pair() {
        let gossip = owed(synthetic("1,0,3"), GOSSIP);
        assert_eq!(gossip, Ok(vec![0, 1, 1, 0, 0, 0, 3, 3, 0]));
        let ramp = owed(synthetic("ramp:40"), GOSSIP);
        assert_eq!(ramp, Ok(vec![0, 20, 20, 40, 0, 40, 60, 60, 0]));
        let exchange = Ok(vec![0, 5, 5, 5, 0, 5, 5, 5, 0]);
        assert_eq!(owed(synthetic("5"), EXCHANGE), exchange);
        assert_eq!(owed(synthetic("equal:5"), EXCHANGE), exchange);
        let short = owed(synthetic("1,2"), GOSSIP).unwrap_err();
        assert!(short.contains("one for each PE from P0 to P2"), "{short}");
        let many = synthetic("5").for_tree(&star(1025), EXCHANGE, FilesAt::default());
        let many = many.unwrap_err()[0].to_string();
        assert!(many.contains("1025 PEs") && many.contains("1024"), "{many}");
    }

    #[test]
    fn a_matrix_says_the_lengths_of_all_pairs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bytes.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            owed(AskedMessages::Matrix(path.clone()), EXCHANGE)
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
