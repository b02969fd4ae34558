//! A command line of any operation, before it is checked.

use flitcast_plan::Algorithm;

use super::open_choices::OpenChoices;
use crate::options::args::RoundArgs;
use crate::options::baseline::Baseline;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::order::MessageOrder;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;

/// The parts of a request that each command computes itself.
pub struct RequestSpec {
    /// The options that all operations have.
    pub round: RoundArgs,
    /// The option that names the root, and its value.
    pub root: Option<(&'static str, String)>,
    /// Whether all files are distributed over the PEs.
    pub spread: bool,
    /// The way to span a network.
    pub spanning: SpanningArg,
    /// The algorithm, if it may build its own tree.
    pub lays: Option<BroadcastAlgorithm>,
    /// The requested use of ports.
    pub ports: Option<Ports>,
    /// The baseline, if the algorithm is one.
    pub baseline: Option<Baseline>,
    /// The alternatives, if the command line leaves any open.
    pub ways: Option<OpenChoices>,
    /// The order of the messages, or the error that there is none to choose.
    pub order: anyhow::Result<MessageOrder>,
    /// An operation with messages of this kind, so that they can be checked without a valid
    /// operation.
    pub like: Algorithm,
}

impl RequestSpec {
    /// Creates a command line without any option, on a tree that is spanned in this way.
    pub fn new(round: RoundArgs, spanning: SpanningArg, like: Algorithm) -> RequestSpec {
        RequestSpec {
            round,
            root: None,
            spread: false,
            spanning,
            lays: None,
            ports: None,
            baseline: None,
            ways: None,
            order: Ok(MessageOrder::Tail),
            like,
        }
    }
}
