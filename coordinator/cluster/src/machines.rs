//! State machines without sockets, processes, files or a clock, for tests that run them in virtual
//! time: the controller of rounds, and the rules between the runs of a job.

pub use crate::job::parallel_trees::has_parts;
pub use crate::observe::phase::Phase;
pub use crate::retry::{DeliveryProgress, NextRun};
pub use crate::rounds::controller::{
    ClusterInfo, ControllerEvent, FailureCause, GaveUp, PeLoss, Plan, RoundController, Stall,
    StallDetector,
};
pub use crate::rounds::outcome::{DeliverySummary, MissingDelivery};
