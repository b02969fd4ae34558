//! A schedule that lists the crossings of each arc, for several messages at once.

use std::collections::BTreeMap;
use std::ops::Range;

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::{MessageId, PeId};

/// Returns the crossing of flits `offset..offset + flits`, each a packet, one in every step.
pub(super) fn hop(
    message: MessageId,
    [from, to]: [PeId; 2],
    [offset, flits]: [u64; 2],
    first_step: u64,
) -> ScheduledHop {
    ScheduledHop {
        message,
        offset,
        flits,
        from,
        to,
        first_step,
        every: 1,
        packing: Packing::Flits,
    }
}

/// The ends of a packet, and the lengths of its messages in flits.
type Packet = ([usize; 2], Vec<(MessageId, u64)>);

/// A list of crossings with their steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timetable {
    /// All crossings; the flits of one hop are consecutive flits of a message.
    pub hops: Vec<ScheduledHop>,
    /// The step of the last arrival; 0 if nothing is to be sent.
    pub time_steps: u64,
    /// The result of [`Timetable::kept_flits`], if the planner computes it.
    pub(super) kept_flits: Option<u64>,
}

impl Timetable {
    /// Creates a timetable of these crossings, in any order.
    pub(super) fn of(mut hops: Vec<ScheduledHop>) -> Timetable {
        hops.sort_unstable_by_key(|hop| (hop.first_step, hop.from, hop.to));
        let last = |hop: &ScheduledHop| hop.first_step + (hop.flits - 1) * hop.every;
        Timetable {
            time_steps: hops.iter().map(last).max().unwrap_or(0),
            hops,
            kept_flits: None,
        }
    }

    /// Creates a timetable of rounds, each as long as its longest packet. Null messages are left out.
    pub(super) fn of_rounds(
        rounds: impl IntoIterator<Item: IntoIterator<Item = Packet>>,
    ) -> Timetable {
        let (mut hops, mut begun) = (Vec::new(), 0);
        for packets in rounds {
            let mut longest = 0;
            for (ends, messages) in packets {
                let mut sent = 0;
                for (message, flits) in messages.into_iter().filter(|(_, flits)| *flits > 0) {
                    let packing = match sent {
                        0 => Packing::Begins,
                        _ => Packing::Joins,
                    };
                    let ends = ends.map(|pe| PeId(pe as u32));
                    let hop = hop(message, ends, [0, flits], begun + sent + 1);
                    hops.push(ScheduledHop { packing, ..hop });
                    sent += flits;
                }
                longest = longest.max(sent);
            }
            begun += longest;
        }
        Timetable::of(hops)
    }

    /// Returns the maximum number of flits that a PE keeps for others at the end of a step, not
    /// counting flits that start there. A flit is kept from its first arrival at the PE until it
    /// leaves the PE for the last time.
    pub fn kept_flits(&self) -> u64 {
        if let Some(kept) = self.kept_flits {
            return kept;
        }
        // The first crossing of a message begins at its source.
        let mut sources = BTreeMap::new();
        for hop in &self.hops {
            sources.entry(hop.message).or_insert(hop.from);
        }
        let visits = self.hops.iter().flat_map(|hop| {
            [(hop.to, true), (hop.from, false)].map(|(pe, arrives)| Visit {
                pe,
                message: hop.message,
                flits: hop.offset..hop.offset + hop.flits,
                ahead: hop.first_step as i64 - hop.offset as i64,
                arrives,
            })
        });
        let mut visits: Vec<Visit> = visits
            .filter(|visit| sources.get(&visit.message) != Some(&visit.pe))
            .collect();
        visits.sort_unstable_by_key(|visit| (visit.pe, visit.message, visit.flits.start));
        let at_pes = visits.chunk_by(|one, next| one.pe == next.pe);
        at_pes.map(most_kept).max().unwrap_or(0)
    }
}

/// A crossing at one of its ends, which is not the source of the message. Flit x crosses in step
/// `ahead + x`.
struct Visit {
    pe: PeId,
    message: MessageId,
    flits: Range<u64>,
    ahead: i64,
    /// Whether the flits arrive.
    arrives: bool,
}

/// Returns the maximum number of flits that a PE keeps; `visits` are in the order of messages, then of
/// flits.
fn most_kept(visits: &[Visit]) -> u64 {
    // From each of these steps on, one flit more or less arrives or leaves per step.
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for visits in visits.chunk_by(|one, next| one.message == next.message) {
        let ends = visits
            .iter()
            .map(|visit| [visit.flits.start, visit.flits.end]);
        let mut ends: Vec<u64> = ends.flatten().collect();
        ends.sort_unstable();
        ends.dedup();
        let mut later = visits.iter().peekable();
        let mut here: Vec<&Visit> = Vec::new();
        for part in ends.windows(2) {
            here.retain(|visit| visit.flits.end > part[0]);
            while let Some(visit) = later.next_if(|visit| visit.flits.start == part[0]) {
                here.push(visit);
            }
            let step = |arrives: bool| {
                let visits = here.iter().filter(move |visit| visit.arrives == arrives);
                visits.map(|visit| visit.ahead + part[0] as i64)
            };
            if let (Some(first_arrival), Some(last_departure)) =
                (step(true).min(), step(false).max())
            {
                let flits = (part[1] - part[0]) as i64;
                changes.extend([(first_arrival, 1), (first_arrival + flits, -1)]);
                changes.extend([(last_departure, -1), (last_departure + flits, 1)]);
            }
        }
    }
    changes.sort_unstable();
    let (mut kept, mut most, mut growth, mut since) = (0, 0, 0, 0);
    for (step, change) in changes {
        kept += growth * (step - since);
        most = most.max(kept);
        growth += change;
        since = step;
    }
    most as u64
}

/// Crossings built from single flits, step by step: a flit that follows the previous one in the
/// next step over the same arc extends its crossing.
#[derive(Debug)]
pub(super) struct HopList {
    hops: Vec<ScheduledHop>,
    /// For each arc, the position of its last crossing.
    last: Vec<Option<usize>>,
}

impl HopList {
    /// Creates an empty list over `arcs` arcs.
    pub(super) fn over(arcs: usize) -> HopList {
        HopList {
            hops: Vec::new(),
            last: vec![None; arcs],
        }
    }

    /// Adds a flit of a message that crosses an arc with these ends.
    pub(super) fn put(&mut self, arc: usize, ends: [PeId; 2], step: u64, flit: (MessageId, u64)) {
        let (message, offset) = flit;
        let last = self.last[arc].map(|place| &mut self.hops[place]);
        let continued = last.filter(|hop| {
            let follows = hop.offset + hop.flits == offset && hop.first_step + hop.flits == step;
            hop.message == message && follows
        });
        if let Some(hop) = continued {
            hop.flits += 1;
            return;
        }
        self.last[arc] = Some(self.hops.len());
        self.hops.push(hop(message, ends, [offset, 1], step));
    }

    /// Returns the timetable of all crossings.
    pub(super) fn finish(self) -> Timetable {
        Timetable::of(self.hops)
    }
}
