//! The result on stdout as machine-readable JSON.

use flitcast_plan::cost::Host;
use flitcast_proto::Tree;
use flitcast_proto::cost::Link;
use serde_json::{Value, json};

use crate::render::report::uses_all_ports;
use crate::render::tree::parents;
use flitcast_cluster::job::host_costs::CostSource;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::names::pacing_name;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::certificates::Certificates;
use flitcast_cluster::rounds::outcome::{Failure, Outcome, PeOutcome};
use flitcast_cluster::text::deliveries;
use flitcast_cluster::text::figures::micros;

pub fn json(request: &Request, outcome: &Outcome, story: &RetryReport) -> String {
    let mut result = json_value(request, outcome);
    story.add_to(&mut result);
    format!("{result:#}\n")
}

pub fn json_value(request: &Request, outcome: &Outcome) -> Value {
    let (tree, decisions) = (&request.site.tree, &outcome.rounds.decisions);
    let certificates = Certificates::of(tree, &outcome.rounds);
    let certificates_of_round = certificates.round.map(|round| round.0);
    json!({
        "operation": decisions.way.operation.collective().name(),
        "algorithm": decisions.way.algorithm(),
        "sync": decisions.way.sync(),
        "pacing": pacing_name(decisions.pacing_of_orders()),
        "ports": if uses_all_ports(request) { "multi" } else { "single" },
        "tree": decisions.tree,
        "parents": parents(tree),
        "nodes": request.site.nodes,
        "choice": decisions.choice.as_deref(),
        "flit_bytes": decisions.flit_bytes,
        "flit_choice": decisions.flit_size,
        "compression": decisions.compression,
        "packets": decisions.packets,
        "order": decisions.order,
        "trees": decisions.trees,
        "security": request.site.guard.name(),
        "rounds": request.rounds,
        "dry_run": request.is_dry_run(),
        "pes": pes(request, outcome, &certificates),
        "edges": edges(request, outcome),
        "round": round(outcome, certificates_of_round),
        "phases": outcome.phases,
        "costs": costs(outcome, tree),
        "launch_us": micros(outcome.launching.as_nanos() as u64),
        "probe_us": outcome.rounds.probing.map(|time| micros(time.as_nanos() as u64)),
        "clock_uncertainty_us": micros(outcome.clock_uncertainty_ns),
    })
}

/// Returns the values of a PE that a plan has, too.
pub fn pe_json(request: &Request, row: &PeOutcome) -> Value {
    let (site, pe) = (&request.site, row.pe);
    json!({
        "pe": pe.0,
        "name": site.placement.places[pe.index()].name,
        "parent": site.tree.parent(pe).map(|parent| parent.0),
        "depth": site.tree.depth(pe),
        "bytes": row.bytes,
        "predicted_us": row.predicted_ns.map(micros),
    })
}

fn pes(request: &Request, outcome: &Outcome, certificates: &Certificates) -> Value {
    let pes = outcome.pes.iter().map(|pe| {
        let certificate = certificates.pes[pe.pe.index()];
        let mut row = pe_json(request, pe);
        row["measured_us"] = json!(pe.measured);
        if let Some(host) = &pe.host {
            row["host"] = host.as_str().into();
        }
        row["peak_resident_bytes"] = pe.peak_resident_bytes.into();
        row["retransmitted_packets"] = pe.retransmitted_packets.into();
        row["certificate"] = json!(certificate.map(|it| it.json()));
        row
    });
    pes.collect()
}

fn edges(request: &Request, outcome: &Outcome) -> Value {
    let link = |link: Link| json!({ "latency_us": link.latency_ns / 1000.0, "ns_per_byte": link.ns_per_byte });
    let tree = &request.site.tree;
    let edges = tree.below_root().map(|pe| {
        let edge = outcome.rounds.measured.edges[pe.index()].values();
        let parent = tree.parent(pe).map(|parent| parent.0);
        let alike = outcome.rounds.measured.alike[pe.index()];
        let shaped = request.site.links[pe.index()].map(|spec| spec.edge());
        let shaped = shaped.map(|edge| json!({ "down": link(edge.down), "up": link(edge.up) }));
        json!({
            "parent": parent,
            "child": pe.0,
            "down": link(edge.down),
            "up": link(edge.up),
            "rate_of": alike.map(|alike| alike.other.0),
            "latency_of": alike.filter(|alike| !alike.asked).map(|alike| alike.other.0),
            "shaped": shaped,
        })
    });
    edges.collect()
}

