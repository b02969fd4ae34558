//! Messages from the coordinator, to and from protobuf.

use std::sync::Arc;

use prost::Message as _;

use super::codec::{decode, missing, parse_link, parse_path, path_bytes, put_link};
use super::pe_schedule::{
    parse_collective, parse_flit_bytes, parse_schedule, put_collective, put_schedule,
};
use super::prefix::{parse_prefixes, put_prefixes};
use super::task::parse_work;
use super::{Assignment, Job, Lane, Payload, Peer, Prepare, Run, ToPe, Version, Welcome};
use crate::cost::{Edge, Link};
use crate::tree::{MAX_PES, TreeError};
use crate::wire::pb::control::Kind;
use crate::wire::{MAX_CONTROL_FRAME, MAX_DELIVERIES, MAX_LANES, WireError, pb, put_frame};
use crate::{DeliveryId, PeId, RoundId, Tree, shape};

impl ToPe {
    /// Appends the frame with its length prefix.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_frame(&self.message(), out);
    }

    /// Checks that the message fits into a frame, since a PE refuses a longer one.
    ///
    /// # Errors
    ///
    /// Returns the length if it exceeds [`MAX_CONTROL_FRAME`].
    pub fn check_length(&self) -> Result<(), WireError> {
        let (length, limit) = (self.message().encoded_len(), MAX_CONTROL_FRAME);
        match length > limit {
            true => Err(WireError::TooLong {
                length: length as u64,
                limit: limit as u64,
            }),
            false => Ok(()),
        }
    }

    fn message(&self) -> pb::Control {
        let kind = match self.clone() {
            ToPe::Welcome(welcome) => Kind::Welcome(welcome.put()),
            ToPe::Refusal { reason } => Kind::Refusal(pb::Refusal { reason }),
            ToPe::Assignment(assignment) => Kind::Assignment(put_assignment(assignment)),
            ToPe::ProbeEdge { child, budget_ns } => Kind::ProbeEdge(pb::ProbeEdge {
                child: child.0,
                budget_ns,
            }),
            ToPe::MeasureFiles => Kind::MeasureFiles(pb::MeasureFiles {}),
            ToPe::MeasureHost { encrypted } => Kind::MeasureHost(pb::MeasureHost { encrypted }),
            ToPe::CheckPrefixes { prefixes } => {
                let (messages, bytes) = put_prefixes(&prefixes);
                Kind::CheckPrefixes(pb::CheckPrefixes { messages, bytes })
            }
            ToPe::Prepare(prepare) => {
                let (prefixes, prefix_bytes) = put_prefixes(&prepare.prefixes);
                Kind::Prepare(pb::Prepare {
                    schedule: Some(put_schedule(&prepare.schedule)),
                    rounds: prepare.rounds,
                    lanes: prepare.lanes.iter().map(put_schedule).collect(),
                    prefixes,
                    prefix_bytes,
                })
            }
            ToPe::ReadClock => Kind::ReadClock(pb::ReadClock {}),
            ToPe::Trigger { round, at_ns } => Kind::Trigger(pb::Trigger {
                round: round.0,
                at_ns,
            }),
            ToPe::Collect { round } => Kind::Collect(pb::Collect { round: round.0 }),
            ToPe::Stop { over } => Kind::Stop(pb::Stop { over }),
            ToPe::Abort { round, reason } => Kind::Abort(pb::Abort {
                round: round.0,
                reason,
            }),
            ToPe::Ping { look } => Kind::Ping(pb::Ping { look }),
            ToPe::Run(run) => Kind::Run(run.put()),
            ToPe::Clear { work } => Kind::Clear(pb::Clear {
                work: path_bytes(&work),
            }),
        };
        pb::Control { kind: Some(kind) }
    }

    /// Parses the body of a frame.
    pub fn parse(body: &[u8]) -> Result<ToPe, WireError> {
        Ok(match decode(body)? {
            Kind::Welcome(welcome) => ToPe::Welcome(Welcome::parse(welcome)?),
            Kind::Refusal(pb::Refusal { reason }) => ToPe::Refusal { reason },
            Kind::Assignment(assignment) => ToPe::Assignment(parse_assignment(assignment)?),
            Kind::ProbeEdge(probe) => ToPe::ProbeEdge {
                child: PeId(probe.child),
                budget_ns: probe.budget_ns,
            },
            Kind::MeasureFiles(pb::MeasureFiles {}) => ToPe::MeasureFiles,
            Kind::MeasureHost(pb::MeasureHost { encrypted }) => ToPe::MeasureHost { encrypted },
            Kind::CheckPrefixes(pb::CheckPrefixes { messages, bytes }) => ToPe::CheckPrefixes {
                prefixes: parse_prefixes(&messages, &bytes)?,
            },
            Kind::Prepare(pb::Prepare {
                schedule,
                rounds,
                lanes,
                prefixes,
                prefix_bytes,
            }) => ToPe::Prepare(Prepare {
                schedule: parse_schedule(schedule.ok_or_else(|| missing("the schedule"))?)?,
                rounds,
                lanes: lanes
                    .into_iter()
                    .map(parse_schedule)
                    .collect::<Result<_, _>>()?,
                prefixes: parse_prefixes(&prefixes, &prefix_bytes)?,
            }),
            Kind::Trigger(trigger) => ToPe::Trigger {
                round: RoundId(trigger.round),
                at_ns: trigger.at_ns,
            },
            Kind::ReadClock(pb::ReadClock {}) => ToPe::ReadClock,
            Kind::Collect(collect) => ToPe::Collect {
                round: RoundId(collect.round),
            },
            Kind::Stop(pb::Stop { over }) => ToPe::Stop { over },
            Kind::Abort(abort) => ToPe::Abort {
                round: RoundId(abort.round),
                reason: abort.reason,
            },
            Kind::Ping(pb::Ping { look }) => ToPe::Ping { look },
            Kind::Run(run) => ToPe::Run(Run::parse(run)?),
            Kind::Clear(clear) => ToPe::Clear {
                work: parse_work(clear.work)?,
            },
            _ => return Err(WireError::malformed("a PE's message from the coordinator")),
        })
    }
}

