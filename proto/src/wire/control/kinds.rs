//! Messages from the coordinator and to it, to and from protobuf.

use std::sync::Arc;

use prost::Message as _;

use super::footprint::decode;
use super::pe_schedule::check_flit_bytes;
use super::task::check_work;
use super::{Assignment, FilePayload, FromPe, Job, Lane, Payload, Peer, Prepare, ToPe};
use crate::cost::{Edge, FileCosts, Link};
use crate::exchange::Exchange;
use crate::tree::{MAX_PES, TreeError};
use crate::wire::codec::{Wire, codes, ensure, messages, missing, non_empty, record, required};
use crate::wire::{MAX_CONTROL_FRAME, MAX_DELIVERIES, MAX_LANES, WireError, check_length, pb};
use crate::{Compression, DeliveryId, Durability, PeId, Tree, Update, shape};

messages! {
    ToPe, "a PE's message from the coordinator",
    |message: &ToPe| match message {
        ToPe::Clear { work, .. } => check_work(work),
        ToPe::ListShards { input, output } => check_work(input).and(check_work(output)),
        _ => Ok(()),
    };
    whole: Welcome.0, Assignment.0, CheckPrefixes.prefixes, SkipFiles.present, Prepare.0, Run.0, PlaceResults.0;
    fields:
        Refusal { reason },
        ProbeEdge { child, budget_ns },
        MeasureFiles {},
        MeasureHost { encrypted },
        ReadClock {},
        Trigger { round, at_ns },
        Collect { round },
        Stop { over },
        Abort { round, reason },
        Ping { look },
        EndRun { shard },
        ListShards { input, output },
        Clear { work, gathered },
}

impl ToPe {
    /// Checks that the message fits into a frame, since a PE refuses a longer one.
    pub fn check_length(&self) -> Result<(), WireError> {
        check_length(self.message().encoded_len(), MAX_CONTROL_FRAME)
    }
}

record! {
    Prepare = Prepare { rounds, lanes }
    put prepare {
        schedule: Some(prepare.schedule.put()),
        prefixes: prepare.prefixes.put().messages,
        prefix_bytes: prepare.prefixes.put().bytes,
    }
    parse prepare {
        schedule: required(prepare.schedule, "the schedule")?,
        prefixes: Wire::parse(pb::CheckPrefixes {
            messages: prepare.prefixes,
            bytes: prepare.prefix_bytes,
        })?,
    }
}

record! {
    Assignment = Assignment {
        version, peers, collective, flit_bytes, payload, record_spans, left_out, own_links, versions,
        dry_run, max_bits_per_second,
    }
    put assignment {
        root: assignment.tree.root().0,
        parents: put_parents(&assignment.tree),
        parent_listen: assignment.parent_listen.clone().unwrap_or_default(),
        links: put_links(&assignment.links),
        lanes: assignment.lanes.iter().map(put_lane).collect(),
        job_id: assignment.job.id,
        recorded: assignment.job.recorded,
        later_output: assignment.job.later_output.put().unwrap_or_default(),
    }
    parse assignment {
        tree: Arc::new(parse_tree(assignment.root, assignment.parents)?),
        parent_listen: non_empty(assignment.parent_listen),
        links: parse_links(assignment.links, &tree)?,
        lanes: parse_lanes(assignment.lanes, &tree)?,
        job: Job {
            id: assignment.job_id,
            recorded: assignment.recorded,
            later_output: Wire::parse(
                Some(assignment.later_output).filter(|path| !path.is_empty()),
            )?,
        },
    },
    check
}

/// Checks that an assignment fits its tree.
fn check(assignment: &Assignment) -> Result<(), WireError> {
    let (collective, tree) = (assignment.collective, &assignment.tree);
    let is_bounded = !collective.is_of_pairs() || collective.deliveries(tree) <= MAX_DELIVERIES;
    ensure(is_bounded, "too many PEs for messages of each")?;
    if let Payload::Synthetic { lengths } = &assignment.payload {
        let is_each = lengths.len() == collective.lengths_given(tree);
        ensure(is_each, "not one length for each message")?;
    }
    let left_out = &assignment.left_out;
    let is_there = |it: &DeliveryId| collective.delivered(tree, *it).is_some();
    let are_sound = left_out.is_sorted_by(|a, b| a < b) && left_out.iter().all(is_there);
    ensure(
        are_sound,
        "the list of omitted messages has one that does not exist, or is not in order",
    )?;
    check_flit_bytes(assignment.flit_bytes)
}

impl Wire for Payload {
    type Pb = Option<pb::assignment::Payload>;

    fn put(&self) -> Option<pb::assignment::Payload> {
        Some(match self {
            Payload::Synthetic { lengths } => {
                let lengths = lengths.clone();
                pb::assignment::Payload::Synthetic(pb::SyntheticPayload { lengths })
            }
            Payload::Files(files) => pb::assignment::Payload::Files(files.put()),
        })
    }

