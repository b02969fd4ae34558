//! The rounds of a simulated PE: their begin, their end and their reports.

use std::cell::RefCell;
use std::rc::Rc;

use flitcast_node::round::RoundIo as _;
use flitcast_node::rounds::RoundsIo;
use flitcast_proto::round::{Observer, Round};
use flitcast_proto::wire::control::{Begin, Doing, Report};
use flitcast_proto::{RoundId, Time};

use super::super::Plant;
use super::super::world::World;
use super::{Process, StormIo};

impl RoundsIo for StormIo {
    type Observer = Late;
    type Working = Work;

    async fn prepare(&mut self) {}

    fn is_triggered(&self) -> bool {
        let tree = &self.process.scenario.tree;
        let collective = self.schedule.collective;
        collective.is_triggered(tree, self.process.pe)
    }

    fn begin(&mut self, id: RoundId, at: Time) -> Round<Late> {
        let Process {
            world,
            scenario,
            pe,
            lane,
            ..
        } = &self.process;
        self.round = id;
        self.idle_turns = 0;
        self.forwards = None;
        self.under_way.clear();
        (self.sends, self.stored, self.sinks) = Default::default();
        self.held.forget_all();
        self.wholes.forget();
        let late = Late(world.clone());
        let schedule = self.schedule.clone();
        let tree = scenario.lanes[*lane].tree.clone();
        let mut round = Round::observed(id, tree, *pe, schedule, late);
        if *pe == scenario.tree.root() {
            self.started = at;
            self.process.world.borrow_mut().begin(id, at);
        }
        if self.is_triggered() {
            round.handle_trigger(at);
        }
        round
    }

    fn working(&self) -> Work {
        self.process.does(Doing::Working);
        Work(self.process.clone())
    }

    async fn settle(&mut self, round: &mut Round<Late>) {
        self.wholes.parts.give_up().await;
        while let Some(committed) = self.next_commit().await {
            round.handle_committed(self.now(), committed.message, committed.digest);
        }
    }

    fn report(&mut self, round: Round<Late>, complete: bool) -> Report {
        let mut arrivals = round.arrivals();
        if self.process.plant == Some(Plant::ForgetsDeliveries) && !complete {
            arrivals.iter_mut().for_each(|a| a.delivered = false);
        }
        let world = &mut self.process.world.borrow_mut();
        if complete && self.process.lane == 0 {
            world.finish(self.process.pe, self.round.0);
        }
        Report {
            complete,
            begin: Begin {
                started_ns: self.started.0,
                began_ns: 0,
            },
            late_frames: round.late_frames(),
            ..Report::blank(self.round, arrivals)
        }
    }
}

/// Counts late frames.
pub(super) struct Late(Rc<RefCell<World>>);

impl Observer for Late {
    fn late(&self) {
        self.0.borrow_mut().late_frames += 1;
    }
}

/// A guard during which the PE counts as working.
pub(super) struct Work(Process);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.does(Doing::Idle);
    }
}
