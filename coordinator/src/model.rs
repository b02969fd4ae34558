//! The model of a cluster: what was measured of it, or what a profile says, or what
//! hosts usually cost; and what it foresees.

use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::calibration::{MeasuredEdge, edges_from_measurements};
use flitcast_proto::cost::{Edge, Host, Link, Model, Ports};
use flitcast_proto::pe::{Operation, Pace, Violation};
use flitcast_proto::predict::{Prediction, predict};

use crate::profile::Profile;

/// What Linux lets a loopback connection hold when nobody reads, by its defaults.
const BUFFER_BYTES: u64 = 4 << 20;

/// What is known of a cluster's edges and clocks.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// By PE index; `[0]` is not looked at.
    pub edges: Vec<MeasuredEdge>,
    /// Offsets to P0's clock, by PE index.
    pub clocks: Vec<ClockOffset>,
}

/// What processes on this machine cost, where nobody has calibrated. Measured on an
/// idle machine of two cores and rounded: a small frame takes 20 us from process to
/// process, which is two control frames and a wake-up; in long bursts over loopback a
/// byte takes 0.22 ns, which is to send and to receive it; hashing one takes 0.03 ns,
/// and making or checking it as much. Other machines are within a factor of three.
pub fn local_host() -> Host {
    let cores = std::thread::available_parallelism();
    Host {
        shared_cores: cores.ok().and_then(|cores| cores.get().try_into().ok()),
        wake_ns: 12_000.0,
        control_ns: 4_000.0,
        flit_ns: 6_000.0,
        send_ns_per_byte: 0.11,
        receive_ns_per_byte: 0.11,
        end_ns_per_byte: 0.06,
        message_ns: 20_000.0,
    }
}

/// A model of a local cluster: each edge is a connection of its own.
pub fn local_model(edges: &[MeasuredEdge]) -> Model {
    let host = local_host();
    Model {
        edges: edges_from_measurements(edges, &host),
        host,
        ports: Ports::PerEdge,
        buffer_bytes: BUFFER_BYTES,
    }
}

impl Profile {
    /// The model that the profile makes.
    pub fn model(&self) -> Model {
        Model {
            edges: edges_from_measurements(&self.edges, &self.host),
            host: self.host,
            ports: self.ports,
            buffer_bytes: self.buffer_bytes,
        }
    }
}

/// What a round of `operation` will take; `bytes[i]` is the length of M_i. All
/// predictions of this program come from here.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule.
pub fn foresee(
    tree: &Arc<Tree>,
    operation: Operation,
    bytes: &[u64],
    flit_bytes: u32,
    pace: Pace,
    model: &Model,
) -> Result<Prediction, Violation> {
    // The predictor knows links alone: the host's share goes back into them.
    let edges: Vec<Edge> = model
        .edges
        .iter()
        .map(|edge| Edge {
            down: with_host(edge.down, &model.host),
            up: with_host(edge.up, &model.host),
        })
        .collect();
    predict(tree, operation, bytes, flit_bytes, pace, &edges)
}

/// A link as it looks from outside: what `edges_from_measurements` made it from.
fn with_host(link: Link, host: &Host) -> Link {
    let software = host.send_ns_per_byte + host.receive_ns_per_byte;
    Link {
        latency_ns: link.latency_ns + host.wake_ns + 2.0 * host.control_ns,
        ns_per_byte: link.ns_per_byte.max(software + link.ns_per_byte / 2.0),
        burst_bytes: link.burst_bytes,
    }
}
