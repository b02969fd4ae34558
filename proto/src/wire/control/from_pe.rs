//! Messages from a PE, to and from protobuf.

use super::FromPe;
use super::footprint::decode;
use crate::cost::FileCosts;
use crate::exchange::Exchange;
use crate::wire::codec::{Wire, messages, record};
use crate::wire::{WireError, pb};

messages! {
    FromPe, "a coordinator's message from a PE";
    whole: Join.0, Register.0, Ready.0, Report.0, Pong.0, Ran.0, FilesSkipped.skipped;
    fields:
        ProbeResult { child, exchanges },
        Prepared {},
        Progress { round, bytes },
        Fault { round, peer, reason, bad_input, output_stands, hung_up, changed },
        Line { text, shard },
        Cleared { left },
        ShardsListed { names, sizes, results, fault },
        ResultsPlaced { faults },
        FilesMeasured { costs as 0 },
        HostMeasured { found },
        PrefixesChecked { digests },
        ClockRead { at_ns },
}

record! {
    Exchange = Exchange {
        down_bytes, up_bytes, extra_flits, sent_ns, received_ns, answered_ns, returned_ns,
    }
}

impl Wire for Option<FileCosts> {
    type Pb = Vec<f64>;

    fn put(&self) -> Vec<f64> {
        self.map_or(Vec::new(), |costs| costs.to_array().to_vec())
    }

    fn parse(costs: Vec<f64>) -> Result<Option<FileCosts>, WireError> {
        if costs.is_empty() {
            return Ok(None);
        }
        let costs = costs.try_into().ok().map(FileCosts::from_array);
        let sound = costs.filter(FileCosts::is_sound);
        let malformed = || WireError::malformed("costs of files that cannot be");
        sound.map(Some).ok_or_else(malformed)
    }
}
