//! What calibration runs. All of it stands here, in odd sizes, so that nothing that is
//! evaluated later has been calibrated on.

/// Lengths of the messages, as `--lengths` takes them, shortest first.
pub const WORKLOADS: [&str; 6] = [
    "equal:1031",
    "equal:16411",
    "ramp:50021",
    "equal:98317",
    "uniform:37..300017:41",
    "equal:716813",
];

/// Those that are gathered with every pacing: short messages, long ones, and such as differ.
pub const PACED: [&str; 3] = ["equal:16411", "equal:98317", "uniform:37..300017:41"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::workload::Lengths;

    #[test]
    fn every_workload_is_one_and_they_come_by_length() {
        let totals = WORKLOADS.map(|text| {
            let lengths: Lengths = text.parse().unwrap();
            let bytes = lengths.deal(7).unwrap();
            // Nobody who thinks in kilobytes or kibibytes asks for these.
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
