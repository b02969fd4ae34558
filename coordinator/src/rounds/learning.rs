//! What rounds tell of what processes cost on this machine. How that is learned and kept is
//! `host_costs`' business.

use flitcast_proto::calibration::edges_from_measurements;
use flitcast_proto::calibration::learned::Lesson;
use flitcast_proto::cost::{FileCosts, Host, Model};
use flitcast_proto::predict::predict;
use flitcast_proto::wire::control::Payload;

use crate::job::host_costs::files::{CachedFiles, MostlyFor};
use crate::job::host_costs::{self, geometric_mean};
use crate::job::model::model_of;
use crate::job::request::Request;
use crate::rounds::outcome::{Outcome, by_row};

/// How unsure the median of many rounds is, as a part of it: what the model does not know, about
/// what the best costs for 114 kinds of rounds leave.
const OFF_ALWAYS: f64 = 0.15;
/// How unsure a single round is besides.
const OFF_ONCE: f64 = 0.2;
/// A prediction of more flits on edges, some two milliseconds' work, is not worth being made
/// some thirty times to learn from it.
const MOST_FLITS: u64 = 4096;

/// What rounds of one kind tell: when their last byte arrived, and when their messages did in the
/// geometric mean.
pub fn lesson(outcome: &Outcome) -> Option<Lesson> {
    let measured = outcome.measured?;
    let arrivals = outcome.pes.iter().filter_map(|pe| pe.measured);
    let rounds = outcome.rounds_ns.len().max(1) as f64;
    Some(Lesson {
        times_ns: vec![
            measured.median as f64,
            geometric_mean(arrivals.map(|spread| spread.median))?,
        ],
        deviation: (OFF_ALWAYS * OFF_ALWAYS + OFF_ONCE * OFF_ONCE / rounds).sqrt(),
        rounds: outcome.rounds_ns.len() as u64,
    })
}

/// What rounds that were run would tell on a host that costs so much: by the schedule that they
/// were run by, which came of what was known then. PEs that were told to wait have waited.
pub fn would_take(request: &Request, outcome: &Outcome, host: &Host) -> Option<Vec<f64>> {
    let edges = edges_from_measurements(&outcome.rounds.measured.edges, host);
    let model = model_of(edges, *host, &request.site);
    let prediction = predict(&request.site.tree, &outcome.rounds.briefs, &model);
    let (operation, tree) = (request.way.operation, &request.site.tree);
    host_costs::foreseen(&by_row(operation, tree, &prediction.ok()?.arrivals_ns))
}

/// Learns from rounds of this machine. Those with files tell of their file systems alone;
/// those on shaped links of the links.
pub fn learn(request: &Request, outcome: &Outcome) {
    learn_files(request, outcome);
    let tells = host_costs::is_here(&request.site)
        && matches!(request.messages.payload, Payload::Synthetic { .. })
        && !request.site.is_shaped()
        && request.profile.is_none()
        && flits_on_edges(request, outcome) <= MOST_FLITS;
    let Some(lesson) = lesson(outcome).filter(|_| tells) else {
        return;
    };
    let predict = |host: &Host, _: usize| would_take(request, outcome, host);
    host_costs::learn(lesson, request.site.guard.is_encrypted(), &predict);
}

/// Learns from rounds with files what writing takes where they all went: from the whole time
/// until everything was visible, where that is mostly the files'.
fn learn_files(request: &Request, outcome: &Outcome) {
    let (Some(known), Some(phases)) = (&outcome.rounds.files, &outcome.phases) else {
        return;
    };
    let [written] = &known.written[..] else {
        return;
    };
    let rounds = &outcome.rounds;
    let edges = edges_from_measurements(&rounds.measured.edges, &rounds.costs.host);
    let wires_alone = model_of(edges, rounds.costs.host, &request.site);
    // What it would have taken, were some of it for nothing.
    let would_take = |free: fn(&mut FileCosts)| {
        let mut files = known.files.clone();
        files.disks.iter_mut().for_each(free);
        let model = Model {
            files: Some(files),
            ..wires_alone.clone()
        };
        let prediction = predict(&request.site.tree, &rounds.briefs, &model).ok()?;
        Some(prediction.round_ns() + prediction.commit_ns())
    };
    let no_entries = would_take(|costs| {
        (costs.create_ns, costs.commit_ns) = (0.0, 0.0);
        (costs.sync_ns, costs.sync_alone_ns) = (0.0, 0.0);
    });
    let no_bytes = would_take(|costs| {
        (costs.write_ns_per_byte, costs.flush_ns_per_byte) = (0.0, 0.0);
    });
    let (Some(no_entries), Some(no_bytes)) = (no_entries, no_bytes) else {
        return;
    };
    let predicted_ns = phases.transfer.predicted_ns + phases.commit.predicted_ns;
    let measured_ns = phases.transfer.measured.median + phases.commit.measured.median;
    let (mostly_for, rest_ns) = match no_entries < no_bytes {
        true => (MostlyFor::Entries, no_entries),
        false => (MostlyFor::Bytes, no_bytes),
    };
    if let Some(kept) = CachedFiles::load(written).filter(|_| 2 * rest_ns < predicted_ns) {
        kept.after(mostly_for, predicted_ns, measured_ns).store();
    }
}

/// Over all messages: their flits, times the edges that they cross.
fn flits_on_edges(request: &Request, outcome: &Outcome) -> u64 {
    let flit_bytes = u64::from(outcome.rounds.flit_bytes);
    let flits = outcome.pes.iter().map(|pe| {
        let edges = request.site.tree.depth(pe.pe);
        pe.bytes.div_ceil(flit_bytes) * u64::from(edges)
    });
    flits.sum()
}
