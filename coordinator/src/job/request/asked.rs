//! A command line of any operation, before it is checked.

use flitcast_proto::PeId;
use flitcast_proto::ops::Operation;

use super::ways::Ways;
use crate::job::fault::RequestError;
use crate::options::args::RoundArgs;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::order::MessageOrder;
use crate::options::ports::Ports;
use crate::options::tree::SpanningArg;
use crate::ways::baseline::Baseline;

/// The parts of a request that each command computes itself.
pub struct Asked {
    pub round: RoundArgs,
    /// The option that names the root, and the root.
    pub root: Option<(&'static str, PeId)>,
    pub spread: bool,
    pub spanning: SpanningArg,
    /// The algorithm, if it may build its own tree.
    pub lays: Option<BroadcastAlgorithm>,
    pub ports: Option<Ports>,
    pub baseline: Option<Baseline>,
    pub ways: Option<Ways>,
    /// The order of the messages, or the error that there is none to choose.
    pub order: Result<MessageOrder, RequestError>,
    /// An operation with messages of this kind, so that they can be checked without a valid
    /// operation.
    pub like: Operation,
}
