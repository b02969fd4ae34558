//! What is assumed of hosts and sockets that nobody has measured.

use flitcast_proto::cost::{Edge, Host, Model, Ports};

/// What processes cost on an idle machine of a few cores.
pub fn typical_host() -> Host {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    Host {
        shared_cores: Some(cores),
        wake_ns: 15_000.0,
        control_ns: 5_000.0,
        flit_ns: 5_000.0,
        send_ns_per_byte: 0.15,
        receive_ns_per_byte: 0.1,
        end_ns_per_byte: 0.1,
        message_ns: 3_000.0,
    }
}

/// What a socket between two processes of one machine holds.
pub const SOCKET_BYTES: u64 = 2 << 20;

/// Measured edges, and all else as it usually is.
pub fn typical(edges: Vec<Edge>) -> Model {
    Model {
        edges,
        host: typical_host(),
        ports: Ports::Single,
        buffer_bytes: SOCKET_BYTES,
        ahead_ns: 500_000.0,
        control_bytes: 18,
        receipt_bytes: 8,
        prefix_bytes: 14,
    }
}
