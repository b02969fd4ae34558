//! The effects of a scenario's faults on processes and wires.

use flitcast_proto::PeId;

use super::super::office::{PeLoss, killed};
use super::super::scenario::Kind;
use super::{Event, Process, World};

impl World {
    pub(super) fn apply_fault(&mut self, fault: usize) {
        let now = self.now;
        let kind = self.scenario.faults[fault].kind.clone();
        self.trace.note(now, format_args!("fault: {kind:?}"));
        let until = |for_ns: u64| now.saturating_add(for_ns);
        let is_gone = |pe: PeId| self.hosts[pe.index()].process == Process::Gone;
        match kind {
            _ if kind.pe().is_some_and(is_gone) => {}
            Kind::Kill(pe) => {
                self.hosts[pe.index()].process = Process::Gone;
                self.close(pe);
                let at = now + self.scenario.control_ns[pe.index()];
                // The end of its channel, and that of its process, in either order.
                let mut ends = [PeLoss::Closed, killed()];
                if self.chance.below(2) == 0 {
                    ends.reverse();
                }
                for (later, end) in (0..).zip(ends) {
                    self.schedule(at + later, Event::Ended(pe, end));
                }
            }
            Kind::Vanish(pe) => self.vanish(pe),
            Kind::Restart { pe, after_ns } => {
                self.vanish(pe);
                self.schedule(until(after_ns), Event::Refuse(pe));
            }
            Kind::Stop { pe, for_ns } => {
                self.hosts[pe.index()].process = Process::Stopped;
                if for_ns < u64::MAX {
                    self.schedule(until(for_ns), Event::Continue(pe));
                }
            }
            Kind::Cut(way) => {
                self.cut(way);
                self.cut(way.back());
            }
            Kind::Block { way, for_ns } => self.wire(way).block(now, until(for_ns)),
            Kind::Delay { way, by_ns, for_ns } => self.wire(way).delay = (until(for_ns), by_ns),
            Kind::Duplicate { way, percent } => self.wire(way).duplicate_percent = percent,
            Kind::Corrupt { way, skip, bits } => self.wire(way).corrupt(skip, bits, false),
            Kind::Late(way) => self.wire(way).late += 1,
            Kind::Damage { way, skip, bits } => self.wire(way).corrupt(skip, bits, true),
        }
    }

    fn vanish(&mut self, pe: PeId) {
        self.hosts[pe.index()].process = Process::Gone;
        for way in self.scenario.clone().ways_from(pe) {
            // There is no sign of the end.
            self.wire(way).closed = true;
        }
    }
}
