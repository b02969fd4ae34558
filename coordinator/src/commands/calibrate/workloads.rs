//! The workloads of a calibration. Their sizes are unusual, so that no evaluation uses lengths that
//! were calibrated on.

/// Lengths of the messages, in the format of `--lengths`, shortest first.
pub const WORKLOADS: [&str; 6] = [
    "equal:1031",
    "equal:16411",
    "ramp:50021",
    "equal:98317",
    "uniform:37..300017:41",
    "equal:716813",
];

/// The workloads that are gathered with every pacing: short messages, long ones, and different
/// ones.
pub const PACED: [&str; 3] = ["equal:16411", "equal:98317", "uniform:37..300017:41"];

#[cfg(test)]
mod tests {
    use super::*;
    use flitcast_cluster::options::workload::Lengths;

    #[test]
    fn workloads_are_valid_and_sorted_by_length() {
        let totals = WORKLOADS.map(|text| {
            let lengths: Lengths = text.parse().unwrap();
            let bytes = lengths.deal(7).unwrap();
            // Users do not choose such sizes.
            assert!(
                bytes
                    .iter()
                    .all(|bytes| bytes % 1000 != 0 && bytes % 1024 != 0),
                "{text}"
            );
            bytes.iter().sum::<u64>()
        });
        assert!(totals.is_sorted(), "{totals:?}");
    }
}
