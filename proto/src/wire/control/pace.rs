//! The times on a PE's edges, to and from protobuf.

use super::codec::missing;
use crate::schedule::pace::{ChildPace, Pace, Pacing, Passage};
use crate::wire::{WireError, pb};

pub(super) fn put_pace(pace: &Pace) -> pb::Pace {
    let pacing = match pace.pacing {
        Pacing::Scheduled => pb::Pacing::Scheduled,
        Pacing::Turns => pb::Pacing::Turns,
        Pacing::Eager => pb::Pacing::Eager,
    };
    let below = pace.below.iter().map(|below| pb::ChildPace {
        reach_ns: below.reach,
        back_ns: below.back,
    });
    pb::Pace {
        pacing: pacing.into(),
        control_ns: pace.control,
        up: Some(pb::Passage {
            latency_ns: pace.up.latency,
            ns_per_byte: pace.up.ticks_per_byte,
            message_ns: pace.up.message,
            flit_bytes: pace.up.flit_bytes,
        }),
        below: below.collect(),
        port_ns_per_byte: pace.port_ticks_per_byte,
        ahead_bytes: pace.ahead_bytes,
    }
}

pub(super) fn parse_pace(pace: Option<pb::Pace>) -> Result<Pace, WireError> {
    let pace = pace.ok_or_else(|| missing("the pace"))?;
    let up = pace.up.ok_or_else(|| missing("the pace to the parent"))?;
    let is_sound = |rate: f64| rate.is_finite() && rate >= 0.0;
    if !is_sound(up.ns_per_byte) || !is_sound(pace.port_ns_per_byte) {
        return Err(WireError::malformed("a pace with nonsense numbers"));
    }
    let pacing = match pb::Pacing::try_from(pace.pacing) {
        Ok(pb::Pacing::Scheduled) => Pacing::Scheduled,
        Ok(pb::Pacing::Turns) => Pacing::Turns,
        Ok(pb::Pacing::Eager) => Pacing::Eager,
        Ok(pb::Pacing::Unspecified) | Err(_) => {
            let code = pace.pacing;
            return Err(WireError::malformed(format!("{code} is no pacing")));
        }
    };
    let below = pace.below.iter().map(|below| ChildPace {
        reach: below.reach_ns,
        back: below.back_ns,
    });
    Ok(Pace {
        pacing,
        lock_step: false,
        control: pace.control_ns,
        up: Passage {
            latency: up.latency_ns,
            ticks_per_byte: up.ns_per_byte,
            message: up.message_ns,
            flit_bytes: up.flit_bytes,
        },
        below: below.collect(),
        port_ticks_per_byte: pace.port_ns_per_byte,
        ahead_bytes: pace.ahead_bytes,
    })
}
