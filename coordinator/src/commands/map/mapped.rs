//! The result of a map.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_proto::PeId;

use super::run::ShardTask;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::outcome::Outcome;

/// The result of a map.
#[derive(Debug)]
pub struct Mapped {
    /// The tasks of the PEs that were to get a shard, by PE.
    pub tasks: Vec<ShardTask>,
    /// The last run of the scatter.
    pub scatter: Box<Outcome>,
    /// The total time of the commands.
    pub running: Duration,
    /// The gather, if there was something to gather.
    pub gather: Option<Box<Outcome>>,
    /// Results that were not gathered, with the reasons.
    pub left_behind: BTreeMap<PeId, String>,
    /// Retry reports of the scatter and of the gather.
    pub stories: [RetryReport; 2],
}

impl Mapped {
    /// Returns whether the result of this task is in the output.
    pub fn has_result(&self, task: &ShardTask) -> bool {
        task.is_done() && !self.left_behind.contains_key(&task.pe)
    }

    /// Returns whether every shard has its result, with all that the command wrote.
    pub fn is_complete(&self) -> bool {
        let is_whole = |task: &ShardTask| task.is_done() && task.not_taken().is_empty();
        self.left_behind.is_empty() && self.tasks.iter().all(is_whole)
    }
}
