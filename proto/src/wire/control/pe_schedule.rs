//! The schedule of a PE for the rounds, to and from protobuf.

use crate::items::{Packing, ScheduledHop};
use crate::ops::{Collective, PeRole, PeSchedule};
use crate::schedule::certification::Sync;
use crate::wire::codec::{codes, record, required};
use crate::wire::{MAX_FLIT_BYTES, MAX_PARTS, MIN_FLIT_BYTES, WireError, pb};

record! {
    PeSchedule = PeSchedule {
        collective, parts, flit_bytes, sends, packet_bytes, receives, subtree_messages, child_messages,
        child_ranks, hops, all_ports, in_turns, in_any_order,
        polls_before_sleep,
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
        role: parse_role(schedule.role(), schedule.window).ok_or_else(no_role)?,
        pace: required(schedule.pace, "the pace")?,
    },
    check
}

/// Checks the numbers of a schedule. There is a packet size for each message, or none, and no packet
/// exceeds a flit.
fn check(schedule: &PeSchedule) -> Result<(), WireError> {
    if !schedule.role.serves(schedule.collective) {
        return Err(no_role());
    }
    check_flit_bytes(schedule.flit_bytes)?;
    let (parts, flit_bytes) = (schedule.parts, schedule.flit_bytes);
    if !(1..=MAX_PARTS).contains(&parts) {
        return Err(WireError::malformed(format!("messages with {parts} parts")));
    }
    let (sizes, sends) = (&schedule.packet_bytes, schedule.sends.len());
    if !sizes.is_empty() && sizes.len() != sends {
        let fault = format!("{} packet sizes for {sends} messages", sizes.len());
        return Err(WireError::malformed(fault));
    }
    let fits = |bytes: &u32| (MIN_FLIT_BYTES..=flit_bytes).contains(bytes);
    match sizes.iter().find(|bytes| !fits(bytes)) {
        None => Ok(()),
        Some(bytes) => Err(WireError::malformed(format!(
            "no packet can have {bytes} bytes where a flit has {flit_bytes}"
        ))),
    }
}

fn no_role() -> WireError {
    WireError::malformed("a role that its collective does not have")
}

pub(super) fn check_flit_bytes(flit_bytes: u32) -> Result<(), WireError> {
    match (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&flit_bytes) {
        true => Ok(()),
        false => {
            let fault = format!("no flit can have {flit_bytes} bytes");
            Err(WireError::malformed(fault))
        }
    }
}

codes! {
    Collective { Scatter, Gather, Broadcast, Gossip, Exchange },
    code => Err(WireError::malformed(format!("{code} is not a collective")))
}

fn put_role(role: PeRole) -> i32 {
    let role = match role {
        PeRole::Scatter => pb::Role::Scatter,
        PeRole::ShoulderTap => pb::Role::ShoulderTap,
        PeRole::Certification(Sync::Serial) => pb::Role::CertificationSerial,
        PeRole::Certification(Sync::Pipelined) => pb::Role::CertificationPipelined,
        PeRole::Certification(Sync::Parallel) => pb::Role::CertificationParallel,
        PeRole::Certification(Sync::MultiPort) => pb::Role::CertificationMultiPort,
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
