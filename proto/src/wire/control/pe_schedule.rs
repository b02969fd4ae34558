//! The schedule of a PE for the rounds, to and from protobuf.

use super::pace::{parse_pace, put_pace};
use crate::items::{Packing, ScheduledHop};
use crate::ops::{Collective, PeRole, PeSchedule};
use crate::schedule::certification::Sync;
use crate::wire::message::{parse_message, put_message};
use crate::wire::{MAX_FLIT_BYTES, MAX_PARTS, MIN_FLIT_BYTES, WireError, pb};
use crate::{MessageId, PeId};

pub(super) fn put_schedule(schedule: &PeSchedule) -> pb::PeSchedule {
    pb::PeSchedule {
        collective: put_collective(schedule.collective),
        role: put_role(schedule.role),
        window: match schedule.role {
            PeRole::Linear { window } => window,
            _ => 0,
        },
        parts: schedule.parts,
        flit_bytes: schedule.flit_bytes,
        pace: Some(put_pace(&schedule.pace)),
        sends: schedule.sends.iter().map(put_message).collect(),
        packet_bytes: schedule.packet_bytes.clone(),
        receives: schedule.receives.iter().map(put_message).collect(),
        subtree_messages: schedule.subtree_messages,
        child_messages: schedule.child_messages.clone(),
        child_ranks: schedule.child_ranks.clone(),
        hops: schedule.hops.iter().map(put_hop).collect(),
        all_ports: schedule.all_ports,
        in_turns: schedule.in_turns,
        in_any_order: schedule.in_any_order,
    }
}

pub(super) fn parse_schedule(schedule: pb::PeSchedule) -> Result<PeSchedule, WireError> {
    let flit_bytes = parse_flit_bytes(schedule.flit_bytes)?;
    let collective = parse_collective(schedule.collective)?;
    let role = parse_role(schedule.role(), schedule.window);
    let role = role.filter(|role| role.serves(collective));
    Ok(PeSchedule {
        collective,
        role: role
            .ok_or_else(|| WireError::malformed("a role that its collective does not have"))?,
        parts: parse_parts(schedule.parts)?,
        flit_bytes,
        packet_bytes: parse_packet_bytes(schedule.packet_bytes, schedule.sends.len(), flit_bytes)?,
        pace: parse_pace(schedule.pace)?,
        sends: schedule.sends.iter().map(parse_message).collect(),
        receives: schedule.receives.iter().map(parse_message).collect(),
        subtree_messages: schedule.subtree_messages,
        child_messages: schedule.child_messages,
        child_ranks: schedule.child_ranks,
        hops: schedule.hops.into_iter().map(parse_hop).collect(),
        all_ports: schedule.all_ports,
        in_turns: schedule.in_turns,
        in_any_order: schedule.in_any_order,
    })
}

pub(super) fn put_collective(collective: Collective) -> i32 {
    let collective = match collective {
        Collective::Scatter => pb::Collective::Scatter,
        Collective::Gather => pb::Collective::Gather,
        Collective::Broadcast => pb::Collective::Broadcast,
        Collective::Gossip => pb::Collective::Gossip,
        Collective::Exchange => pb::Collective::Exchange,
    };
    collective.into()
}

pub(super) fn parse_collective(code: i32) -> Result<Collective, WireError> {
    let mut all = Collective::ALL.into_iter();
    all.find(|one| put_collective(*one) == code)
        .ok_or_else(|| WireError::malformed(format!("{code} is not a collective")))
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

fn parse_parts(parts: u32) -> Result<u32, WireError> {
    match (1..=MAX_PARTS).contains(&parts) {
        true => Ok(parts),
        false => Err(WireError::malformed(format!("messages with {parts} parts"))),
    }
}

pub(super) fn parse_flit_bytes(flit_bytes: u32) -> Result<u32, WireError> {
    match (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&flit_bytes) {
        true => Ok(flit_bytes),
        false => Err(WireError::malformed(format!(
            "no flit can have {flit_bytes} bytes"
        ))),
    }
}

/// Checks that there is a size for each message, or none; no packet exceeds a flit.
fn parse_packet_bytes(
    packet_bytes: Vec<u32>,
    sends: usize,
    flit_bytes: u32,
) -> Result<Vec<u32>, WireError> {
    if !packet_bytes.is_empty() && packet_bytes.len() != sends {
        return Err(WireError::malformed(format!(
            "{} packet sizes for {sends} messages",
            packet_bytes.len()
        )));
    }
    let fits = |bytes: &u32| (MIN_FLIT_BYTES..=flit_bytes).contains(bytes);
    match packet_bytes.iter().find(|bytes| !fits(bytes)) {
        None => Ok(packet_bytes),
        Some(bytes) => Err(WireError::malformed(format!(
            "no packet can have {bytes} bytes where a flit has {flit_bytes}"
        ))),
    }
}

fn put_hop(hop: &ScheduledHop) -> pb::ScheduledHop {
    pb::ScheduledHop {
        message: hop.message.0,
        flits: hop.flits,
        from: hop.from.0,
        to: hop.to.0,
        first_step: hop.first_step,
        offset: hop.offset,
        every: hop.every,
        packing: match hop.packing {
            Packing::Flits => pb::Packing::Flits.into(),
            Packing::Begins => pb::Packing::Begins.into(),
            Packing::Joins => pb::Packing::Joins.into(),
        },
    }
}

fn parse_hop(hop: pb::ScheduledHop) -> ScheduledHop {
    ScheduledHop {
        packing: match hop.packing() {
            pb::Packing::Flits => Packing::Flits,
            pb::Packing::Begins => Packing::Begins,
            pb::Packing::Joins => Packing::Joins,
        },
        message: MessageId(hop.message),
        flits: hop.flits,
        from: PeId(hop.from),
        to: PeId(hop.to),
        first_step: hop.first_step,
        offset: hop.offset,
        every: hop.every,
    }
}
