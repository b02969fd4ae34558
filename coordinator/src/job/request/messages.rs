//! What the messages of a request are made of, and where they go: what can be wrong
//! with that before anything is written.

use std::path::{Path, PathBuf};

use flitcast_node::payload::{self, Others, PayloadError};
use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::Payload;
use flitcast_proto::{PeId, Tree};

use super::RequestError;
use crate::options::args::RoundArgs;
use crate::options::workload::Lengths;
use crate::system::folder;
use crate::text::units::{MAX_TOTAL_BYTES, parse_bytes};

/// The messages of a request: what they are made of, and which of them are sent.
#[derive(Clone, Debug)]
pub struct Messages {
    /// What they are made of.
    pub payload: Payload,
    /// Bytes of M_i, by PE index, as far as it is known here.
    pub bytes: Vec<u64>,
    /// Whose messages are not sent, since they were delivered before; in increasing order.
    pub left_out: Vec<PeId>,
    /// Names the undertaking that this is a part of; 0 before it has begun.
    pub undertaking: u64,
    /// Whether a record of that is on the disk.
    pub recorded: bool,
    /// Of a scatter: where a gather will deliver that follows, and must find nothing.
    pub later_output: Option<PathBuf>,
}

impl Messages {
    /// All of them, of an undertaking that has not begun.
    pub fn new(payload: Payload, bytes: Vec<u64>) -> Messages {
        Messages {
            payload,
            bytes,
            left_out: Vec::new(),
            undertaking: 0,
            recorded: false,
            later_output: None,
        }
    }
}

/// What the messages are to be made of, whatever the tree.
pub enum AskedMessages {
    /// Files.
    Files {
        /// Where from.
        input: PathBuf,
        /// Where to.
        output: PathBuf,
    },
    /// Bytes that every receiver can check.
    Synthetic {
        /// The option that asks for them.
        option: &'static str,
        /// How many.
        lengths: Lengths,
    },
}

impl AskedMessages {
    /// All that is wrong with what was asked for, at once, if something is.
    pub fn of(args: &RoundArgs, spread: bool) -> Result<AskedMessages, Vec<RequestError>> {
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
            match lengths.parse() {
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

    /// With paths that are the same from wherever somebody looks.
    pub fn absolute(self) -> AskedMessages {
        // A path that is empty was refused.
        let from_root = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        match self {
            AskedMessages::Files { input, output } => AskedMessages::Files {
                input: from_root(input),
                output: from_root(output),
            },
            synthetic => synthetic,
        }
    }

    /// What is owed on a certain tree; files that lie `elsewhere` are not looked at.
    pub fn for_tree(
        self,
        tree: &Tree,
        layout: Layout,
        spread: bool,
        replace: bool,
        elsewhere: bool,
    ) -> Result<(Payload, Vec<u64>), Vec<RequestError>> {
        match self {
            AskedMessages::Files { input, output } => {
                let last = PeId(tree.len().saturating_sub(1) as u32);
                if let Some(why) = payload::output_fault(&output, last) {
                    return Err(vec![RequestError::Output { path: output, why }]);
                }
                let bytes = match elsewhere {
                    true => vec![0; tree.len()],
                    false => measure_input(&input, layout, spread, tree, |_| false)?,
                };
                let payload = Payload::Files {
                    input,
                    spread,
                    output,
                    replace,
                };
                Ok((payload, bytes))
            }
            AskedMessages::Synthetic { option, lengths } => match lengths.deal(tree.len() - 1) {
                Ok(lengths) if layout == Layout::Whole && !are_alike(&lengths) => {
                    Err(vec![RequestError::SeveralLengths])
                }
                Ok(lengths) => {
                    let mut bytes = lengths.clone();
                    bytes.insert(tree.root().index(), 0);
                    Ok((Payload::Synthetic { lengths }, bytes))
                }
                Err(source) => Err(vec![RequestError::Lengths { option, source }]),
            },
        }
    }
}

/// Whether these are the lengths of one message.
fn are_alike(lengths: &[u64]) -> bool {
    lengths.windows(2).all(|pair| pair[0] == pair[1])
}

/// Reads the input as the PEs will: on one machine, what is wrong there is wrong here. The
/// lengths by delivery, of those that are not left out. Dealt, files are only dealt as before if
/// none has changed, so all are looked at.
pub fn measure_input(
    input: &Path,
    layout: Layout,
    spread: bool,
    tree: &Tree,
    left_out: impl Fn(PeId) -> bool,
) -> Result<Vec<u64>, Vec<RequestError>> {
    let all = |faults: Vec<PayloadError>| {
        let faults = faults.into_iter().map(RequestError::Input);
        faults.collect::<Vec<_>>()
    };
    let mut contents = match layout {
        Layout::ByDestination | Layout::BySource | Layout::Shards | Layout::Pieces => {
            payload::scatter_input(input, spread, Others::of(tree)).map_err(all)?
        }
        Layout::Whole => {
            let whole = payload::whole_input(input.to_owned());
            vec![Some(whole.map_err(|fault| vec![fault]).map_err(all)?)]
        }
    };
    if layout != Layout::Whole {
        for (pe, content) in tree.ids().zip(&mut contents) {
            content.take_if(|_| !spread && left_out(pe));
        }
    }
    let measured = payload::measure_all(&contents, || {}).map_err(all)?;
    let sizes: Vec<u64> = measured.iter().map(|message| message.bytes).collect();
    let total = sizes
        .iter()
        .try_fold(0u64, |sum, &bytes| sum.checked_add(bytes));
    let owed = |pe: PeId| pe != tree.root() && tree.contains(pe) && !left_out(pe);
    match total {
        Some(total) if total > MAX_TOTAL_BYTES => {
            Err(vec![RequestError::InputTooLong(input.to_owned())])
        }
        Some(bytes) if layout == Layout::Whole => {
            let lengths = tree.ids().map(|pe| bytes * u64::from(owed(pe)));
            Ok(lengths.collect())
        }
        Some(_) => Ok(sizes),
        None => Err(vec![RequestError::InputTooLong(input.to_owned())]),
    }
}

/// What is wrong with an output directory, without writing to it.
pub fn output_fault(output: &Path, input: Option<&Path>, force: bool) -> Option<RequestError> {
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
        match std::fs::read_dir(output).map(|mut entries| entries.next().is_some()) {
            Ok(true) if !force => {
                return fault(
                    "it holds files already; --force replaces those that arrive anew".to_owned(),
                );
            }
            Ok(_) => {}
            Err(error) => return fault(error.to_string()),
        }
    }
    // What is read must not be written to in the same run.
    let inside =
        input.and_then(|input| Some((input.canonicalize().ok()?, standing.canonicalize().ok()?)));
    match inside {
        Some((input, standing)) if standing.starts_with(&input) => {
            fault("it lies inside the input".to_owned())
        }
        _ => None,
    }
}
