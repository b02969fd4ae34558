//! The messages of a request: their content and their destinations, with all checks that are possible
//! before anything is written.

use std::path::{Path, PathBuf};

use flitcast_node::payload::{self, Others, OutputLock, PayloadError};
use flitcast_proto::items::Address;
use flitcast_proto::ops::{Layout, Operation};
use flitcast_proto::wire::MAX_DELIVERIES;
use flitcast_proto::wire::control::{Payload, Version};
use flitcast_proto::{DeliveryId, PeId, Tree};

use super::RequestError;
use crate::files::matrix_file::{self, Cells};
use crate::options::args::RoundArgs;
use crate::options::workload::{DealError, Lengths};
use crate::system::folder;
use crate::text::units::{MAX_TOTAL_BYTES, parse_bytes};

/// The messages of a request: their content, and the selection that is sent.
#[derive(Clone, Debug)]
pub struct Messages {
    /// The content.
    pub payload: Payload,
    /// Lengths by delivery, if they are known here.
    pub bytes: Vec<u64>,
    /// Deliveries that are not sent, because they were made before; in increasing order.
    pub left_out: Vec<DeliveryId>,
    /// The number of the job that this is a part of; 0 before it has begun.
    pub undertaking: u64,
    /// The versions of messages made of files that are known from earlier runs, by message.
    pub versions: Vec<Version>,
    /// Whether a record of the job is on the disk, or is written before the first round.
    pub recorded: bool,
    /// The output of the gather that follows a scatter, which must be empty.
    pub later_output: Option<PathBuf>,
}

