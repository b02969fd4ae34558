//! What operations, algorithms and pacings are called: on the command line, in files and in
//! results.

use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;

/// "scatter" or "gather".
pub fn operation_name(operation: Operation) -> &'static str {
    if operation.is_scatter() {
        "scatter"
    } else {
        "gather"
    }
}

/// The algorithm, and for certification how it synchronises.
pub fn algorithm_name(operation: Operation) -> (&'static str, Option<&'static str>) {
    match operation {
        Operation::Scatter => ("fdf", None),
        Operation::ShoulderTap => ("shoulder-tap", None),
        Operation::Certification(Sync::Serial) => ("certification", Some("serial")),
        Operation::Certification(Sync::Pipelined) => ("certification", Some("pipelined")),
        Operation::Certification(Sync::Parallel) => ("certification", Some("parallel")),
        Operation::LinearGather { .. } => ("linear", None),
        Operation::CombiningGather | Operation::CombiningScatter => ("combining", None),
    }
}

/// How orders were obeyed, where there were any.
pub fn pacing_name(pacing: Option<Pacing>) -> Option<&'static str> {
    pacing.map(|pacing| match pacing {
        Pacing::Scheduled => "scheduled",
        Pacing::Turns => "turns",
        Pacing::Eager => "eager",
    })
}