fn put_assignment(assignment: Assignment) -> pb::Assignment {
    let tree = &assignment.tree;
    pb::Assignment {
        version: assignment.version,
        root: tree.root().0,
        parents: put_parents(tree),
        peers: assignment.peers.into_iter().map(put_peer).collect(),
        left_out: assignment.left_out.iter().map(|it| it.0).collect(),
        parent_listen: assignment.parent_listen.unwrap_or_default(),
        collective: put_collective(assignment.collective),
        flit_bytes: assignment.flit_bytes,
        links: put_links(&assignment.links),
        record_spans: assignment.record_spans,
        job_id: assignment.job.id,
        recorded: assignment.job.recorded,
        dry_run: assignment.dry_run,
        later_output: assignment
            .job
            .later_output
            .map(|path| path_bytes(&path))
            .unwrap_or_default(),
        lanes: assignment.lanes.into_iter().map(put_lane).collect(),
        own_links: assignment.own_links,
        versions: assignment.versions.into_iter().map(Version::put).collect(),
        payload: Some(match assignment.payload {
            Payload::Synthetic { lengths } => {
                pb::assignment::Payload::Synthetic(pb::SyntheticPayload { lengths })
            }
            Payload::Files {
                input,
                spread,
                output,
                replace,
                apart,
            } => pb::assignment::Payload::Files(pb::FilePayload {
                input: path_bytes(&input),
                spread,
                output: path_bytes(&output),
                replace,
                apart,
            }),
        }),
    }
}

fn parse_assignment(assignment: pb::Assignment) -> Result<Assignment, WireError> {
    let tree = parse_tree(assignment.root, assignment.parents)?;
    let collective = parse_collective(assignment.collective)?;
    if collective.is_of_pairs() && collective.deliveries(&tree) > MAX_DELIVERIES {
        return Err(WireError::malformed("too many PEs for messages of each"));
    }
    let payload = match assignment.payload.ok_or_else(|| missing("the payload"))? {
        pb::assignment::Payload::Synthetic(synthetic) => {
            if synthetic.lengths.len() != collective.lengths_given(&tree) {
                return Err(WireError::malformed("not one length for each message"));
            }
            Payload::Synthetic {
                lengths: synthetic.lengths,
            }
        }
        pb::assignment::Payload::Files(files) => Payload::Files {
            input: parse_path(files.input),
            spread: files.spread,
            output: parse_path(files.output),
            replace: files.replace,
            apart: files.apart,
        },
    };
    let links = parse_links(assignment.links, &tree)?;
    let left_out: Vec<DeliveryId> = assignment.left_out.into_iter().map(DeliveryId).collect();
    let is_there = |it: &DeliveryId| collective.delivered(&tree, *it).is_some();
    if !left_out.is_sorted_by(|a, b| a < b) || !left_out.iter().all(is_there) {
        return Err(WireError::malformed(
            "messages are left out that there are not, or not in order",
        ));
    }
    if assignment.lanes.len() >= MAX_LANES {
        return Err(WireError::malformed("too many trees at once"));
    }
    let lanes = assignment.lanes.into_iter();
    let lanes = lanes.map(|lane| parse_lane(lane, &tree));
    let lanes = lanes.collect::<Result<_, _>>()?;
    Ok(Assignment {
        version: assignment.version,
        peers: assignment
            .peers
            .into_iter()
            .map(parse_peer)
            .collect::<Result<_, _>>()?,
        links,
        tree: Arc::new(tree),
        parent_listen: Some(assignment.parent_listen).filter(|listen| !listen.is_empty()),
        lanes,
        own_links: assignment.own_links,
        versions: (assignment.versions.iter())
            .map(Version::parse)
            .collect::<Result<_, _>>()?,
        collective,
        flit_bytes: parse_flit_bytes(assignment.flit_bytes)?,
        payload,
        record_spans: assignment.record_spans,
        left_out,
        job: Job {
            id: assignment.job_id,
            recorded: assignment.recorded,
            later_output: Some(assignment.later_output)
                .filter(|path| !path.is_empty())
                .map(parse_path),
        },
        dry_run: assignment.dry_run,
    })
}

