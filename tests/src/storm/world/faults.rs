//! The effects of a scenario's faults on processes and wires.

use flitcast_proto::PeId;

use super::super::office::{Ends as _, PeLoss};
use super::super::scenario::Kind;
use super::{Event, Process, World, wire};

impl World {
    pub(super) fn strike(&mut self, fault: usize) {
        let now = self.now;
        let kind = self.scenario.faults[fault].kind.clone();
        self.trace.note(now, format_args!("fault: {kind:?}"));
        let until = |for_ns: u64| now.saturating_add(for_ns);
        let is_gone = kind
            .pe()
            .is_some_and(|pe| self.processes[pe.index()] == Process::Gone);
        match kind {
            _ if is_gone => {}
            Kind::Kill(pe) => {
                self.processes[pe.index()] = Process::Gone;
                self.close(pe);
                let at = now + self.scenario.control_ns[pe.index()];
                // The end of its channel, and that of its process, in either order.
                let mut ends = [PeLoss::Closed, PeLoss::killed()];
                if self.chance.below(2) == 0 {
                    ends.reverse();
                }
                for (later, end) in (0..).zip(ends) {
                    self.cause(at + later, Event::Ended(pe, end));
                }
            }
            Kind::Vanish(pe) => self.vanish(pe),
            Kind::Restart { pe, after_ns } => {
                self.vanish(pe);
                self.cause(until(after_ns), Event::Refuse(pe));
            }
            Kind::Stop { pe, for_ns } => {
                self.processes[pe.index()] = Process::Stopped;
                if for_ns < u64::MAX {
                    self.cause(until(for_ns), Event::Continue(pe));
                }
            }
            Kind::Cut(way) => {
                for way in [way, way.back()] {
                    let World { wires, chance, .. } = self;
                    wire(wires, way).cut(now, chance);
                    self.expect(way);
                }
            }
            Kind::Block { way, for_ns } => self.wire(way).block(now, until(for_ns)),
            Kind::Delay { way, by_ns, for_ns } => self.wire(way).delay(until(for_ns), by_ns),
            Kind::Duplicate { way, percent } => self.wire(way).duplicate(percent),
            Kind::Corrupt { way, skip, bits } => self.wire(way).corrupt(skip, bits),
            Kind::Late(way) => self.wire(way).owe_late_frame(),
            Kind::Damage { way, skip, bits } => self.wire(way).damage(skip, bits),
        }
    }

    fn vanish(&mut self, pe: PeId) {
        self.processes[pe.index()] = Process::Gone;
        for way in self.scenario.clone().ways_from(pe) {
            self.wire(way).fall_silent();
        }
    }
}
