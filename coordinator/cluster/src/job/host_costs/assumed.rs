//! The assumed costs of processes, which also limit what is learned, and the parameters of learning.

use flitcast_plan::calibration::cost_estimate::Prior;
use flitcast_plan::cost::{COSTS, Host};

use crate::job::model::assumed_host;
use crate::tuning::CRYPTO_NS_PER_BYTE;

/// Returns the assumed costs of a host.
pub fn assumed(encrypted: bool) -> Host {
    let mut host = assumed_host();
    if encrypted {
        host.send_ns_per_byte += CRYPTO_NS_PER_BYTE;
        host.receive_ns_per_byte += CRYPTO_NS_PER_BYTE;
    }
    host
}

/// Returns the assumed costs of a machine, and the parameters of learning.
pub fn prior(encrypted: bool) -> Prior<COSTS> {
    Prior {
        costs: assumed(encrypted).costs(),
        // Processors differ by more than their costs' proportions: together a factor of three.
        log_deviations: [0.5; COSTS],
        common: 0.9,
        min_deviation: 0.03,
        drift: 0.02,
        common_drift: 0.05,
        sitting: 0.3,
        sitting_each: 0.02,
        iterations: 10,
    }
}
