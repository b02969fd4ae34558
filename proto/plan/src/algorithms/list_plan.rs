//! Static schedules in lock step, flit by flit, as `flitcast plan` and `flitcast compare` show them.

use flitcast_proto::ops::Collective;

use super::algorithm::Algorithm;
use super::farthest_first::plan_scatter_by_branch;
use super::lock_step::{ListTask, LockStep, NotPlanned};
use super::plan_limits::check_size;
use super::spec::TreeRequirement;
use super::timetable::Timetable;
use super::{broadcast_plan, exchange_plan, gossip_plan};
use crate::cost::Ports;

impl Algorithm {
    /// Returns the algorithms for a collective that have a static schedule in lock step.
    pub fn listed(collective: Collective) -> impl Iterator<Item = Algorithm> {
        let all = Algorithm::ALL.into_iter().chain(Algorithm::PLANNED);
        all.filter(move |one| one.collective() == collective && one.has_list())
    }

    /// Returns whether the algorithm has a static schedule in lock step.
    fn has_list(self) -> bool {
        matches!(self.spec.plan, LockStep::List(_) | LockStep::FlitByFlit(_))
    }

    /// Returns whether the time to plan grows with the number of flits of a message.
    pub fn is_planned_flit_by_flit(self) -> bool {
        matches!(self.spec.plan, LockStep::FlitByFlit(_))
    }

    /// Plans a static schedule in lock step.
    pub fn list(self, task: &ListTask<'_>) -> Result<Timetable, NotPlanned> {
        let pes = task.tree.len();
        if self.fits() == TreeRequirement::Cubes && !self.fits().holds(task.tree) {
            return Err(NotPlanned::Unfit(format!("{pes} is not a power of 2")));
        }
        match self.spec.plan {
            LockStep::List(planner) => planner(task),
            LockStep::FlitByFlit(planner) => {
                check_size(task.flits.iter().sum(), pes)?;
                planner(task)
            }
            LockStep::None | LockStep::Messages(_) => {
                Err(NotPlanned::unfit("it has no static schedule"))
            }
        }
    }

    /// Returns a lower bound of the steps of any static schedule for the task.
    pub fn least_steps_of_list(self, task: &ListTask<'_>) -> u64 {
        let flits = task.flits;
        match (task.ports, self.collective()) {
            (Ports::Single, _) | (_, Collective::Gather) => {
                (self.spec.bound)(&task.rooted(), flits)
            }
            (_, Collective::Scatter) => {
                let plans = plan_scatter_by_branch(&task.rooted(), flits);
                let arrivals = plans.iter().map(|plan| plan.arrival_step);
                arrivals.max().unwrap_or(0)
            }
            (_, Collective::Broadcast) => {
                broadcast_plan::least_steps_of_all_ports(&task.rooted(), flits.iter().sum())
            }
            (_, Collective::Gossip) => gossip_plan::least_steps_of_all_ports(task.tree, flits),
            (_, Collective::Exchange) => {
                exchange_plan::least_steps_of_all_ports(task.tree, &task.rows())
            }
        }
    }
}
