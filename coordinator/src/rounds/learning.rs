//! What rounds tell of what processes cost on this machine. How that is learned and kept is
//! `host_costs`' business.

use flitcast_proto::calibration::edges_from_measurements;
use flitcast_proto::calibration::learned::Lesson;
use flitcast_proto::cost::Host;
use flitcast_proto::wire::control::Payload;

use crate::job::host_costs::files::Kept;
use crate::job::host_costs::{self, geometric_mean};
use crate::job::model::{foresee, model_of};
use crate::job::request::Request;
use crate::rounds::outcome::Outcome;

/// How unsure the median of many rounds is, as a part of it: what the model does not know.
const OFF_ALWAYS: f64 = 0.08;
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

/// Learns from rounds of this machine. Those with files tell of their file systems alone;
/// those on shaped links of the links.
pub fn learn(request: &Request, outcome: &Outcome) {
    learn_files(outcome);
    let tells = host_costs::is_here(request)
        && matches!(request.payload, Payload::Synthetic { .. })
        && !request.is_shaped()
        && request.profile.is_none()
        && flits_on_edges(request, outcome) <= MOST_FLITS;
    let Some(lesson) = lesson(outcome).filter(|_| tells) else {
        return;
    };
    let pacing = outcome.rounds.pacing.unwrap_or(request.usual_pacing());
    let predict = |host: &Host, _: usize| {
        let edges = edges_from_measurements(&outcome.rounds.measured.edges, host);
        let model = model_of(edges, *host, request);
        let foreseen = foresee(
            &request.tree,
            request.operation,
            pacing,
            &outcome.rounds.bytes,
            request.flit_bytes,
            &model,
        );
        host_costs::foreseen(&foreseen.ok()?.1.arrivals_ns)
    };
    host_costs::learn(lesson, request.guard.is_encrypted(), &predict);
}

/// Learns from rounds with files what writing takes where they all went.
fn learn_files(outcome: &Outcome) {
    let (Some(known), Some(phases)) = (&outcome.rounds.files, &outcome.phases) else {
        return;
    };
    let [written] = &known.written[..] else {
        return;
    };
    if let Some(kept) = Kept::load(written) {
        let predicted_ns = phases.disk.predicted_ns + phases.commit.predicted_ns;
        let measured_ns = phases.disk.measured.median + phases.commit.measured.median;
        kept.after(predicted_ns, measured_ns).store();
    }
}

/// Over all messages: their flits, times the edges that they cross.
fn flits_on_edges(request: &Request, outcome: &Outcome) -> u64 {
    let flit_bytes = u64::from(request.flit_bytes);
    let flits = outcome.pes.iter().map(|pe| {
        let edges = request.tree.depth(pe.pe);
        pe.bytes.div_ceil(flit_bytes) * u64::from(edges)
    });
    flits.sum()
}
