//! The channels between the coordinator and the PEs: messages in transit, pings and answers.

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Pong, ToPe};

use super::super::Plant;
use super::super::office::silent;
use super::super::scenario::{HEARTBEAT_NS, SILENCE_NS, Way};
use super::{Event, World};

impl World {
    /// Sends the coordinator's messages and schedules its next check.
    pub(super) fn send_commands(&mut self) {
        while let Some((pe, command)) = self.office.commands.pop_front() {
            let forgotten = matches!(command, ToPe::Abort { .. } | ToPe::Stop { .. })
                && self.plant == Some(Plant::ForgetsToAbort);
            let at = self.now + self.scenario.control_ns[pe.index()];
            if !forgotten {
                self.schedule(at, Event::Command(pe, command));
            }
        }
        for note in std::mem::take(&mut self.office.notes) {
            self.trace.note(self.now, format_args!("{note}"));
        }
        if let Some(at) = self.office.look_at.take() {
            self.schedule(at.max(self.now), Event::Late);
        }
    }

    pub(super) fn ping(&mut self) {
        let look = self.office.wants_look();
        for pe in self.tree.clone().pes() {
            let at = self.now + self.scenario.control_ns[pe.index()];
            if self.office.listens_to(pe) {
                self.schedule(at, Event::Pinged(pe, look));
            }
            if self.office.silent_ns(self.now, pe) >= SILENCE_NS {
                self.schedule(self.now, Event::Ended(pe, silent()));
            }
        }
        if !self.office.is_over() {
            self.schedule(self.now + HEARTBEAT_NS, Event::Ping);
        }
    }

    pub(super) fn answer(&mut self, pe: PeId, look: bool) {
        let now = self.now;
        let is_unreached = |way: &Way| {
            let [there, back] = [*way, way.back()].map(|way| &self.wires[&way]);
            look && there.is_unacknowledged(now, back)
        };
        let unreached = self.scenario.ways_from(pe).filter(is_unreached);
        let unreached = unreached.map(|way| way.to).collect();
        let pulse = self.hosts[pe.index()].pulse;
        let quiet_ms = (now - pulse.moved_at) / 1_000_000;
        let pong = Pong {
            quiet_ms,
            files_quiet_ms: quiet_ms,
            doing: pulse.doing,
            unreached,
            counts: Default::default(),
        };
        self.send_reply(pe, FromPe::Pong(pong));
    }

    /// Returns the next message for a PE.
    pub(in super::super) fn next_command(&mut self, pe: PeId) -> Option<ToPe> {
        self.hosts[pe.index()].commands.pop_front()
    }

    /// Sends a message of a PE to the coordinator.
    pub(in super::super) fn send_reply(&mut self, pe: PeId, reply: FromPe) {
        let at = self.now + self.scenario.control_ns[pe.index()];
        self.schedule(at, Event::Reply(pe, reply));
    }
}

/// Formats the begin of a message for the trace.
pub(super) fn short(reply: &FromPe) -> String {
    format!("{reply:?}").chars().take(60).collect()
}