fn round(outcome: &Outcome, certificates_of_round: Option<u64>) -> Value {
    let goodput = outcome.measured.filter(|m| m.median > 0);
    let goodput = goodput.map(|m| outcome.bytes as f64 * 1e9 / m.median as f64);
    let resident = outcome.pes.iter().map(|pe| pe.peak_resident_bytes);
    json!({
        "bytes": outcome.bytes,
        "messages": outcome.messages,
        "predicted_us": micros(outcome.predicted_ns),
        "measured_us": outcome.measured,
        "error_pct": outcome.error_pct(),
        "slowdown": outcome.slowdown(),
        "begun_within_us": outcome.begun_within,
        "late_frames": outcome.late_frames,
        "repeated_frames": outcome.repeated_frames,
        "retransmitted_packets": outcome.retransmitted_packets(),
        "goodput_bytes_per_s": goodput,
        "collisions": outcome.collisions,
        "peak_buffered_flits": outcome.peak_buffered_flits,
        "peak_resident_bytes": resident.max().flatten(),
        "certificates_of_round": certificates_of_round,
    })
}

/// Returns the costs of the processes that the prediction used, and their source.
fn costs(outcome: &Outcome, tree: &Tree) -> Value {
    let costs = &outcome.rounds.costs;
    let machine = |(place, host): (usize, &Host)| {
        let there = tree.pes().filter(|pe| costs.hosts.machine_of(*pe) == place);
        machine_json(host, there.map(|pe| pe.0).collect())
    };
    let machines = costs.hosts.machines().iter().enumerate().map(machine);
    let source = costs.source();
    let rounds = match source {
        CostSource::Cached { rounds, .. } => Some(rounds),
        _ => None,
    };
    json!({
        "source": source.name(),
        "rounds": rounds,
        "machines": machines.collect::<Vec<_>>(),
        "busy_threads": outcome.rounds.busy_threads,
        "files": outcome.rounds.files.as_ref().map(|files| json!({ "source": files.source.name() })),
    })
}

/// Returns the costs of processes on one machine, and its PEs.
fn machine_json(host: &Host, pes: Vec<u32>) -> Value {
    json!({
        "pes": pes,
        "cores": host.shared_cores,
        "wake_us": host.wake_ns / 1000.0,
        "control_us": host.control_ns / 1000.0,
        "flit_us": host.flit_ns / 1000.0,
        "message_us": host.message_ns / 1000.0,
        "first_us": host.first_ns / 1000.0,
        "send_ns_per_byte": host.send_ns_per_byte,
        "receive_ns_per_byte": host.receive_ns_per_byte,
        "end_ns_per_byte": host.end_ns_per_byte,
    })
}

/// Returns a failure as JSON text, with the retries after it, and with `algorithm` if several
/// algorithms were run.
pub fn failure_json(failure: &Failure, algorithm: Option<&str>, story: &RetryReport) -> String {
    let aftermath = &failure.aftermath;
    let at = failure.at.as_ref();
    let below = at.iter().flat_map(|at| &at.below);
    let lacking = aftermath.lacking.iter().map(|lacking| {
        let collective = failure.operation.collective();
        let name = collective.delivery_name(&failure.tree, lacking.delivery);
        let mut object = json!({
            "pe": name.row.0,
            "bytes": lacking.bytes,
            "received_bytes": lacking.received,
        });
        if let Some(source) = name.source {
            object["source"] = source.0.into();
        }
        object
    });
    let delivered = failure.names_of(aftermath.delivered.iter().copied());
    let others = failure.others.iter();
    let others = others.map(|(pe, cause)| json!({ "pe": pe.0, "message": cause }));
    let mut result = json!({
        "error": {
            "message": failure.cause,
            "phase": failure.phase.name(),
            "pe": at.map(|at| at.pe.0),
            "address": at.and_then(|at| at.address.as_ref()),
            "pid": at.and_then(|at| at.pid),
            "host": at.and_then(|at| at.host.as_ref()),
            "parent": at.and_then(|at| at.parent).map(|parent| parent.0),
            "security": failure.guard.name(),
            "below": below.map(|pe| pe.0).collect::<Vec<_>>(),
            "round": failure.round.map(|round| round.0),
            "delivered": deliveries::values(&delivered),
            "left_without": lacking.collect::<Vec<_>>(),
            "others": others.collect::<Vec<_>>(),
        }
    });
    if let Some(algorithm) = algorithm {
        result["error"]["algorithm"] = algorithm.into();
    }
    story.add_to(&mut result);
    format!("{result:#}\n")
}
