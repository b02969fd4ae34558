//! A round whose messages are cut into packets as somebody has asked for (`--packets`).
//!
//! A relay passes a flit on when it has all of it, so a packet of paper 003 is a flit, and how a
//! message is cut is how large its flits are. Its source alone needs to know: all flits but the
//! last are full, which takes no longer than even ones where the largest is no larger (Lemma 12).

use std::fmt;
use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::cost::Model;
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::packets::model::{LinkCost, Run, Ticks, messages};
use flitcast_proto::packets::path;
use flitcast_proto::predict::Prediction;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use serde::Serialize;

use crate::job::flit_size::{
    Foreseen, USUAL_FLIT_BYTES, best_alone, best_around, looking_ns, packet_costs,
};
use crate::job::model::{foresee, foresee_cut};
use crate::options::packets::Packets;
use crate::text::figures::as_micros;
use crate::text::units::{Bytes, Nanos};
use crate::text::words::counted;

/// Who asks for the best packets waits so long for them.
const LOOKING_NS: u64 = 200_000_000;

/// Parts of the longest message in which its packets are planned: as fine as anybody could tell.
const GRAINS: u64 = 4096;

/// How messages were cut, and what that was predicted to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PacketChoice {
    /// What was asked for.
    #[serde(serialize_with = "as_typed")]
    pub asked: Packets,
    /// Of all messages together.
    pub count: u64,
    /// The largest one, in bytes.
    pub largest_bytes: u32,
    /// What a round was predicted to take with them, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// What it was predicted to take in flits of the usual size.
    #[serde(rename = "usual_us", serialize_with = "as_micros")]
    pub usual_ns: u64,
}

fn as_typed<S: serde::Serializer>(asked: &Packets, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(asked)
}

impl fmt::Display for PacketChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of at most {}, {}: {} instead of {} at {}",
            self.count,
            Bytes(self.largest_bytes.into()),
            match self.asked {
                Packets::Auto => "predicted to be the best".to_owned(),
                Packets::Count(count) =>
                    format!("{} a message at most", counted(count, "packet", "packets")),
                Packets::Size(bytes) => format!("none above {}", Bytes(bytes.into())),
            },
            Nanos(self.predicted_ns),
            Nanos(self.usual_ns),
            Bytes(USUAL_FLIT_BYTES.into())
        )
    }
}

/// Foresees a round whose messages are cut so; `bytes` is by delivery.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule.
pub fn foresee_in_packets(
    tree: &Arc<Tree>,
    operation: Operation,
    pacing: Pacing,
    bytes: &[u64],
    asked: Packets,
    model: &Model,
) -> Result<Foreseen, RoundFault> {
    let cut = |packet_bytes: Vec<u32>| -> Result<Foreseen, RoundFault> {
        let foreseen = foresee_cut(tree, operation, pacing, bytes, packet_bytes, model)?;
        Ok(foreseen_of(foreseen))
    };
    let usual = foresee(tree, operation, pacing, bytes, USUAL_FLIT_BYTES, model)?;
    let usual = foreseen_of(usual);
    let usual_ns = usual.ns();
    let sizes = sizes(tree, operation, bytes, |bytes| asked.of(bytes));
    let mut best = match sizes {
        Some(sizes) => cut(sizes)?,
        None => {
            let best = best_of_one_size(tree, operation, &usual, model, |flit_bytes| {
                let foreseen = foresee(tree, operation, pacing, bytes, flit_bytes, model)?;
                Ok(foreseen_of(foreseen))
            })?;
            let planned = planned(tree, operation, bytes, model)
                .map(cut)
                .transpose()?;
            let all = [Some(usual), best, planned].into_iter().flatten();
            match all.min_by_key(Foreseen::ns) {
                Some(best) => best,
                None => unreachable!("the usual size is one of them"),
            }
        }
    };
    let sent = best.briefs.iter().flat_map(|brief| {
        let sent = brief.sends.iter();
        sent.map(|message| (message.bytes, u64::from(brief.flit_bytes_of(message.id))))
    });
    let largest = sent.clone().map(|(bytes, packet)| packet.min(bytes)).max();
    best.packets = Some(PacketChoice {
        asked,
        count: sent.map(|(bytes, packet)| bytes.div_ceil(packet)).sum(),
        largest_bytes: largest.unwrap_or(0) as u32,
        predicted_ns: best.ns(),
        usual_ns,
    });
    Ok(best)
}

fn foreseen_of((briefs, prediction): (Vec<Brief>, Prediction)) -> Foreseen {
    Foreseen {
        flit_bytes: briefs
            .first()
            .map_or(USUAL_FLIT_BYTES, |brief| brief.flit_bytes),
        chosen: None,
        packets: None,
        order: None,
        trees: None,
        briefs,
        lanes: Vec::new(),
        prediction,
    }
}

/// By message id, the largest packet of each message; `None` if nobody says it.
fn sizes(
    tree: &Tree,
    operation: Operation,
    bytes: &[u64],
    of: impl Fn(u64) -> Option<u32>,
) -> Option<Vec<u32>> {
    let mut sizes = Vec::new();
    for message in operation.messages(tree) {
        sizes.resize(message.id.index() + 1, MIN_FLIT_BYTES);
        sizes[message.id.index()] = of(operation.length(tree, message, bytes))?;
    }
    Some(sizes)
}

/// All messages in packets of one size, the best that is found in time.
fn best_of_one_size(
    tree: &Arc<Tree>,
    operation: Operation,
    usual: &Foreseen,
    model: &Model,
    of: impl Fn(u32) -> Result<Foreseen, RoundFault>,
) -> Result<Option<Foreseen>, RoundFault> {
    let Some(first) = best_alone(tree, operation, &usual.briefs, model) else {
        return Ok(None);
    };
    let mut left_ns = LOOKING_NS;
    best_around(first, |flit_bytes| {
        let takes = looking_ns(tree, &usual.briefs, flit_bytes);
        let Some(left) = left_ns.checked_sub(takes) else {
            return Ok(None);
        };
        left_ns = left;
        of(flit_bytes).map(Some)
    })
}

/// Of a scatter whose messages lie on one way from the root, packets of a size of its own for each,
/// which are the best there are where links are alike; `None` of all others.
fn planned(tree: &Tree, operation: Operation, bytes: &[u64], model: &Model) -> Option<Vec<u32>> {
    if operation != Operation::Scatter {
        return None;
    }
    let longest = bytes.iter().copied().max()?;
    let grain = longest.div_ceil(GRAINS).max(MIN_FLIT_BYTES.into());
    let grains: Vec<u64> = bytes.iter().map(|bytes| bytes.div_ceil(grain)).collect();
    let nonnull = messages(tree, &grains);
    if nonnull.len() < 2 || !path::is_one_way(tree, &nonnull) {
        return None;
    }
    let [a_packet, a_byte] = packet_costs(tree, operation, model);
    let picos = |ns: f64| (ns * 1e3).clamp(1.0, 1e15) as Ticks;
    let cost = LinkCost {
        setup: picos(a_packet),
        flit: picos(a_byte * grain as f64),
    };
    let mut sizes = vec![MIN_FLIT_BYTES; tree.len()];
    for Run { pe, flits, .. } in path::plan(cost, &nonnull).sequence {
        let packet = flits.saturating_mul(grain).min(MAX_FLIT_BYTES.into());
        sizes[pe.index()] = sizes[pe.index()].max(packet as u32);
    }
    Some(sizes)
}
