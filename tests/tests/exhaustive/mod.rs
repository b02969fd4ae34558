//! Gathering compared with the optimal schedule: every tree of up to 6 PEs, lengths from {0, 1, 2,
//! 5}.
//!
//! `deploy/runs/2026-11-20-exhaustive` has the distances from the optimum.

mod optimum;
mod wave;

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::plan;
use flitcast_plan::schedule;
use flitcast_proto::Tree;
use flitcast_proto::items::Control;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::shoulder_tap;
use flitcast_tests::every;

/// The results for one tree and its lengths. Times are in steps.
struct Case {
    tree: Arc<Tree>,
    flits: Vec<u64>,
    bound: u64,
    /// The minimum time of any gather, even with all lengths known.
    optimum: u64,
    /// The fastest collection of certificates.
    wave: u64,
    serial: Certified,
    pipelined: Certified,
    /// The time of Shoulder-Tap, on a path.
    shoulder_tap: Option<u64>,
}

/// A gather by certification.
struct Certified {
    time: u64,
    /// When P0 has the last certificate.
    synchronised: u64,
}

impl Certified {
    fn of(tree: &Arc<Tree>, sync: Sync, flits: &[u64]) -> Certified {
        let plan = plan(tree, Algorithm::certification(sync), flits);
        let certificates = plan.control.iter();
        let certificates = certificates.filter(|c| matches!(c.item, Control::Certificate(_)));
        Certified {
            time: plan.time_steps,
            synchronised: certificates.map(|c| c.step).max().unwrap_or(0),
        }
    }
}

impl Case {
    fn of(tree: &Arc<Tree>, flits: Vec<u64>) -> Case {
        let tap = || plan(tree, Algorithm::SHOULDER_TAP, &flits).time_steps;
        Case {
            bound: schedule::gather_steps(tree, &flits),
            optimum: optimum::gather_steps(tree, &flits),
            wave: wave::steps(tree),
            serial: Certified::of(tree, Sync::Serial, &flits),
            pipelined: Certified::of(tree, Sync::Pipelined, &flits),
            shoulder_tap: tree.is_path().then(tap),
            tree: tree.clone(),
            flits,
        }
    }

    fn check(&self) {
        let name = self.name();
        for Certified { time, synchronised } in [&self.serial, &self.pipelined] {
            // P0 gives its first order when it has the last certificate, so the best
            // is out of reach by as much: a harder test than the optimum alone.
            assert!(*time >= synchronised + self.optimum, "{name}");
            assert!(*synchronised >= self.wave, "{name}");
        }
        assert!(self.bound <= self.optimum, "{name}");
        let Some(shoulder_tap) = self.shoulder_tap else {
            return;
        };
        assert_eq!(self.bound, self.optimum, "{name}");
        let Certified { time, synchronised } = self.pipelined;
        assert_eq!(time, synchronised + self.optimum, "{name}");
        // Bound (7) assumes that every PE but the end one sends a wakeup call. Without the null
        // messages at the end, no call is unnecessary, and (7) is the time of the best schedule.
        // With them Shoulder-Tap, which does not know the lengths, takes at most a step more.
        let top_down = self.tree.top_down().iter();
        let along: Vec<u64> = top_down.map(|pe| self.flits[pe.index()]).collect();
        let end = along.iter().rposition(|&own| own > 0).unwrap_or(0);
        let without_null_end = shoulder_tap::bound_steps(&along[..=end]);
        assert_eq!(without_null_end, self.optimum, "{name}");
        let null_end = u64::from(end + 1 < along.len());
        assert!(shoulder_tap >= self.optimum, "{name}");
        assert!(shoulder_tap <= self.optimum + null_end, "{name}");
    }

    /// Returns the parents of P1.. and the lengths L_1.., as digits.
    fn digits(&self) -> (String, String) {
        let parents = self.tree.pes().filter_map(|pe| self.tree.parent(pe));
        (
            parents.map(|parent| parent.0.to_string()).collect(),
            self.flits[1..].iter().map(u64::to_string).collect(),
        )
    }

    fn name(&self) -> String {
        let (parents, lengths) = self.digits();
        let (optimum, pipelined) = (self.optimum, self.pipelined.time);
        format!("parents {parents} lengths {lengths}: optimum {optimum}, pipelined {pipelined}")
    }
}

#[test]
fn no_gather_is_faster_than_the_best_schedule() {
    for pes in 2..=6 {
        for tree in every::trees(pes) {
            for flits in every::flits(pes).filter(|flits| flits.iter().any(|&own| own > 0)) {
                Case::of(&tree, flits).check();
            }
        }
    }
}
