//! One method to execute an operation: what the PEs run, and how. The algorithm's name follows from
//! it.

use flitcast_plan::Algorithm;
use flitcast_proto::schedule::pace::Pacing;

use crate::options::baseline::Baseline;
use crate::options::order::MessageOrder;
use crate::options::packets::Packets;

/// A method to execute an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The operation that the PEs run.
    pub operation: Algorithm,
    /// The baseline, if the method is one; it builds its own tree.
    pub baseline: Option<Baseline>,
    /// Pacing of TRANSMIT AFTER orders; `None` chooses the best.
    pub pacing: Option<Pacing>,
    /// Payload bytes of a full flit; `None` chooses the best.
    pub flit_bytes: Option<u32>,
    /// Division of messages into packets, if packets were requested.
    pub packets: Option<Packets>,
    /// Order of a scatter's or a gather's messages.
    pub order: MessageOrder,
    /// Whether to send messages over all trees of a cover of the network at once.
    pub covers: bool,
}

impl Method {
    /// Returns an operation by its own algorithm, with the best of everything else.
    pub fn of(operation: Algorithm) -> Method {
        Method {
            operation,
            baseline: None,
            pacing: None,
            flit_bytes: None,
            packets: None,
            order: MessageOrder::Tail,
            covers: false,
        }
    }

    pub fn algorithm(&self) -> &'static str {
        self.baseline.map_or(self.operation.name(), Baseline::name)
    }

    /// Returns the name of the synchronisation of a certification algorithm.
    pub fn sync(&self) -> Option<&'static str> {
        self.operation.sync()
    }
}

/// Returns the operation named `name` by the algorithm named `algorithm`, as users type them.
pub fn operation_by(name: &str, algorithm: &str) -> Option<Algorithm> {
    if let Some(baseline) = Baseline::named(algorithm) {
        return baseline.operation(name);
    }
    Algorithm::named(name).find(|one| one.name() == algorithm)
}

#[cfg(test)]
mod tests {
    use clap::builder::TypedValueParser;
    use flitcast_proto::ops::Collective;

    use super::*;
    use crate::options::values::values_of;

    #[test]
    fn all_that_can_be_typed_stands_in_the_table() {
        for collective in [
            Collective::Scatter,
            Collective::Gather,
            Collective::Exchange,
        ] {
            let values = values_of(collective);
            let all = values.possible_values().into_iter().flatten();
            let names = all.map(|value| value.get_name().to_owned());
            let unknown = names.filter(|name| operation_by(collective.name(), name).is_none());
            assert_eq!(unknown.collect::<Vec<_>>(), ["auto"]);
        }
    }
}
