//! Messages from a PE, to and from protobuf.

use super::codec::decode;
use super::version::{parse_digests, put_digests};
use super::{FromPe, Join, Pong, Ran, Ready, Register, Report};
use crate::cost::FileCosts;
use crate::exchange::Exchange;
use crate::wire::pb::{self, control::Kind};
use crate::wire::{WireError, put_frame};
use crate::{MessageId, PeId, RoundId};

impl FromPe {
    /// Appends the frame with its length prefix.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.clone() {
            FromPe::Join(join) => Kind::Join(join.put()),
            FromPe::Register(register) => Kind::Register(register.put()),
            FromPe::Ready(ready) => Kind::Ready(ready.put()),
            FromPe::ProbeResult { child, exchanges } => Kind::ProbeResult(pb::ProbeResult {
                child: child.0,
                exchanges: exchanges.iter().map(put_exchange).collect(),
            }),
            FromPe::Prepared => Kind::Prepared(pb::Prepared {}),
            FromPe::Report(report) => Kind::Report(report.put()),
            FromPe::Progress { round, bytes } => Kind::Progress(pb::Progress {
                round: round.0,
                bytes,
            }),
            FromPe::Fault {
                round,
                peer,
                reason,
                bad_input,
                output_stands,
                hung_up,
                changed,
            } => Kind::Fault(pb::Fault {
                round: round.0,
                peer: peer.map(|pe| pe.0),
                reason,
                bad_input,
                output_stands,
                hung_up,
                changed: changed.into_iter().map(|id| id.0).collect(),
            }),
            FromPe::Pong(pong) => Kind::Pong(pong.put()),
            FromPe::Line(text) => Kind::Line(pb::Line { text }),
            FromPe::Ran(ran) => Kind::Ran(ran.put()),
            FromPe::Cleared { left } => Kind::Cleared(pb::Cleared { left }),
            FromPe::FilesMeasured(costs) => Kind::FilesMeasured(pb::FilesMeasured {
                costs: costs.map_or(Vec::new(), |costs| costs.to_array().to_vec()),
            }),
            FromPe::HostMeasured { found } => Kind::HostMeasured(pb::HostMeasured { found }),
            FromPe::PrefixesChecked { digests } => Kind::PrefixesChecked(pb::PrefixesChecked {
                digests: put_digests(digests.iter()),
            }),
            FromPe::ClockRead { at_ns } => Kind::ClockRead(pb::ClockRead { at_ns }),
        };
        put_frame(&pb::Control { kind: Some(kind) }, out);
    }

    /// Parses the body of a frame.
    pub fn parse(body: &[u8]) -> Result<FromPe, WireError> {
        Ok(match decode(body)? {
            Kind::Join(join) => FromPe::Join(Join::parse(join)),
            Kind::Register(register) => FromPe::Register(Register::parse(register)?),
            Kind::Ready(ready) => FromPe::Ready(Ready::parse(ready)?),
            Kind::ProbeResult(result) => FromPe::ProbeResult {
                child: PeId(result.child),
                exchanges: result.exchanges.iter().map(parse_exchange).collect(),
            },
            Kind::Prepared(pb::Prepared {}) => FromPe::Prepared,
            Kind::Report(report) => FromPe::Report(Report::parse(report)?),
            Kind::Progress(progress) => FromPe::Progress {
                round: RoundId(progress.round),
                bytes: progress.bytes,
            },
            Kind::Fault(fault) => FromPe::Fault {
                round: RoundId(fault.round),
                peer: fault.peer.map(PeId),
                reason: fault.reason,
                bad_input: fault.bad_input,
                output_stands: fault.output_stands,
                hung_up: fault.hung_up,
                changed: fault.changed.into_iter().map(MessageId).collect(),
            },
            Kind::Pong(pong) => FromPe::Pong(Pong::parse(pong)?),
            Kind::Line(pb::Line { text }) => FromPe::Line(text),
            Kind::Ran(ran) => FromPe::Ran(Ran::parse(ran)?),
            Kind::Cleared(pb::Cleared { left }) => FromPe::Cleared { left },
            Kind::FilesMeasured(pb::FilesMeasured { costs }) => {
                FromPe::FilesMeasured(parse_file_costs(&costs)?)
            }
            Kind::HostMeasured(pb::HostMeasured { found }) => FromPe::HostMeasured { found },
            Kind::ClockRead(pb::ClockRead { at_ns }) => FromPe::ClockRead { at_ns },
            Kind::PrefixesChecked(checked) => FromPe::PrefixesChecked {
                digests: parse_digests(&checked.digests)?,
            },
            _ => return Err(WireError::malformed("a coordinator's message from a PE")),
        })
    }
}

fn put_exchange(exchange: &Exchange) -> pb::Exchange {
    pb::Exchange {
        down_bytes: exchange.down_bytes,
        up_bytes: exchange.up_bytes,
        extra_flits: exchange.extra_flits,
        sent_ns: exchange.sent_ns,
        received_ns: exchange.received_ns,
        answered_ns: exchange.answered_ns,
        returned_ns: exchange.returned_ns,
    }
}

fn parse_exchange(exchange: &pb::Exchange) -> Exchange {
    Exchange {
        down_bytes: exchange.down_bytes,
        up_bytes: exchange.up_bytes,
        extra_flits: exchange.extra_flits,
        sent_ns: exchange.sent_ns,
        received_ns: exchange.received_ns,
        answered_ns: exchange.answered_ns,
        returned_ns: exchange.returned_ns,
    }
}

fn parse_file_costs(costs: &[f64]) -> Result<Option<FileCosts>, WireError> {
    if costs.is_empty() {
        return Ok(None);
    }
    let costs = costs.try_into().ok().map(FileCosts::from_array);
    let sound = costs.filter(FileCosts::is_sound);
    let malformed = || WireError::malformed("costs of files that cannot be");
    sound.map(Some).ok_or_else(malformed)
}
