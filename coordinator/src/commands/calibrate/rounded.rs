//! Rounding to the digits that were measured.

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::Host;

/// Rounds a value to this number of significant digits.
pub fn significant(value: f64, digits: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let exponent = digits - 1 - value.abs().log10().floor() as i32;
    match exponent >= 0 {
        true => (value * 10f64.powi(exponent)).round() / 10f64.powi(exponent),
        false => (value / 10f64.powi(-exponent)).round() * 10f64.powi(-exponent),
    }
}

/// Rounds the costs of a host.
pub fn host(host: Host) -> Host {
    host.with_costs(host.costs().map(|cost| significant(cost, 4)))
}

/// Rounds the values of an edge.
pub fn edge(edge: MeasuredEdge) -> MeasuredEdge {
    let each = |estimate: Estimate, round: &dyn Fn(f64) -> f64| Estimate {
        value: round(estimate.value),
        low: round(estimate.low),
        high: round(estimate.high),
    };
    // Noise must not reduce the time of a byte below a thousandth of a nanosecond.
    let rate = |ns_per_byte: f64| significant(ns_per_byte, 5).max(1e-3);
    let link = |link: MeasuredLink| MeasuredLink {
        latency_ns: each(link.latency_ns, &f64::round),
        setup_ns: each(link.setup_ns, &f64::round),
        ns_per_byte: each(link.ns_per_byte, &rate),
        burst_bytes: each(link.burst_bytes, &f64::round),
    };
    MeasuredEdge {
        down: link(edge.down),
        up: link(edge.up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insignificant_digits_are_dropped() {
        for (value, digits, rounded) in [
            (0.0, 3, 0.0),
            (0.234_567, 3, 0.235),
            (15_432.9, 4, 15_430.0),
            (9_999.6, 4, 10_000.0),
            (0.001_234_5, 2, 0.001_2),
            (f64::NAN, 4, 0.0),
        ] {
            assert_eq!(significant(value, digits), rounded, "{value}");
        }
    }
}
