//! The content of a picture: one round as measured and as predicted.

use std::borrow::Cow;

use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::outcome::{MeasuredRound, Outcome};
use flitcast_proto::ops::Collective;
use flitcast_proto::spans::{Port, Span, SpanItem};
use flitcast_proto::wire::MAX_REPORT_SPANS;
use flitcast_proto::{MessageId, PeId, Tree};

use crate::render::tree::in_tree_order;

pub struct Scene<'a> {
    pub collective: Collective,
    pub tree: &'a Tree,
    /// Whether data crosses edges of the tree only.
    pub is_over_tree: bool,
    /// The PEs as the user calls them, by PE index: "P1" or "P1 beta".
    pub names: Vec<String>,
    /// Lengths by delivery.
    pub bytes: &'a [u64],
    pub rounds: u64,
    /// The measured round that the picture shows.
    pub measured: &'a MeasuredRound,
    /// Predicted spans by PE index, relative to the trigger of the root.
    pub predicted: &'a [Vec<Span>],
}

impl<'a> Scene<'a> {
    /// Returns the scene of a run, or `None` if no round was recorded.
    pub fn of(request: &'a Request, outcome: &'a Outcome) -> Option<Scene<'a>> {
        let (tree, operation) = (&request.site.tree, request.way.operation);
        let called = |pe| request.site.placement.called(pe);
        Some(Scene {
            collective: operation.collective(),
            tree,
            is_over_tree: operation.fits().stays_in_tree(),
            names: tree.ids().map(called).collect(),
            bytes: &outcome.rounds.bytes,
            rounds: request.rounds,
            measured: outcome.rounds.recorded.as_ref()?,
            predicted: &outcome.rounds.prediction.spans,
        })
    }

    /// Returns the PEs from top to bottom: each above its children's subtrees, or by number where
    /// data does not go over the tree.
    pub fn rows(&self) -> Vec<PeId> {
        match self.is_over_tree {
            true => in_tree_order(self.tree),
            false => self.tree.pes().collect(),
        }
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
        let round = self.measured.round;
        match self.rounds {
            1 => "round 1 of 1".to_owned(),
            rounds => format!("round {round} of {rounds}, the one nearest to the median"),
        }
    }

    /// Returns the messages that are not null.
    pub fn messages(&self) -> impl Iterator<Item = SceneMessage> {
        let all = self.collective.messages(self.tree);
        let all = all.filter_map(|address| self.message(address.id));
        all.filter(|message| message.bytes > 0)
    }

    /// Returns the message of which an id is a part.
    pub fn whole(&self, id: MessageId) -> MessageId {
        self.collective.whole(self.tree, id).0
    }

    /// Returns the message with this id, or the one of which it is a part.
    pub fn message(&self, id: MessageId) -> Option<SceneMessage> {
        let id = self.whole(id);
        let address = self.collective.address(self.tree, id)?;
        Some(SceneMessage {
            id,
            source: address.source,
            destination: address.destination.one(),
            bytes: self.collective.length(self.tree, address, self.bytes),
        })
    }

    /// Returns the name of an item: `M_5`, `M_3,5` for a message of an exchange, `token`.
    pub fn item_name(&self, item: SpanItem) -> Cow<'static, str> {
        let SpanItem::Message(id) = item else {
            return control_name(item).into();
        };
        let message = self.message(id);
        let ends = message.as_ref().map(|it| (it.source, it.destination));
        match ends {
            Some((source, Some(to))) if self.collective.is_of_pairs() => {
                format!("M_{},{}", source.0, to.0).into()
            }
            _ => message.map_or(id, |it| it.id).to_string().into(),
        }
    }
}

/// A message as pictures show it.
pub struct SceneMessage {
    pub id: MessageId,
    pub source: PeId,
    /// The destination, if there is one only.
    pub destination: Option<PeId>,
    pub bytes: u64,
}

/// Returns the name of a control item, or of a message in general.
pub fn control_name(item: SpanItem) -> &'static str {
    match item {
        SpanItem::Message(_) => "message",
        SpanItem::Wakeup => "wakeup call",
        SpanItem::Token => "token",
        SpanItem::Certificate => "certificate",
        SpanItem::Order => "order",
        SpanItem::Receipt => "receipt",
    }
}

pub fn port_name(port: Port) -> &'static str {
    match port {
        Port::Send => "send",
        Port::Receive => "receive",
        Port::Files => "files",
    }
}