    fn parse(payload: Option<pb::assignment::Payload>) -> Result<Payload, WireError> {
        Ok(match payload.ok_or_else(|| missing("the payload"))? {
            pb::assignment::Payload::Synthetic(pb::SyntheticPayload { lengths }) => {
                Payload::Synthetic { lengths }
            }
            pb::assignment::Payload::Files(files) => Payload::Files(Wire::parse(files)?),
        })
    }
}

record! { FilePayload = FilePayload { input, spread, output, replace, apart, names, shards, lines, block_bytes, parts, rules, durability, update, compression, archive, output_names, chooses_entries } }

codes! { Durability { Message, File, Never }, "is not a durability" }
codes! { Compression { Never, Lz4, Zstd }, "is not a compression" }
codes! { Update { Never, ByTime, ByContent }, "is not an update" }

/// Returns the parents of all PEs but the root; for an absent PE its own index.
fn put_parents(tree: &Tree) -> Vec<u32> {
    let others = tree.ids().filter(|pe| *pe != tree.root());
    others.map(|pe| tree.parent(pe).unwrap_or(pe).0).collect()
}

fn parse_tree(root: u32, parents: Vec<u32>) -> Result<Tree, WireError> {
    ensure(
        parents.len() < MAX_PES,
        TreeError::TooManyPes(parents.len() + 1),
    )?;
    let others = (0..).filter(|pe| *pe != root).zip(parents);
    let parents = others.map(|(pe, parent)| (parent != pe).then_some(PeId(parent)));
    let mut parents: Vec<Option<PeId>> = parents.collect();
    parents.insert(parents.len().min(root as usize), None);
    // There may be a million errors, of which only the first is reported.
    Tree::with_absent(PeId(root), parents).map_err(|faults| WireError::malformed(&faults.0[0]))
}

fn put_lane(lane: &Lane) -> pb::Lane {
    pb::Lane {
        parents: put_parents(&lane.tree),
        parent_listen: lane.parent_listen.clone().unwrap_or_default(),
        links: put_links(&lane.links),
    }
}

/// Parses further trees, which must have the PEs of the first one.
fn parse_lanes(lanes: Vec<pb::Lane>, first: &Tree) -> Result<Vec<Lane>, WireError> {
    ensure(lanes.len() < MAX_LANES, "too many trees at once")?;
    let parse = |lane: pb::Lane| {
        let differs = "trees of different PEs at once";
        ensure(lane.parents.len() + 1 == first.len(), differs)?;
        let tree = parse_tree(first.root().0, lane.parents)?;
        ensure(tree.pes().eq(first.pes()), differs)?;
        Ok(Lane {
            links: parse_links(lane.links, &tree)?,
            parent_listen: non_empty(lane.parent_listen),
            tree: Arc::new(tree),
        })
    };
    lanes.into_iter().map(parse).collect()
}

record! {
    Peer = Peer {}
    put peer {
        pe: peer.pe.0,
        listen: peer.listen.clone().unwrap_or_default(),
        to: peer.link.map(|[to, _]| to.put()),
        from: peer.link.map(|[_, from]| from.put()),
    }
    parse peer {
        pe: PeId(peer.pe),
        listen: non_empty(peer.listen),
        link: match (peer.to, peer.from) {
            (None, None) => None,
            (to, from) => Some([parse_shaped(to, pe)?, parse_shaped(from, pe)?]),
        },
    }
}

/// Parses the link to a PE in one direction, and checks that it can be shaped.
fn parse_shaped(link: Option<pb::Link>, pe: PeId) -> Result<Link, WireError> {
    let link = required(link, "a link")?;
    let fault = |fault| WireError::malformed(format!("the edge to {pe}: {fault}"));
    shape::check(&link).map_err(fault)?;
    Ok(link)
}

fn put_links(links: &[(PeId, Edge)]) -> Vec<pb::ShapedEdge> {
    let put = |&(child, edge): &(PeId, Edge)| pb::ShapedEdge {
        child: child.0,
        down: Some(edge.down.put()),
        up: Some(edge.up.put()),
    };
    links.iter().map(put).collect()
}

fn parse_links(links: Vec<pb::ShapedEdge>, tree: &Tree) -> Result<Vec<(PeId, Edge)>, WireError> {
    let parse = |link: pb::ShapedEdge| {
        let child = PeId(link.child);
        let is_edge = child != tree.root() && tree.contains(child);
        ensure(is_edge, format_args!("no edge leads to {child}"))?;
        let down = parse_shaped(link.down, child)?;
        let up = parse_shaped(link.up, child)?;
        Ok((child, Edge { down, up }))
    };
    links.into_iter().map(parse).collect()
}

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
