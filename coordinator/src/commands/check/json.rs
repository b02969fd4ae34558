//! The result of a check as one JSON object on one line.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use flitcast_node::security::Name;
use serde_json::{Map, Value, json};

use super::{CheckedClusterFile, Wrong};
use crate::render::tree::TreeFigures;
use flitcast_cluster::job::request::links;
use flitcast_cluster::launch::reach::Tried;
use flitcast_cluster::options::timeouts;
use flitcast_cluster::site::placement::{Launch, Starter};

/// Prints a valid cluster file, and the tried hosts.
pub fn cluster(
    cluster: &CheckedClusterFile,
    tried: Option<&[Tried]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let CheckedClusterFile {
        path,
        topology,
        guard,
        shown,
        revoked,
    } = cluster;
    let (tree, placement) = (&topology.tree, topology.places());
    let figures = TreeFigures::of(tree);
    let links = links(topology, topology.settings.link);
    let is_ssh = matches!(placement.launch, Launch::Ssh(_));
    let pes = tree.pes().map(|pe| {
        let place = &placement.places[pe.index()];
        json!({
            "pe": pe.0,
            "name": place.name,
            "address": place.address,
            "run": place.run,
            "ssh": is_ssh.then(|| place.destination()),
            "parent": tree.parent(pe).map(|parent| parent.0),
            "parent_address": tree.parent(pe).map(|parent| placement.address_for(parent, pe, 0)),
            "link": links[pe.index()].map(|link| link.down.written()),
        })
    });
    let certificates = shown.iter().map(|one| {
        let pe = match one.name {
            Name::Coordinator => None,
            Name::Pe(pe) => Some(pe.0),
        };
        json!({ "certificate": one.name.certificate_file(), "pe": pe, "is_here": one.is_here })
    });
    let configured = &topology.settings.timeouts;
    let timeouts: Map<String, Value> = timeouts::ALL
        .into_iter()
        .map(|timeout| {
            (
                timeout.name.to_owned(),
                json!(timeout.of(configured).to_string()),
            )
        })
        .collect();
    let mut object = json!({
        "file": path.display().to_string(),
        "good": true,
        "name": topology.name,
        "launch": match placement.launch {
            Launch::Local => "local",
            Launch::Join { .. } => placement.starter().map_or("join", Starter::name),
            Launch::Ssh(_) => "ssh",
        },
        "coordinator": match placement.launch {
            Launch::Local | Launch::Ssh(_) => placement.coordinator.to_string(),
            Launch::Join { port, .. } => SocketAddr::new(placement.coordinator, port).to_string(),
        },
        "security": guard.name(),
        "credentials": guard.folder().map(|folder| folder.display().to_string()),
        "certificates": certificates.collect::<Vec<_>>(),
        "revoked": revoked,
        "timeouts": timeouts,
        "pes": pes.collect::<Vec<_>>(),
        "depth": figures.depth,
        "max_degree": figures.max_degree(),
        "leaves": figures.leaves(),
        "broadcast_steps": figures.broadcast_steps,
    });
    if let Some(tried) = tried {
        let tried = tried.iter().map(|one| {
            json!({
                "pes": one.pes.iter().map(|pe| pe.0).collect::<Vec<_>>(),
                "over": one.over,
                "address": one.address,
                "found": one.found.as_ref().ok(),
                "fault": one.found.as_ref().err(),
            })
        });
        object["reach"] = tried.collect();
    }
    writeln!(out, "{object}")
}

pub fn faults(path: &Path, faults: &[Wrong], out: &mut dyn Write) -> io::Result<()> {
    let faults = faults.iter().map(|Wrong { spot, message }| {
        json!({
            "line": spot.map(|spot| spot.line),
            "column": spot.map(|spot| spot.column),
            "fault": message,
        })
    });
    let object = json!({
        "file": path.display().to_string(),
        "good": false,
        "faults": faults.collect::<Vec<_>>(),
    });
    writeln!(out, "{object}")
}
