//! One way to do an operation: what the PEs do, and how. What it is called follows from that.

use flitcast_proto::ops::Operation;
use flitcast_proto::schedule::pace::Pacing;

use crate::options::packets::Packets;
use crate::ways::baseline::Baseline;

/// A way to do an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// What the PEs do.
    pub operation: Operation,
    /// What users know from elsewhere, if it is that: it lays a tree of its own.
    pub baseline: Option<Baseline>,
    /// How orders are obeyed; `None`: whatever is best.
    pub pacing: Option<Pacing>,
    /// Payload bytes of a full flit; `None`: whatever is best.
    pub flit_bytes: Option<u32>,
    /// How messages are cut, if packets were asked for.
    pub packets: Option<Packets>,
    /// Whether a better order of a scatter's messages is searched for.
    pub searches_order: bool,
    /// Whether messages go on all trees of a cover of the network at once.
    pub covers: bool,
}

impl Way {
    /// The algorithm's name.
    pub fn algorithm(&self) -> &'static str {
        self.baseline
            .map_or(self.operation.algorithm(), Baseline::name)
    }

    /// How certification synchronises, if it is that.
    pub fn sync(&self) -> Option<&'static str> {
        self.operation.sync()
    }
}

/// The operation of this name by an algorithm that users may ask for, by its name.
pub fn operation_by(name: &str, algorithm: &str) -> Option<Operation> {
    if let Some(baseline) = Baseline::named(algorithm) {
        return baseline.operation(name);
    }
    Operation::named(name).find(|one| one.algorithm() == algorithm)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::options::args::{GatherAlgorithm, ScatterAlgorithm};
    use crate::options::names::typed;

    /// Those that can be typed and stand for no operation.
    fn unknown<A: ValueEnum>(name: &str) -> Vec<String> {
        let all = A::value_variants().iter().map(typed);
        all.filter(|algorithm| operation_by(name, algorithm).is_none())
            .collect()
    }

    #[test]
    fn all_that_can_be_typed_stands_in_the_table() {
        assert_eq!(unknown::<ScatterAlgorithm>("scatter"), ["auto"]);
        assert_eq!(unknown::<GatherAlgorithm>("gather"), ["auto"]);
    }
}