impl Messages {
    /// Creates the messages of a job that has not begun, with nothing left out.
    pub fn new(payload: Payload, bytes: Vec<u64>) -> Messages {
        Messages {
            payload,
            bytes,
            left_out: Vec::new(),
            undertaking: 0,
            versions: Vec::new(),
            recorded: false,
            later_output: None,
        }
    }
}

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
        operation: Operation,
        files: FilesAt,
    ) -> Result<(Payload, Vec<u64>), Vec<RequestError>> {
        let pes = tree.len();
        if operation.deliveries(tree) > MAX_DELIVERIES.max(pes) {
            let most = MAX_DELIVERIES.isqrt();
            return Err(vec![RequestError::TooManyPairs { pes, most }]);
        }
        match self {
            AskedMessages::Files { input, output } => {
                // The longest name.
                let last = PeId(tree.len().saturating_sub(1) as u32);
                let folder = match operation.is_of_pairs() {
                    true => payload::destination(&output, last),
                    false => output.clone(),
                };
                if let Some(why) = payload::output_fault(&folder, last) {
                    return Err(vec![RequestError::Output { path: output, why }]);
                }
                let bytes = match files.elsewhere {
                    true => vec![0; operation.deliveries(tree)],
                    false => measure_input(&input, operation, files.spread, tree, |_| false)?,
                };
                let payload = Payload::Files {
                    input,
                    spread: files.spread,
                    output,
                    replace: files.replace,
                    apart: files.apart,
                };
                Ok((payload, bytes))
            }
            AskedMessages::Matrix(path) => {
                let lengths = read_matrix(&path, tree.len()).map_err(|fault| vec![fault])?;
                let bytes = operation.by_delivery(tree, &lengths);
                Ok((Payload::Synthetic { lengths }, bytes))
            }
            AskedMessages::Synthetic { option, lengths } => {
                let lengths = deal(option, &lengths, tree, operation.layout());
                let lengths = lengths.map_err(|fault| vec![fault])?;
                let bytes = operation.by_delivery(tree, &lengths);
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

/// Reads the input as the PEs will: on one machine an error for them is an error here. Returns the
/// lengths by delivery, without those that are left out. The distribution of files only repeats if none
/// has changed, so all are checked.
pub fn measure_input(
    input: &Path,
    operation: Operation,
    spread: bool,
    tree: &Tree,
    left_out: impl Fn(DeliveryId) -> bool,
) -> Result<Vec<u64>, Vec<RequestError>> {
    let all = |faults: Vec<PayloadError>| {
        let faults = faults.into_iter().map(RequestError::Input);
        faults.collect::<Vec<_>>()
    };
    // By id.
    let contents = match operation.layout() {
        Layout::ByDestination | Layout::BySource => {
            payload::scatter_input(input, spread, Others::of(tree))
        }
        Layout::Whole => payload::whole_input(input.to_owned())
            .map(|whole| vec![Some(whole)])
            .map_err(|fault| vec![fault]),
        Layout::Shards => payload::read_input_dir(input, Others::all(tree.len())),
        Layout::Pieces => payload::pieces_input(input, tree.len()),
    };
    let mut contents = contents.map_err(all)?;
    let owed = |it: &DeliveryId| operation.can_deliver(tree, *it) && (spread || !left_out(*it));
    let owed = |message: Address| -> Vec<DeliveryId> {
        let ends = message.ends(tree);
        let deliveries = ends.map(|at| operation.delivery(tree, message.id, at));
        deliveries.filter(owed).collect()
    };
    for message in operation.messages(tree) {
        contents[message.id.index()].take_if(|_| owed(message).is_empty());
    }
    let measured = payload::measure_all(&contents, || {}).map_err(all)?;
    let total = measured
        .iter()
        .try_fold(0u64, |sum, message| sum.checked_add(message.bytes));
    if total.is_none_or(|total| total > MAX_TOTAL_BYTES) {
        return Err(vec![RequestError::InputTooLong(input.to_owned())]);
    }
    let mut bytes = vec![0; operation.deliveries(tree)];
    for message in operation.messages(tree) {
        for delivery in owed(message) {
            bytes[delivery.index()] = measured[message.id.index()].bytes;
        }
    }
    Ok(bytes)
}

/// Returns the error in an output directory, without writing to it; with `has_rows` it has a folder of
/// messages for each PE. Entries named after `pes` PEs may exist: PEs compare them later.
pub fn output_fault(
    output: &Path,
    (has_rows, pes): (bool, usize),
    input: Option<&Path>,
    force: bool,
) -> Option<RequestError> {
    let fault = |why: String| {
        Some(RequestError::Output {
            path: output.to_owned(),
            why,
        })
    };
    let mut standing = output;
    let metadata = loop {
        match std::fs::metadata(standing) {
            Ok(metadata) => break metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if standing.is_symlink() {
                    return fault(format!(
                        "`{}` is a symlink to what does not exist; make the folder that it leads \
                         to, or remove the symlink",
                        standing.display()
                    ));
                }
                standing = match standing.parent() {
                    Some(above) if above.as_os_str().is_empty() => Path::new("."),
                    Some(above) => above,
                    None => return fault(error.to_string()),
                };
            }
            Err(error) => return fault(error.to_string()),
        }
    };
    if !metadata.is_dir() {
        return fault(format!("{} is not a directory", standing.display()));
    }
    if let Err(error) = folder::check_writable(standing) {
        return fault(format!("{} is not writable: {error}", standing.display()));
    }
    if standing == output {
        if let Err(error) = OutputLock::take(output) {
            return fault(error.to_string());
        }
        let found = match payload::in_the_way(output, has_rows, pes) {
            Ok(found) => found,
            Err(error) => return fault(error.to_string()),
        };
        if let Some(found) = found.filter(|_| !force) {
            return fault(format!(
                "it holds files already; --force replaces those that arrive anew, and leaves {} alone",
                found.display()
            ));
        }
    }
    // A run must not write to the files that it reads.
    let inside =
        input.and_then(|input| Some((input.canonicalize().ok()?, standing.canonicalize().ok()?)));
    match inside {
        Some((input, standing)) if standing.starts_with(&input) => {
            fault("it lies inside the input".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::ops::{Exchange, Gossip};
    use flitcast_proto::tree::TreeSpec;

    use std::io::Write as _;

    use super::*;

    const GOSSIP: Operation = Operation::Gossip(Gossip::Flood);
    const EXCHANGE: Operation = Operation::Exchange(Exchange::Tree);

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

    fn owed(asked: AskedMessages, operation: Operation) -> Result<Vec<u64>, String> {
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

    /// Lengths of entries are as in the input; deliveries that are left out have length 0, and their
    /// entries may be missing.
    #[test]
    fn entries_are_measured_by_delivery() {
        let dir = tempfile::tempdir().unwrap();
        let measure = |operation, left_out: &[u32]| {
            let left_out = |it: DeliveryId| left_out.contains(&it.0);
            measure_input(dir.path(), operation, false, &star(3), left_out)
        };
        // All with one modification time, which is a part of a message: another time could change its
        // length.
        let write = |name: &str| {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            (&file).write_all(b"p0").unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        write("p0");
        write("p2");
        let whole = measure(GOSSIP, &[]).unwrap();
        let bytes = whole[1];
        assert!(bytes > 0);
        assert_eq!(whole, [0, bytes, bytes, 0, 0, 0, bytes, bytes, 0]);
        assert_eq!(
            measure(GOSSIP, &[2, 6, 7]).unwrap(),
            [0, bytes, 0, 0, 0, 0, 0, 0, 0]
        );
        for name in ["p0", "p2"] {
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        for name in ["p0/p2", "p1/p0"] {
            let path = dir.path().join(name);
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            write(name);
        }
        let pieces = measure(EXCHANGE, &[3]).unwrap();
        assert_eq!(pieces, [0, 0, bytes, 0, 0, 0, 0, 0, 0]);
        std::fs::write(dir.path().join("p1/p1"), "").unwrap();
        let faults = measure(EXCHANGE, &[]).unwrap_err();
        assert!(faults[0].to_string().contains("p1/p1"), "{}", faults[0]);
    }
}
