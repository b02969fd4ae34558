//! A bench as JSON. Keys may be added; existing keys keep their names and units.

use serde_json::{Value, json};

use super::checked::Bench;
use super::measure::passes;
use super::samples::Figures;
use flitcast_cluster::text::figures::micros;

pub fn json(bench: &Bench, figures: &[Figures]) -> String {
    let skipped = bench.skipped.iter().map(
        |skipped| json!({ "algorithm": skipped.algorithm, "reason": skipped.why.to_string() }),
    );
    let result = json!({
        "operation": bench.operation,
        "tree": bench.tree,
        "lengths": bench.lengths,
        "rounds": bench.rounds,
        "results": figures.iter().map(result).collect::<Vec<_>>(),
        "skipped": skipped.collect::<Vec<_>>(),
        "warm_up_rounds": bench.warm_up,
        "passes": passes(bench.rounds),
        "bytes": bench.bytes,
        "flit_bytes": bench.flit_bytes,
        "security": bench.guard.name(),
    });
    format!("{result:#}\n")
}

fn result(f: &Figures) -> Value {
    json!({
        "algorithm": f.algorithm,
        "predicted_us": micros(f.predicted_ns),
        "measured_us": {
            "min": micros(f.measured.min),
            "median": micros(f.measured.median),
            "p95": micros(f.measured.p95),
            "max": micros(f.measured.max),
        },
        "error_pct": f.error_pct(),
        "goodput_bytes_per_s": f.goodput_bytes_per_s,
        "collisions": f.collisions,
        "peak_buffered_flits": f.peak_buffered_flits,
        "spread_pct": f.spread_pct(),
        "slip_us": f.slip.map(|slip| json!({
            "median": micros(slip.median),
            "max": micros(slip.max),
        })),
        "tree": f.tree,
    })
}
