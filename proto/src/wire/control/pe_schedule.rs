//! The schedule of a PE for the rounds, to and from protobuf.

use crate::items::{Packing, ScheduledHop};
use crate::ops::{Collective, PeRole, PeSchedule};
use crate::schedule::certification::Sync;
use crate::schedule::pace::{ChildPace, Pace, Pacing, Packets, Passage};
use crate::wire::codec::{codes, ensure, record, required};
use crate::wire::{MAX_FLIT_BYTES, MAX_PARTS, MIN_FLIT_BYTES, WireError, pb};

record! {
    PeSchedule = PeSchedule {
        collective, parts, has_tail, flit_bytes, sends, packet_bytes, receives, subtree_messages, child_messages,
        child_ranks, hops, all_ports, in_turns, in_any_order,
        polls_before_sleep, compression,
    }
    put schedule {
        role: put_role(schedule.role),
        window: match schedule.role {
            PeRole::Linear { window } => window,
            _ => 0,
        },
        pace: Some(schedule.pace.put()),
    }
    parse schedule {
        role: parse_role(schedule.role(), schedule.window).ok_or_else(|| WireError::malformed(NO_ROLE))?,
        pace: required(schedule.pace, "the pace")?,
    },
    check
}

/// Checks the numbers of a schedule. There is a packet size for each message, or none, and no packet
/// exceeds a flit.
fn check(schedule: &PeSchedule) -> Result<(), WireError> {
    ensure(schedule.role.serves(schedule.collective), NO_ROLE)?;
    check_flit_bytes(schedule.flit_bytes)?;
    let (parts, flit_bytes) = (schedule.parts, schedule.flit_bytes);
    let has_parts = (1..=MAX_PARTS).contains(&parts);
    ensure(has_parts, format_args!("messages with {parts} parts"))?;
    let (sizes, sends) = (&schedule.packet_bytes, schedule.sends.len());
    let count = sizes.len();
    let is_each = count == 0 || count == sends;
    ensure(
        is_each,
        format_args!("{count} packet sizes for {sends} messages"),
    )?;
    let fits = |bytes: u32| (MIN_FLIT_BYTES..=flit_bytes).contains(&bytes);
    sizes.iter().try_for_each(|&bytes| {
        let fault = format_args!("no packet can have {bytes} bytes where a flit has {flit_bytes}");
        ensure(fits(bytes), fault)
    })
}

const NO_ROLE: &str = "a role that its collective does not have";

pub(super) fn check_flit_bytes(flit_bytes: u32) -> Result<(), WireError> {
    let fits = (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&flit_bytes);
    ensure(fits, format_args!("no flit can have {flit_bytes} bytes"))
}

codes! { Collective { Scatter, Gather, Broadcast, Gossip, Exchange }, "is not a collective" }

fn put_role(role: PeRole) -> i32 {
    let role = match role {
        PeRole::Scatter => pb::Role::Scatter,
        PeRole::ShoulderTap => pb::Role::ShoulderTap,
        PeRole::Certification(Sync::Serial) => pb::Role::CertificationSerial,
        PeRole::Certification(Sync::Pipelined) => pb::Role::CertificationPipelined,
        PeRole::Certification(Sync::Parallel) => pb::Role::CertificationParallel,
        PeRole::Certification(Sync::MultiPort) => pb::Role::CertificationMultiPort,
        PeRole::Certification(Sync::Known) => pb::Role::CertificationKnown,
        PeRole::Linear { .. } => pb::Role::Linear,
        PeRole::Combining => pb::Role::Combining,
        PeRole::FlitByFlit => pb::Role::FlitByFlit,
        PeRole::StaticSchedule => pb::Role::StaticSchedule,
    };
    role.into()
}

fn parse_role(role: pb::Role, window: u32) -> Option<PeRole> {
    Some(match role {
        pb::Role::Unspecified => return None,
        pb::Role::Scatter => PeRole::Scatter,
        pb::Role::ShoulderTap => PeRole::ShoulderTap,
        pb::Role::CertificationSerial => PeRole::Certification(Sync::Serial),
        pb::Role::CertificationPipelined => PeRole::Certification(Sync::Pipelined),
        pb::Role::CertificationParallel => PeRole::Certification(Sync::Parallel),
        pb::Role::CertificationMultiPort => PeRole::Certification(Sync::MultiPort),
        pb::Role::CertificationKnown => PeRole::Certification(Sync::Known),
        pb::Role::Linear => PeRole::Linear { window },
        pb::Role::Combining => PeRole::Combining,
        pb::Role::FlitByFlit => PeRole::FlitByFlit,
        pb::Role::StaticSchedule => PeRole::StaticSchedule,
    })
}

record! {
    ScheduledHop = ScheduledHop { message, flits, from, to, first_step, offset, every, packing }
}
codes! { Packing { Flits, Begins, Joins }, _code => Ok(Packing::Flits) }

record! {
    Passage = Passage {
        latency_ns as latency, ns_per_packet as ticks_per_packet, ns_per_byte as ticks_per_byte,
        message_ns as message, flit_bytes,
    },
    |passage: &Passage| {
        let mut rates = [passage.ticks_per_packet, passage.ticks_per_byte].into_iter();
        ensure(rates.all(|rate| rate.is_finite() && rate >= 0.0), "a passage with nonsense numbers")
    }
}
record! {
    ChildPace = ChildPace { reach_ns as reach }
    put pace { up: Some(pace.up.put()) }
    parse pace { up: required(pace.up, "the pace of a child")? }
}

record! {
    Packets = Packets { bytes, count, first, largest },
    |packets: &Packets| {
        let Packets { bytes, count, first, largest } = *packets;
        let are_sound =
            first <= largest && largest <= bytes && count <= bytes && (first == 0) == (bytes == 0);
        ensure(are_sound, "packets with nonsense numbers")
    }
}

record! {
    Pace = Pace {
        pacing, control_ns as control, below, port_ns_per_byte as port_ticks_per_byte, ahead_bytes,
    }
    put pace {
        up: Some(pace.up.put()),
    }
    parse pace {
        lock_step: false,
        up: required(pace.up, "the pace to the parent")?,
    },
    |pace: &Pace| {
        let rate = pace.port_ticks_per_byte;
        ensure(rate.is_finite() && rate >= 0.0, "a pace with nonsense numbers")
    }
}

codes! { Pacing { Scheduled, Turns, Eager }, "is no pacing" }