/// Returns the parents of all PEs but the root; for an absent PE its own index.
fn put_parents(tree: &Tree) -> Vec<u32> {
    let others = tree.ids().filter(|pe| *pe != tree.root());
    others.map(|pe| tree.parent(pe).unwrap_or(pe).0).collect()
}

fn parse_tree(root: u32, parents: Vec<u32>) -> Result<Tree, WireError> {
    if parents.len() >= MAX_PES {
        return Err(WireError::malformed(TreeError::TooManyPes {
            len: parents.len() + 1,
        }));
    }
    let others = (0..).filter(|pe| *pe != root).zip(parents);
    let parents = others.map(|(pe, parent)| (parent != pe).then_some(PeId(parent)));
    let mut parents: Vec<Option<PeId>> = parents.collect();
    parents.insert(parents.len().min(root as usize), None);
    // There may be a million errors, of which only the first is reported.
    Tree::with_absent(PeId(root), parents).map_err(|faults| WireError::malformed(&faults.0[0]))
}

fn put_lane(lane: Lane) -> pb::Lane {
    pb::Lane {
        parents: put_parents(&lane.tree),
        parent_listen: lane.parent_listen.unwrap_or_default(),
        links: put_links(&lane.links),
    }
}

/// Parses a further tree, which must have the PEs of the first one.
fn parse_lane(lane: pb::Lane, first: &Tree) -> Result<Lane, WireError> {
    let differs = || WireError::malformed("trees of different PEs at once");
    if lane.parents.len() + 1 != first.len() {
        return Err(differs());
    }
    let tree = parse_tree(first.root().0, lane.parents)?;
    if !tree.pes().eq(first.pes()) {
        return Err(differs());
    }
    Ok(Lane {
        links: parse_links(lane.links, &tree)?,
        parent_listen: Some(lane.parent_listen).filter(|listen| !listen.is_empty()),
        tree: Arc::new(tree),
    })
}

fn put_peer(peer: Peer) -> pb::Peer {
    let [to, from] = match peer.link {
        Some(both) => both.map(|link| Some(put_link(link))),
        None => [None, None],
    };
    pb::Peer {
        pe: peer.pe.0,
        listen: peer.listen.unwrap_or_default(),
        to,
        from,
    }
}

fn parse_peer(peer: pb::Peer) -> Result<Peer, WireError> {
    let pe = PeId(peer.pe);
    let link = match (peer.to, peer.from) {
        (None, None) => None,
        (to, from) => Some([parse_shaped(to, pe)?, parse_shaped(from, pe)?]),
    };
    Ok(Peer {
        pe,
        listen: Some(peer.listen).filter(|listen| !listen.is_empty()),
        link,
    })
}

/// Parses the link to a PE in one direction, and checks that it can be shaped.
fn parse_shaped(link: Option<pb::Link>, pe: PeId) -> Result<Link, WireError> {
    let link = parse_link(link)?;
    let fault = |fault| WireError::malformed(format!("the edge to {pe}: {fault}"));
    shape::check(&link).map_err(fault)?;
    Ok(link)
}

fn put_links(links: &[(PeId, Edge)]) -> Vec<pb::ShapedEdge> {
    let put = |&(child, edge): &(PeId, Edge)| pb::ShapedEdge {
        child: child.0,
        down: Some(put_link(edge.down)),
        up: Some(put_link(edge.up)),
    };
    links.iter().map(put).collect()
}

fn parse_links(links: Vec<pb::ShapedEdge>, tree: &Tree) -> Result<Vec<(PeId, Edge)>, WireError> {
    let parse = |link: pb::ShapedEdge| {
        let child = PeId(link.child);
        if child == tree.root() || !tree.contains(child) {
            return Err(WireError::malformed(format!("no edge leads to {child}")));
        }
        let (down, up) = (
            parse_shaped(link.down, child)?,
            parse_shaped(link.up, child)?,
        );
        Ok((child, Edge { down, up }))
    };
    links.into_iter().map(parse).collect()
}
