//! The model of a cluster: what was measured of it, or what a profile says; and what it
//! foresees.

use std::sync::Arc;

use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::calibration::{MeasuredEdge, edges_from_measurements};
use flitcast_proto::cost::{Edge, Host, Hosts, Model, Ports};
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::predict::{Prediction, predict};
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::{Pacing, Timing};
use flitcast_proto::shape::RUN_AHEAD_NS;
use flitcast_proto::wire::MIN_FLIT_BYTES;
use flitcast_proto::wire::seal::SEAL_BYTES;
use flitcast_proto::{PeId, Tree};

use crate::files::profile::Profile;
use crate::job::fit::EdgeFit;
use crate::job::request::Site;

/// What Linux lets a connection hold when nobody reads, by its defaults.
pub const BUFFER_BYTES: u64 = 4 << 20;

/// Of each byte that comes over a network, TCP sends back so much: an acknowledgement for every second
/// full segment, of 20 bytes, as many of IP and 12 of options, both in Ethernet frames of 1514
/// bytes at most.
const ACKNOWLEDGED: f64 = 66.0 / (2.0 * 1514.0);

/// What is known of a cluster's edges and clocks.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// By PE index; `[0]` is not looked at.
    pub edges: Vec<MeasuredEdge>,
    /// By PE index: what an edge was taken to be like, if it was not measured whole.
    pub alike: Vec<Option<Alike>>,
    /// Offsets to P0's clock, by PE index.
    pub clocks: Vec<ClockOffset>,
    /// What the edges were fitted to, if they were measured just now.
    pub fits: Vec<EdgeFit>,
    /// Cores that all PEs share, if they are on one machine.
    pub shared_cores: Option<u32>,
}

/// Of an edge that was not measured whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The PE whose edge's rate and burst it is taken to have.
    pub other: PeId,
    /// Whether its latencies were measured; else they are taken to be the other's, too.
    pub asked: bool,
}

/// From P0's start to a reading of another PE's clock. Where the clocks are not sure
/// enough, the reading may seem to be before it.
pub fn since(started_ns: u64, at_ns: u64, clock: ClockOffset) -> u64 {
    let since = clock.on_the_other(at_ns) - i128::from(started_ns);
    u64::try_from(since.max(0)).unwrap_or(u64::MAX)
}

/// What processes are assumed to cost where nobody could measure it, and what nothing that is
/// learned leaves too far: about what `flitcast calibrate` finds on a machine of two cores.
pub fn assumed_host() -> Host {
    Host {
        shared_cores: None,
        wake_ns: 15_000.0,
        control_ns: 5_000.0,
        flit_ns: 6_000.0,
        send_ns_per_byte: 0.12,
        receive_ns_per_byte: 0.12,
        end_ns_per_byte: 0.05,
        message_ns: 20_000.0,
        first_ns: 30_000.0,
    }
}

/// What encrypting a byte is assumed to cost, and decrypting it: `deploy/runs/2026-11-20-tls`.
pub const CRYPTO_NS_PER_BYTE: f64 = 0.2;

/// Whether the edges of a site's PEs share ports: shaped links do, unless they were asked for
/// otherwise, and the network card of a host that has one address; processes of one machine share
/// nothing but its cores.
pub fn ports(site: &Site) -> Ports {
    let one_card = site.placement.is_spread() && site.placement.has_any_edge();
    match (site.is_shaped() || one_card) && !site.own_links {
        true => Ports::Single,
        false => Ports::PerEdge,
    }
}

/// A model of these edges, the wires alone.
fn model(edges: Vec<Edge>, hosts: Hosts, ports: Ports, buffer_bytes: u64, shaped: bool) -> Model {
    Model {
        edges,
        hosts,
        ports,
        own_links: false,
        acknowledged: 0.0,
        buffer_bytes,
        // A socket takes what it has room for, however slow the wire is.
        ahead_ns: match shaped {
            true => RUN_AHEAD_NS as f64,
            false => f64::INFINITY,
        },
        control_bytes: SEAL_BYTES as u64 + 18,
        receipt_bytes: SEAL_BYTES as u64 + 8,
        prefix_bytes: SEAL_BYTES as u64 + 14,
        files: None,
    }
}

