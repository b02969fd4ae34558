//! The move of a shard to a PE without further ones, where PEs have separate files: a broadcast from P0 to
//! that PE alone, on its own cluster, while others run commands.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::pin::Pin;
use std::sync::Arc;

use flitcast_node::payload::destination;
use flitcast_plan::Algorithm;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FilePayload, Payload};
use tokio_util::sync::{CancellationToken, DropGuard};

use flitcast_cluster::job::request::{Messages, Request};
use flitcast_cluster::options::order::MessageOrder;
use flitcast_cluster::options::transfer::GuardArgs;
use flitcast_cluster::rounds::outcome::DeliverySummary;
use flitcast_cluster::rounds::run::{RunResult, rounds};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::system::interrupts::Interrupts;

/// Moves shards, one at a time.
pub struct Mover {
    /// The scatter of the shards; `None` if shards stay where they are.
    scatter: Option<Request>,
    logs: Vec<String>,
    /// The PEs to which a shard could not be moved.
    failed: BTreeSet<PeId>,
    under_way: Option<Move>,
}

/// A move that has begun.
struct Move {
    /// Index of the task.
    task: usize,
    to: PeId,
    /// Ends the move when it is dropped.
    given_up: DropGuard,
    /// The end; an error is the reason why the shard has not arrived.
    end: Pin<Box<dyn Future<Output = Result<(), String>>>>,
}

impl Mover {
    /// Creates the mover of shards that a scatter has sent. A process is in one cluster at a time. Those of
    /// `flitcast up` run commands, so a move starts further processes on their hosts. PEs that other programs
    /// start have no further processes, so their shards stay where they are.
    pub fn new(scatter: &Request, are_movable: bool, logs: &[String]) -> Mover {
        let started = scatter.site.placement.beside().filter(|_| are_movable);
        let scatter = started.map(|started| {
            let mut scatter = scatter.clone();
            if scatter.site.placement.kept.is_some() {
                scatter.site.guard = Guard::choose(&GuardArgs::default(), started);
                scatter.site.placement = started.clone();
            }
            scatter
        });
        Mover {
            scatter,
            logs: logs.to_vec(),
            failed: BTreeSet::new(),
            under_way: None,
        }
    }

    /// Returns whether a move to a PE can begin now. P0 has all shards, and runs none.
    pub fn is_free_for(&self, to: PeId) -> bool {
        let scatter = self.scatter.as_ref();
        let is_below = scatter.is_some_and(|it| it.site.tree.root() != to);
        is_below && self.under_way.is_none() && !self.failed.contains(&to)
    }

    /// Returns the PE to which a shard is being moved.
    pub fn moves_to(&self) -> Option<PeId> {
        self.under_way.as_ref().map(|it| it.to)
    }

    pub fn begin(&mut self, task: usize, shard: &OsStr, to: PeId) {
        let Some(request) = self.scatter.as_ref().and_then(|it| request(it, shard, to)) else {
            self.failed.insert(to);
            return;
        };
        let (given_up, logs) = (CancellationToken::new(), self.logs.clone());
        let mut interrupts = Interrupts::of(given_up.clone());
        let end = Box::pin(async move {
            let recorder = |_: &DeliverySummary| None;
            match rounds(&request, &logs, &mut interrupts, &recorder, |_| true).await {
                Ok(RunResult::Done(_)) => Ok(()),
                Ok(RunResult::Failed(failure)) => Err(failure.cause),
                Ok(RunResult::Interrupted(_)) => Err("interrupted".to_owned()),
                Err(error) => Err(format!("{error:#}")),
            }
        });
        self.under_way = Some(Move {
            task,
            to,
            given_up: given_up.drop_guard(),
            end,
        });
    }

    /// Waits for the end of the move that has begun. Returns the task and the PE that has its shard now, or
    /// the reason why it has not. A caller may drop the future and call this again.
    pub async fn ended(&mut self) -> (usize, PeId, Result<(), String>) {
        let Some(Move { task, to, end, .. }) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let (task, to, end) = (*task, *to, end.await);
        self.under_way = None;
        if end.is_err() {
            self.failed.insert(to);
        }
        (task, to, end)
    }

    /// Gives up the move that has begun, and waits until all its processes have ended.
    pub async fn stop(&mut self) {
        if let Some(left) = self.under_way.take() {
            drop(left.given_up);
            let _ = left.end.await;
        }
    }
}

/// Returns the request that sends a shard from P0 to a PE, beside the PE's own shards; `None` if P0 cannot
/// send to the PE directly.
fn request(scatter: &Request, shard: &OsStr, to: PeId) -> Option<Request> {
    let Payload::Files(files) = &scatter.messages.payload else {
        return None;
    };
    let mut request = scatter.clone();
    let site = &mut request.site;
    let root = site.tree.root();
    let others = site.tree.pes().filter(|pe| ![root, to].contains(pe));
    let others: Vec<PeId> = others.collect();
    let can_reach = |one, other| site.reach.leads(site.nodes.as_deref(), one, other);
    let tree = site.tree.without(&others, can_reach).tree;
    if !tree.contains(to) {
        return None;
    }
    for pe in tree.absent() {
        site.links[pe.index()] = None;
    }
    site.name = format!("{root} to {to}");
    site.tree = Arc::new(tree);
    (request.choice, request.profile) = (None, None);
    request.way.operation = Algorithm::BROADCAST_ROUNDS;
    request.way.order = MessageOrder::default();
    let payload = FilePayload {
        input: files.input.join(shard),
        output: destination(&files.output, to).join(shard),
        spread: false,
        replace: true,
        // The output is that of one PE.
        apart: true,
        shards: Vec::new(),
        ..files.clone()
    };
    let lengths = vec![0; request.site.tree.len()];
    request.messages = Messages::new(Payload::Files(payload), lengths);
    Some(request)
}
