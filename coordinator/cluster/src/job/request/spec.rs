//! A command line of any operation, before it is checked.

use std::ffi::OsString;

use flitcast_plan::Algorithm;

use super::input;
use super::open_choices::OpenChoices;
use crate::options::args::RoundArgs;
use crate::options::baseline::Baseline;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::ports::Ports;
use crate::options::transfer::Division;
use crate::options::tree::SpanningArg;
use crate::site::topology::Topology;

/// The parts of a request that each command computes itself.
pub struct RequestSpec {
    /// The options that all operations have.
    pub round: RoundArgs,
    /// The option that names the root, and its value.
    pub root: Option<(&'static str, String)>,
    /// Whether all files are distributed over the PEs.
    pub spread: bool,
    /// The entries of the input that are distributed whole; empty if all files are.
    pub shards: Vec<OsString>,
    /// The division of one file; `None` if it is not divided.
    pub division: Option<Division>,
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
    /// The order of the messages as it was typed, or the error that there is none to choose.
    pub order: anyhow::Result<Option<String>>,
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
            shards: Vec::new(),
            division: None,
            spanning,
            lays: None,
            ports: None,
            baseline: None,
            ways: None,
            order: Ok(None),
            like,
        }
    }

    /// Returns the option that distributes the input over the PEs, if there is one.
    pub fn dealt_by(&self) -> Option<&'static str> {
        let option = match self.division {
            Some(_) => "dividing a file (--lines, --blocks, --split)",
            None => "--spread",
        };
        self.spread.then_some(option)
    }

    /// Takes the number of PEs from the entries of the input where no option gives it, or else adds the
    /// reason why the input does not give it.
    pub fn count_by_input(&mut self) {
        let input = self.round.input.as_deref().filter(|_| !self.spread);
        let layout = self.like.collective().layout();
        let tree = &mut self.round.transfer.tree;
        input::count_by_input(tree, input, layout);
        if tree.pe_options().is_empty() {
            tree.uncounted = match (input, self.division, self.spread) {
                (_, Some(_), _) => Some(
                    "the number of parts is not given; add -n N, --split N or --hosts HOSTS"
                        .to_owned(),
                ),
                (_, None, true) => Some(
                    "--spread: the number of PEs is not given; add -n N or --hosts HOSTS"
                        .to_owned(),
                ),
                (Some(input), ..) => input::uncounted(input, layout),
                (None, ..) => None,
            };
        }
    }

    /// Returns an error with the options that fit the entries of the input, if these are too many.
    pub fn count_fault(&self, topology: &Topology) -> Option<anyhow::Error> {
        let input = self.round.input.as_deref().filter(|_| !self.spread)?;
        input::count_fault(input, self.like.collective().layout(), topology)
    }
}
