//! What rounds tell of what processes cost on this machine. How that is learned and kept is
//! `host_costs`' business.

use flitcast_proto::calibration::edges_from_measurements;
use flitcast_proto::calibration::learned::Lesson;
use flitcast_proto::cost::{Host, Model};
use flitcast_proto::predict::predict;
use flitcast_proto::wire::control::Payload;

use crate::job::host_costs::files::{CachedFiles, Factors};
use crate::job::host_costs::{self, geometric_mean};
use crate::job::model::model_of;
use crate::job::request::Request;
use crate::rounds::outcome::{Outcome, by_row};

/// How unsure the median of many rounds is, as a part of it: what the model does not know, about
/// what the best costs for 114 kinds of rounds leave.
const OFF_ALWAYS: f64 = 0.15;
/// How unsure a single round is besides.
const OFF_ONCE: f64 = 0.2;
/// And a single round with files: disks are busy with others now and then.
const FILES_OFF_ONCE: f64 = 0.25;
/// A prediction of more flits on edges, some two milliseconds' work, is not worth being made
/// some thirty times to learn from it.
const MOST_FLITS: u64 = 4096;
/// Rounds with files take longer by themselves.
const MOST_FLITS_WITH_FILES: u64 = 32_768;

/// What rounds of one kind tell: when their last byte arrived, and when their messages did in the
/// geometric mean.
pub fn lesson(outcome: &Outcome) -> Option<Lesson> {
    let measured = outcome.measured?;
    let arrivals = outcome.pes.iter().filter_map(|pe| pe.measured);
    let rounds = outcome.rounds_ns.len();
    Some(Lesson {
        times_ns: vec![
            measured.median as f64,
            geometric_mean(arrivals.map(|spread| spread.median))?,
        ],
        deviation: deviation(OFF_ALWAYS, OFF_ONCE, rounds),
        rounds: rounds as u64,
    })
}

/// What the first of them tells: when its last byte arrived.
pub fn first_lesson(outcome: &Outcome) -> Option<Lesson> {
    Some(Lesson {
        times_ns: vec![*outcome.rounds_ns.first()? as f64],
        deviation: deviation(OFF_ALWAYS, OFF_ONCE, 1),
        rounds: 0,
    })
}

/// How unsure the median of so many rounds is.
fn deviation(always: f64, once: f64, rounds: usize) -> f64 {
    (always * always + once * once / rounds.max(1) as f64).sqrt()
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

/// Learns from rounds of this machine. Those with files tell of files, and of what
/// those make of the processes' costs; those on shaped links of the links.
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
    let predict =
        |host: &Host, _: usize| would_take(request, outcome, &host.in_median_of(lesson.rounds));
    host_costs::learn(&lesson, request.site.guard.is_encrypted(), &predict);
}

/// Learns from rounds with files what those cost where they all went.
fn learn_files(request: &Request, outcome: &Outcome) {
    let rounds = &outcome.rounds;
    let (Some(known), Some(phases)) = (&rounds.files, &outcome.phases) else {
        return;
    };
    let Some((written, place)) = &known.written else {
        return;
    };
    let Some(kept) = CachedFiles::load(written) else {
        return;
    };
    let count = outcome.rounds_ns.len();
    let host = rounds.costs.host.in_median_of(count as u64);
    let edges = edges_from_measurements(&rounds.measured.edges, &rounds.costs.host);
    let wires_alone = model_of(edges, host, &request.site);
    // Of waiting for files, which may be none at all, only what is a part of the transfer counts.
    let times = |transfer_ns: u64, whole_ns: u64, disk_ns: u64| {
        let with_disk_ns = transfer_ns + disk_ns;
        [transfer_ns, whole_ns, with_disk_ns]
            .map(|ns| ns as f64)
            .to_vec()
    };
    let would_take = |factors: &Factors| {
        let mut files = known.files.clone();
        *files.disks.get_mut(*place)? = kept.costs_by(factors);
        let model = Model {
            host: match known.changes_host {
                true => factors.host(host),
                false => host,
            },
            files: Some(files),
            ..wires_alone.clone()
        };
        let prediction = predict(&request.site.tree, &rounds.briefs, &model).ok()?;
        let transfer_ns = prediction.round_ns();
        let whole_ns = transfer_ns + prediction.commit_ns();
        Some(times(transfer_ns, whole_ns, prediction.disk_ns()))
    };
    let [transfer, whole, disk] = [phases.transfer, phases.whole, phases.disk];
    let [transfer_ns, whole_ns, disk_ns] = [transfer, whole, disk].map(|it| it.measured.median);
    let lesson = Lesson {
        times_ns: times(transfer_ns, whole_ns, disk_ns),
        deviation: deviation(OFF_ALWAYS, FILES_OFF_ONCE, count),
        rounds: count as u64,
    };
    if flits_on_edges(request, outcome) <= MOST_FLITS_WITH_FILES {
        kept.after(lesson, &would_take).store();
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
