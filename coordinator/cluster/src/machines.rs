//! State machines without sockets, processes, files or a clock, for tests that run them in virtual
//! time: the controller of rounds, and the rules between the runs of a job.
//!
//! ```
//! use std::{collections::BTreeSet, sync::Arc};
//!
//! use flitcast_cluster::machines::{RoundController, PeLoss, Plan, DeliveryProgress, ClusterInfo};
//! use flitcast_node::limits::Timeouts;
//! use flitcast_plan::Algorithm;
//! use flitcast_plan::calibration::clock::ClockOffset;
//! use flitcast_plan::timing::Timing;
//! use flitcast_proto::tree::TreeSpec;
//! use flitcast_proto::wire::control::{FromPe, ToPe};
//! use flitcast_proto::{DeliveryId, PeId, RoundId, Time};
//!
//! let tree = "path:3".parse::<TreeSpec>().unwrap().build().unwrap();
//! let tree = Arc::new(tree);
//! let bytes = vec![0, 100, 100];
//! let setting = ClusterInfo {
//!     tree: tree.clone(),
//!     operation: Algorithm::FARTHEST_FIRST,
//!     timeouts: Timeouts::default(),
//!     joined: BTreeSet::new(),
//!     addresses: Vec::new(),
//! };
//! let mut controller = RoundController::new(Time(0), setting);
//! let plan = Plan {
//!     schedules: Algorithm::FARTHEST_FIRST.schedules(&tree, &bytes, &Timing::LOCK_STEP),
//!     lanes: Vec::new(),
//!     bytes: bytes.clone(),
//!     prefixes: Vec::new(),
//!     rounds: 1,
//!     clocks: vec![ClockOffset::SHARED; 3],
//!     predicted_ns: 1000,
//! };
//! controller.run_rounds(Time(0), plan);
//! for pe in tree.pes() {
//!     assert!(matches!(controller.poll_command(), Some((to, ToPe::Prepare(_))) if to == pe));
//! }
//! for pe in tree.pes() {
//!     controller.handle_reply(Time(5), pe, FromPe::Prepared);
//! }
//! let trigger = ToPe::Trigger { round: RoundId(1), at_ns: 0 };
//! assert_eq!(controller.poll_command(), Some((PeId::ROOT, trigger)));
//!
//! // P1 dies. All PEs receive an abort, and none reports what arrived.
//! let how = "was killed".to_owned();
//! let last_words = Vec::new();
//! controller.handle_lost(Time(9), PeId(1), PeLoss::Exited { how, last_words });
//! while let Some(timeout) = controller.poll_timeout() {
//!     controller.handle_timeout(timeout);
//! }
//! let gave_up = controller.gave_up().unwrap();
//! assert_eq!(gave_up.trouble.to_string(), "P1 was killed");
//!
//! // The next run leaves it out, and P2 moves to P0.
//! let mut progress = DeliveryProgress::new(tree, Algorithm::FARTHEST_FIRST, bytes);
//! for pe in gave_up.trouble.failed_pes() {
//!     progress.learn_dead(pe, gave_up.trouble.to_string());
//! }
//! let next = progress.next(Algorithm::FARTHEST_FIRST, |_, _| true);
//! assert_eq!(next.sendable, [DeliveryId(2)]);
//! assert_eq!(next.repair.tree.parent(PeId(2)), Some(PeId::ROOT));
//! ```

pub use crate::job::parallel_trees::has_parts;
pub use crate::observe::phase::Phase;
pub use crate::retry::{DeliveryProgress, NextRun};
pub use crate::rounds::controller::{
    ClusterInfo, ControllerEvent, FailureCause, GaveUp, PeLoss, Plan, RoundController, Stall,
    StallDetector,
};
pub use crate::rounds::outcome::{DeliverySummary, MissingDelivery};
