//! The content of a picture: one round as measured and as predicted.

use std::borrow::Cow;
use std::fmt;

use flitcast_proto::ops::Layout;
use flitcast_proto::spans::{Port, Span, SpanItem};
use flitcast_proto::wire::MAX_REPORT_SPANS;
use flitcast_proto::{PeId, Tree};

use crate::render::tree::in_tree_order;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::rounds::rounds_result::MeasuredRound;

/// A round on a tree, measured and predicted.
pub struct Scene<'a> {
    pub tree: &'a Tree,
    /// Bytes of the message named after each PE, by PE index; empty if a PE has several messages.
    pub bytes: Cow<'a, [u64]>,
    pub rounds: u64,
    /// The measured round that the picture shows.
    pub measured: &'a MeasuredRound,
    /// Predicted spans by PE index, relative to the trigger of the root.
    pub predicted: &'a [Vec<Span>],
}

impl<'a> Scene<'a> {
    /// Returns the scene of a run, or `None` if no round was recorded.
    pub fn of(request: &'a Request, outcome: &'a Outcome) -> Option<Scene<'a>> {
        let operation = request.way.operation;
        let bytes = &outcome.rounds.bytes[..];
        let bytes = match operation.collective().layout() {
            Layout::Shards => operation
                .collective()
                .by_message(&request.site.tree, bytes)
                .into(),
            Layout::Pieces => Cow::default(),
            _ => bytes.into(),
        };
        Some(Scene {
            tree: &request.site.tree,
            bytes,
            rounds: request.rounds,
            measured: outcome.rounds.recorded.as_ref()?,
            predicted: &outcome.rounds.prediction.spans,
        })
    }

    /// Returns the PEs in the order in which a tree is printed: each above its children's subtrees.
    pub fn rows(&self) -> Vec<PeId> {
        in_tree_order(self.tree)
    }

    /// Returns the ports of the PEs; includes that of files if any span has it.
    pub fn ports(&self) -> &'static [Port] {
        let all = self.measured.spans.iter().chain(self.predicted).flatten();
        match all.into_iter().any(|span| span.port == Port::Files) {
            true => &[Port::Send, Port::Receive, Port::Files],
            false => &[Port::Send, Port::Receive],
        }
    }

    /// Returns the PEs whose spans reached the limit, so that later spans are missing.
    pub fn cut(&self) -> Vec<PeId> {
        let pes = self.tree.pes();
        pes.filter(|pe| self.measured.spans[pe.index()].len() >= MAX_REPORT_SPANS)
            .collect()
    }

    /// Returns the position of the round, such as "round 3 of 5, the one nearest to the median".
    pub fn which(&self) -> String {
        match self.rounds {
            1 => "round 1 of 1".to_owned(),
            rounds => format!(
                "round {} of {rounds}, the one nearest to the median",
                self.measured.round
            ),
        }
    }
}

/// The name of an item in pictures: `M_5`, `token`.
pub struct ItemName(pub SpanItem);

impl fmt::Display for ItemName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SpanItem::Message(pe) => write!(f, "M_{}", pe.0),
            SpanItem::Wakeup => f.write_str("wakeup call"),
            SpanItem::Token => f.write_str("token"),
            SpanItem::Certificate => f.write_str("certificate"),
            SpanItem::Order => f.write_str("order"),
            SpanItem::Receipt => f.write_str("receipt"),
        }
    }
}

/// Returns the name of a port in pictures.
pub fn port_name(port: Port) -> &'static str {
    match port {
        Port::Send => "send",
        Port::Receive => "receive",
        Port::Files => "files",
    }
}
