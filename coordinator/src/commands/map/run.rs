//! Runs the command on every shard; again if it fails and retries are left, and in a new process if a
//! PE dies.

use std::collections::BTreeSet;

use flitcast_proto::PeId;
use tokio_util::sync::CancellationToken;

use super::joblog::JobLog;
use super::moving::Mover;
use super::order::Order;
use super::queue::Queue;
use super::task::{CommandFate, ShardTask};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::launch::cluster::Cluster;
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::rounds::run::{Interrupted, RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;

/// Runs the command for all tasks, each as often as its retries permit, until failures or a signal halt
/// the queue. Returns the PEs that are dead and cannot be started again, and the end by a signal.
///
/// # Errors
///
/// Returns an error if partial output could not be removed.
pub async fn run(
    request: &Request,
    order: &Order,
    tasks: &mut [ShardTask],
    mut joblog: Option<JobLog>,
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<(BTreeSet<PeId>, Option<Interrupted>)> {
    let retries = order.retries;
    let mut dead_pes = BTreeSet::new();
    let mut is_halted = false;
    let mut interrupted = None;
    loop {
        let due = tasks.iter().filter(|task| task.is_due(retries));
        let due: BTreeSet<PeId> = due.map(|task| task.home).collect();
        if due.is_empty() || is_halted || interrupted.is_some() {
            return Ok((dead_pes, interrupted));
        }
        // PEs that join are present even without a task.
        let pes: Vec<PeId> = match request.site.placement.is_joined() {
            true => {
                let all = request.site.tree.pes();
                all.filter(|pe| !dead_pes.contains(pe)).collect()
            }
            false => due.iter().copied().collect(),
        };
        let done = async |cluster: &mut Cluster, console: &Console, _, ends: &CancellationToken| {
            let are_movable = tasks.iter().all(|task| task.is_named);
            let mut mover = Mover::new(request, are_movable, logs);
            let log = joblog.as_mut();
            let queue = Queue::new(cluster, console, order, tasks, log, &mut mover);
            is_halted = queue.work_off(ends).await;
            mover.stop().await;
            Ok(())
        };
        match on_a_cluster(request, &pes, logs, interrupts, done, |_| true).await? {
            RunResult::Interrupted(signal) => interrupted = Some(signal),
            RunResult::Done(()) => {}
            RunResult::Failed(failure) => {
                let at_fault = |pe: &PeId| failure.failed_pes.contains(pe);
                let all = !due.iter().any(at_fault);
                for task in tasks.iter_mut().filter(|task| task.is_due(retries)) {
                    if all || at_fault(&task.home) {
                        task.runs += 1;
                        task.fate = CommandFate::Lost(failure.cause_of(task.home).to_owned());
                    }
                }
                dead_pes.extend(failure.failed_pes.iter().filter(|pe| !due.contains(pe)));
            }
        }
        if request.site.placement.is_joined() {
            let lost = |task: &&ShardTask| {
                matches!(task.fate, CommandFate::Lost(_)) && !task.is_due(retries)
            };
            dead_pes.extend(tasks.iter().filter(lost).map(|task| task.pe));
            // Their other shards are lost with them.
            let is_left =
                |task: &&mut ShardTask| task.is_due(retries) && dead_pes.contains(&task.home);
            for task in tasks.iter_mut().filter(is_left) {
                task.runs = retries + 1;
                task.fate = CommandFate::Lost("is gone".to_owned());
            }
        }
    }
}
