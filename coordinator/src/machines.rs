//! State machines without sockets, processes, files or a clock, for tests that run them in virtual
//! time: the conductor of rounds, and the rules between the runs of a job.
//!
//! ```
//! use std::{collections::BTreeSet, sync::Arc};
//!
//! use flitcast_coordinator::machines::{Conductor, Lost, Plan, Progress, Setting};
//! use flitcast_node::limits::Timeouts;
//! use flitcast_proto::calibration::clock::ClockOffset;
//! use flitcast_proto::ops::{Brief, Operation};
//! use flitcast_proto::schedule::pace::Timing;
//! use flitcast_proto::tree::TreeSpec;
//! use flitcast_proto::wire::control::{FromPe, ToPe};
//! use flitcast_proto::{DeliveryId, PeId, RoundId, Time};
//!
//! let tree = "path:3".parse::<TreeSpec>().unwrap().build().unwrap();
//! let tree = Arc::new(tree);
//! let bytes = vec![0, 100, 100];
//! let setting = Setting {
//!     tree: tree.clone(),
//!     operation: Operation::Scatter,
//!     timeouts: Timeouts::default(),
//!     joined: BTreeSet::new(),
//!     addresses: Vec::new(),
//! };
//! let mut conductor = Conductor::new(Time(0), setting);
//! let plan = Plan {
//!     briefs: Brief::all(&tree, Operation::Scatter, &bytes, &Timing::LOCK_STEP),
//!     lanes: Vec::new(),
//!     bytes: bytes.clone(),
//!     prefixes: Vec::new(),
//!     rounds: 1,
//!     clocks: vec![ClockOffset::SHARED; 3],
//!     predicted_ns: 1000,
//! };
//! conductor.conduct(Time(0), plan);
//! for pe in tree.pes() {
//!     assert!(matches!(conductor.poll_word(), Some((to, ToPe::Prepare(_))) if to == pe));
//! }
//! for pe in tree.pes() {
//!     conductor.handle_word(Time(5), pe, FromPe::Prepared);
//! }
//! let trigger = ToPe::Trigger { round: RoundId(1), at_ns: 0 };
//! assert_eq!(conductor.poll_word(), Some((PeId::ROOT, trigger)));
//!
//! // P1 dies. All PEs receive an abort, and none reports what arrived.
//! let how = "was killed".to_owned();
//! let last_words = Vec::new();
//! conductor.handle_lost(Time(9), PeId(1), Lost::Exited { how, last_words });
//! while let Some(timeout) = conductor.poll_timeout() {
//!     conductor.handle_timeout(timeout);
//! }
//! let gave_up = conductor.gave_up().unwrap();
//! assert_eq!(gave_up.trouble.to_string(), "P1 was killed");
//!
//! // The next run leaves it out, and P2 moves to P0.
//! let mut progress = Progress::new(tree, Operation::Scatter, bytes);
//! for pe in gave_up.trouble.culprits() {
//!     progress.learn_dead(pe, gave_up.trouble.to_string());
//! }
//! let next = progress.next(Operation::Scatter, |_, _| true);
//! assert_eq!(next.sendable, [DeliveryId(2)]);
//! assert_eq!(next.repair.tree.parent(PeId(2)), Some(PeId::ROOT));
//! ```

pub use crate::job::lanes::has_parts;
pub use crate::observe::phase::Phase;
pub use crate::retry::{Next, Progress};
pub use crate::rounds::conductor::{
    Conductor, GaveUp, Lost, Plan, Setting, Stall, Trouble, Update, Watch,
};
pub use crate::rounds::outcome::{Aftermath, Lacking};