/// On links that stand for themselves acknowledgements cost what data does; a shaped one carries data
/// alone, and within a machine they are part of what processes cost.
fn acknowledged(site: &Site) -> f64 {
    match site.placement.is_spread() && !site.is_shaped() {
        true => ACKNOWLEDGED,
        false => 0.0,
    }
}

/// A model of a site's edges by what was measured just now, on hosts that cost so much.
pub fn measured_model(edges: &[MeasuredEdge], hosts: Hosts, site: &Site) -> Model {
    model_of(wires(edges, &hosts, site), hosts, site)
}

/// A site's wires by what was measured. On one machine a shaped link does what was asked for, however
/// busy the machine was meanwhile.
pub fn wires(edges: &[MeasuredEdge], hosts: &Hosts, site: &Site) -> Vec<Edge> {
    let mut wires = edges_from_measurements(edges, hosts);
    if !site.placement.is_spread() {
        for (wire, asked) in wires.iter_mut().zip(&site.links) {
            *wire = asked.map_or(*wire, |asked| asked.edge());
        }
    }
    wires
}

/// A model of a site, if these are its wires and its hosts cost so much.
pub fn model_of(edges: Vec<Edge>, hosts: Hosts, site: &Site) -> Model {
    let shaped = site.is_shaped();
    Model {
        own_links: site.own_links,
        acknowledged: acknowledged(site),
        ..model(edges, hosts, ports(site), BUFFER_BYTES, shaped)
    }
}

/// The model of a site that a profile makes.
pub fn model_by(profile: &Profile, site: &Site) -> Model {
    let model = Model {
        acknowledged: acknowledged(site),
        ..profile.model()
    };
    match site.own_links {
        true => Model {
            ports: ports(site),
            own_links: true,
            ..model
        },
        false => model,
    }
}

impl Profile {
    /// The model that the profile makes.
    pub fn model(&self) -> Model {
        let shaped = self.links.is_some();
        let hosts = Hosts::one(self.host);
        let edges = edges_from_measurements(&self.edges, &hosts);
        model(edges, hosts, self.ports, self.buffer_bytes, shaped)
    }
}

/// The schedule of a round, as each PE is told it, and what it will take; `bytes[i]` is
/// the length of M_i. All predictions of this program come from here.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule.
pub fn foresee(
    tree: &Arc<Tree>,
    operation: Operation,
    pacing: Pacing,
    bytes: &[u64],
    flit_bytes: u32,
    model: &Model,
) -> Result<(Vec<Brief>, Prediction), RoundFault> {
    foresee_in(
        tree,
        operation,
        bytes,
        &Timing::of(model, flit_bytes, pacing),
        model,
    )
}

/// The same where messages go in full flits of these sizes each, by message id.
///
/// # Errors
///
/// As [`foresee`].
pub fn foresee_cut(
    tree: &Arc<Tree>,
    operation: Operation,
    pacing: Pacing,
    bytes: &[u64],
    packet_bytes: Vec<u32>,
    model: &Model,
) -> Result<(Vec<Brief>, Prediction), RoundFault> {
    let largest = packet_bytes.iter().copied().max();
    let timing = Timing::of(model, largest.unwrap_or(MIN_FLIT_BYTES), pacing);
    let timing = timing.in_packets(packet_bytes);
    foresee_in(tree, operation, bytes, &timing, model)
}

fn foresee_in(
    tree: &Arc<Tree>,
    operation: Operation,
    bytes: &[u64],
    timing: &Timing,
    model: &Model,
) -> Result<(Vec<Brief>, Prediction), RoundFault> {
    let briefs = Brief::all(tree, operation, bytes, timing);
    let prediction = predict(tree, &briefs, model)?;
    Ok((briefs, prediction))
}
