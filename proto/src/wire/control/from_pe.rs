//! Messages from a PE, to and from protobuf.

use bytes::Bytes;

use super::counts::{parse_counts, put_counts};
use super::span::{parse_spans, put_spans};
use super::streams::{parse_streams, put_streams};
use super::version::{parse_digests, put_digests};
use super::{Arrival, Doing, FromPe, Join, OwnStart, Pong, Ran, Ready, Register, Report, decode};
use crate::calibration::Exchange;
use crate::cost::{FileCosts, MadeOf};
use crate::wire::pb::{self, control::Kind};
use crate::wire::{Secret, WireError, put_frame};
use crate::{DeliveryId, MessageId, PeId, RoundId};

impl FromPe {
    /// Appends the frame with its length prefix.
    pub fn put(&self, out: &mut Vec<u8>) {
        let kind = match self.clone() {
            FromPe::Join(join) => Kind::Join(join.put()),
            FromPe::Register(register) => Kind::Register(pb::Register {
                cluster: register.cluster,
                pe: register.pe.0,
                min_version: register.min_version,
                max_version: register.max_version,
                listen: register.listen,
                pid: register.pid,
                clock: register.clock,
                processor: register.processor,
                cores: register.cores,
                secret: register.secret.to_bytes(),
            }),
            FromPe::Ready(ready) => Kind::Ready(pb::Ready {
                message_bytes: ready.message_bytes,
                delivered: ready.delivered.into_iter().map(|it| it.0).collect(),
                standing: ready.standing.into_iter().map(|it| it.0).collect(),
                made_of: ready.made_of.iter().map(put_made_of).collect(),
                file_system: ready.file_system,
                states: ready.states,
                delivered_digests: put_digests(ready.delivered_digests.iter()),
                standing_bytes: ready.standing_bytes,
                standing_digests: put_digests(ready.standing_digests.iter()),
                prefixes: ready.prefixes.iter().map(|(of, _)| of.0).collect(),
                prefix_bytes: ready.prefixes.iter().map(|(_, bytes)| *bytes).collect(),
            }),
            FromPe::ProbeResult { child, exchanges } => Kind::ProbeResult(pb::ProbeResult {
                child: child.0,
                exchanges: exchanges.iter().map(put_exchange).collect(),
            }),
            FromPe::Prepared => Kind::Prepared(pb::Prepared {}),
            FromPe::Report(report) => {
                let (order, streams) = put_streams(&report.streams);
                Kind::Report(pb::Report {
                    order,
                    streams,
                    round: report.round.0,
                    complete: report.complete,
                    started_ns: report.started_ns,
                    began_ns: report.began_ns,
                    arrivals: report.arrivals.iter().map(put_arrival).collect(),
                    collisions: report.collisions,
                    peak_buffered_flits: report.peak_buffered_flits,
                    peak_resident_bytes: report.peak_resident_bytes,
                    own_start: report.own_start.map(|start| pb::OwnStart {
                        due_ns: start.due_ns,
                        began_ns: start.began_ns,
                    }),
                    late_frames: report.late_frames,
                    repeated_frames: report.repeated_frames,
                    files_ns: report.files_ns,
                    retransmitted_packets: report.retransmitted_packets,
                    digests: put_arrival_digests(&report.arrivals),
                    spans: put_spans(&report.spans),
                    counts: put_counts(*report.counts),
                })
            }
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
            FromPe::Pong(pong) => Kind::Pong(put_pong(pong)),
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
            Kind::Register(register) => FromPe::Register(Register {
                cluster: register.cluster,
                pe: PeId(register.pe),
                min_version: register.min_version,
                max_version: register.max_version,
                listen: register.listen,
                pid: register.pid,
                clock: register.clock,
                processor: register.processor,
                cores: register.cores,
                secret: Secret::parse(&register.secret)?,
            }),
            Kind::Ready(ready) => FromPe::Ready(Ready {
                message_bytes: ready.message_bytes,
                delivered: ready.delivered.into_iter().map(DeliveryId).collect(),
                standing: ready.standing.into_iter().map(DeliveryId).collect(),
                made_of: ready.made_of.iter().map(parse_made_of).collect(),
                file_system: ready.file_system,
                states: ready.states,
                delivered_digests: parse_digests(&ready.delivered_digests)?,
                standing_bytes: ready.standing_bytes,
                standing_digests: parse_digests(&ready.standing_digests)?,
                prefixes: parse_kept(&ready.prefixes, &ready.prefix_bytes)?,
            }),
            Kind::ProbeResult(result) => FromPe::ProbeResult {
                child: PeId(result.child),
                exchanges: result.exchanges.iter().map(parse_exchange).collect(),
            },
            Kind::Prepared(pb::Prepared {}) => FromPe::Prepared,
            Kind::Report(report) => FromPe::Report(Report {
                round: RoundId(report.round),
                complete: report.complete,
                started_ns: report.started_ns,
                began_ns: report.began_ns,
                arrivals: parse_arrivals(&report)?,
                collisions: report.collisions,
                peak_buffered_flits: report.peak_buffered_flits,
                peak_resident_bytes: report.peak_resident_bytes,
                own_start: report.own_start.map(|start| OwnStart {
                    due_ns: start.due_ns,
                    began_ns: start.began_ns,
                }),
                late_frames: report.late_frames,
                repeated_frames: report.repeated_frames,
                files_ns: report.files_ns,
                retransmitted_packets: report.retransmitted_packets,
                spans: parse_spans(&report.spans)?,
                counts: Box::new(parse_counts(report.counts)?),
                streams: parse_streams(report.order, &report.streams),
            }),
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
            Kind::Pong(pong) => FromPe::Pong(parse_pong(pong)?),
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

fn parse_kept(deliveries: &[u32], bytes: &[u64]) -> Result<Vec<(DeliveryId, u64)>, WireError> {
    if deliveries.len() != bytes.len() {
        return Err(WireError::malformed("not one length for each prefix"));
    }
    let pairs = deliveries.iter().zip(bytes);
    Ok(pairs.map(|(of, bytes)| (DeliveryId(*of), *bytes)).collect())
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

fn put_pong(pong: Pong) -> pb::Pong {
    use pb::pong::Doing as Code;
    let (doing, peer) = match pong.doing {
        Doing::Idle => (Code::Idle, PeId::ROOT),
        Doing::Working => (Code::Working, PeId::ROOT),
        Doing::Sending(to) => (Code::Sending, to),
        Doing::Receiving(from) => (Code::Receiving, from),
        Doing::Listening => (Code::Listening, PeId::ROOT),
    };
    pb::Pong {
        quiet_ms: pong.quiet_ms,
        files_quiet_ms: pong.files_quiet_ms,
        doing: doing as i32,
        peer: peer.0,
        unreached: pong.unreached.into_iter().map(|pe| pe.0).collect(),
        counts: put_counts(pong.counts),
    }
}

fn parse_pong(pong: pb::Pong) -> Result<Pong, WireError> {
    use pb::pong::Doing as Code;
    let peer = PeId(pong.peer);
    let doing = match Code::try_from(pong.doing) {
        Ok(Code::Idle) => Doing::Idle,
        Ok(Code::Working) => Doing::Working,
        Ok(Code::Sending) => Doing::Sending(peer),
        Ok(Code::Receiving) => Doing::Receiving(peer),
        Ok(Code::Listening) => Doing::Listening,
        Err(_) => {
            let code = pong.doing;
            return Err(WireError::malformed(format!("{code} is nothing a PE does")));
        }
    };
    Ok(Pong {
        quiet_ms: pong.quiet_ms,
        files_quiet_ms: pong.files_quiet_ms,
        doing,
        unreached: pong.unreached.into_iter().map(PeId).collect(),
        counts: parse_counts(pong.counts)?,
    })
}

fn put_made_of(made_of: &MadeOf) -> pb::MadeOf {
    pb::MadeOf {
        entries: made_of.entries,
        cold_bytes: made_of.cold_bytes,
    }
}

fn parse_made_of(made_of: &pb::MadeOf) -> MadeOf {
    MadeOf {
        entries: made_of.entries,
        cold_bytes: made_of.cold_bytes,
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

fn put_arrival(arrival: &Arrival) -> pb::Arrival {
    pb::Arrival {
        message: arrival.message.0,
        source: arrival.source.0,
        destination: arrival.destination.0,
        bytes_received: arrival.bytes_received,
        bytes_total: arrival.bytes_total,
        delivered: arrival.delivered,
        at_ns: arrival.at_ns,
        delivered_ns: arrival.delivered_ns,
    }
}

fn parse_arrival(arrival: &pb::Arrival) -> Arrival {
    Arrival {
        message: MessageId(arrival.message),
        source: PeId(arrival.source),
        destination: PeId(arrival.destination),
        bytes_received: arrival.bytes_received,
        bytes_total: arrival.bytes_total,
        delivered: arrival.delivered,
        at_ns: arrival.at_ns,
        delivered_ns: arrival.delivered_ns,
        digest: None,
    }
}

fn parse_arrivals(report: &pb::Report) -> Result<Vec<Arrival>, WireError> {
    let mut arrivals: Vec<Arrival> = report.arrivals.iter().map(parse_arrival).collect();
    let digests = parse_digests(&report.digests)?;
    if !digests.is_empty() && digests.len() != arrivals.len() {
        return Err(WireError::malformed("not one digest for each arrival"));
    }
    for (arrival, digest) in arrivals.iter_mut().zip(digests) {
        arrival.digest = (digest != [0; 16]).then_some(digest);
    }
    Ok(arrivals)
}

fn put_arrival_digests(arrivals: &[Arrival]) -> Bytes {
    if arrivals.iter().all(|arrival| arrival.digest.is_none()) {
        return Bytes::new();
    }
    let digests = arrivals.iter().map(|arrival| arrival.digest.as_ref());
    put_digests(digests.map(|digest| digest.unwrap_or(&[0; 16])))
}
