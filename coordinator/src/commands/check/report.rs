//! The result of a check: the cluster, or its faults, each with its line of the file, for terminals or as one JSON object
//! on one line.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use flitcast_node::security::{Name, REVOKED_FILE};
use flitcast_node::system::regular;
use flitcast_proto::PeId;
use serde_json::{Map, Value, json};

use super::CheckedClusterFile;
use crate::render::tree::{TreeFigures, draw};
use flitcast_cluster::files::user_file::PositionedError;
use flitcast_cluster::job::request::links as links_of;
use flitcast_cluster::launch::reach::Tried;
use flitcast_cluster::options::link_spec::EdgeSpec;
use flitcast_cluster::options::timeouts;
use flitcast_cluster::site::cluster_file;
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::placement::{DIRECTORY, Launch, Starter};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::figures::{fitted, table};
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::units::ExactTime;

/// The coordinator, as messages name it.
const COORDINATOR: &str = "the coordinator";
/// Maximum number of PEs that a line names; the rest are counted.
const NAMED: usize = 6;
/// Maximum number of characters of a line of the file that are shown.
const SHOWN: usize = 96;

/// Prints the content of a valid cluster file, and the tried hosts.
pub fn cluster(
    cluster: &CheckedClusterFile,
    tried: Option<&[Tried]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (path, topology) = (&cluster.path, &cluster.topology);
    writeln!(out, "{}", printable(&topology.name))?;
    writeln!(out, "{} is good\n", printable(path.display()))?;
    let placement = topology.places();
    let coordinator = placement.coordinator;
    match &placement.launch {
        Launch::Ssh(ssh) => {
            let directory = ssh.directory.as_deref().unwrap_or(DIRECTORY);
            let launch = format!(
                "ssh: processes are started on their hosts, with the program in {directory} there"
            );
            let reached = placement.places.iter().map(|place| place.destination());
            let reached = listed(&reached.collect::<Vec<_>>());
            writeln!(out, "  launch      {}", printable(launch))?;
            writeln!(out, "  reached by  ssh {}", printable(reached))?;
            if let Some(config) = &ssh.config {
                writeln!(out, "              as {} says", printable(config.display()))?;
            }
            writeln!(out, "  coordinator {coordinator}")?;
        }
        Launch::Local => {
            let launch = "local: all processes are started from this machine";
            writeln!(out, "  launch      {launch}\n  coordinator {coordinator}")?;
        }
        Launch::Join {
            port,
            wait,
            starter,
        } => {
            let wait = ExactTime(wait.as_nanos() as u64);
            let launch = match starter {
                None => format!("join: others start the processes, within {wait}"),
                Some(Starter::Slurm(_)) => {
                    format!("slurm: srun starts the processes, which join within {wait}")
                }
                Some(Starter::Compose(compose)) => format!(
                    "compose: the processes are services of {}, which join within {wait}",
                    printable(compose.file.display())
                ),
            };
            let address = SocketAddr::new(coordinator, *port);
            writeln!(out, "  launch      {launch}\n  coordinator {address}")?;
        }
    }
    let security = match &cluster.guard {
        Guard::Secret | Guard::MadeForTheRun if placement.is_joined() && !placement.is_slurm() => {
            Some("to be said: --credentials DIR, or --insecure for anybody to join".to_owned())
        }
        Guard::Secret => Some("a secret drawn for each launch; all is on loopback".to_owned()),
        guarded => guarded.description(),
    };
    let security = security.unwrap_or_default();
    writeln!(out, "  security    {}", printable(security))?;
    certificates(cluster, out)?;
    writeln!(out, "  timeouts    {}", differing(topology))?;
    if let Some(links) = links(topology) {
        writeln!(out, "  links       {links}")?;
    }
    writeln!(out)?;
    draw(topology, out)?;
    if tried.is_none() && placement.is_spread() {
        writeln!(out, "  hosts       not tried; --reach tries them")?;
    }
    if let Some(tried) = tried {
        let mut table = table(["PE", "over", "address", "reached"]);
        for one in tried {
            table.add_row([
                pes(cluster, &one.pes),
                printable(&one.over).to_string(),
                one.address.to_string(),
                one.found.clone().unwrap_or_else(|_| "no".to_owned()),
            ]);
        }
        let table = fitted(table, 4, &["over", "address"], columns());
        write!(out, "\n{table}")?;
    }
    Ok(())
}

/// Names PEs that were tried together; none are the coordinator.
pub fn pes(cluster: &CheckedClusterFile, pes: &[PeId]) -> String {
    let places = cluster.topology.places();
    let names: Vec<String> = pes.iter().map(|pe| places.called(*pe)).collect();
    match names.is_empty() {
        true => COORDINATOR.to_owned(),
        false => printable(listed(&names)).to_string(),
    }
}

/// Prints the processes with certificates in the folder, and those that must have them elsewhere.
fn certificates(cluster: &CheckedClusterFile, out: &mut dyn Write) -> io::Result<()> {
    if cluster.shown.is_empty() {
        return Ok(());
    }
    let places = cluster.topology.places();
    let names = |are_here: bool| {
        let all = cluster
            .shown
            .iter()
            .filter(|(_, is_here)| *is_here == are_here);
        let names = all.map(|(name, _)| match name {
            Name::Coordinator => COORDINATOR.to_owned(),
            Name::Pe(pe) => places.called(*pe),
        });
        names.collect::<Vec<_>>()
    };
    let (here, missing) = (names(true), names(false));
    writeln!(out, "              there and good: {}", listed(&here))?;
    if !missing.is_empty() {
        let missing = listed(&missing);
        writeln!(
            out,
            "              not there: {missing}; each must have its own where it runs"
        )?;
    }
    if cluster.revoked > 0 {
        let all = cluster.revoked;
        writeln!(out, "              revoked: {all} by {REVOKED_FILE}")?;
    }
    Ok(())
}

fn listed(names: &[String]) -> String {
    let named = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn differing(topology: &Topology) -> String {
    let (configured, usual) = (&topology.settings.timeouts, Default::default());
    let differing = timeouts::ALL.into_iter().filter_map(|timeout| {
        let (is, else_) = (timeout.of(configured), timeout.of(&usual));
        (is.0 != else_.0).then(|| format!("{} {is} (not {else_})", timeout.name))
    });
    let differing: Vec<String> = differing.collect();
    match differing.is_empty() {
        true => "the usual ones".to_owned(),
        false => differing.join(", "),
    }
}

fn links(topology: &Topology) -> Option<String> {
    let (single, places) = (topology.links.iter(), topology.places());
    let single = single.map(|(pe, link)| format!("to {} {link}", places.called(*pe)));
    let single: Vec<String> = single.collect();
    let all = topology.settings.link.map(EdgeSpec::alike);
    match (all, single.is_empty()) {
        (None, true) => None,
        (Some(all), true) => Some(all.to_string()),
        (Some(all), false) => Some(format!("{all}, but {}", single.join(", "))),
        (None, false) => Some(single.join(", ")),
    }
}

/// Returns all faults in the format of compilers, so that editors find the positions.
pub fn faults(path: &Path, faults: &[PositionedError]) -> String {
    let text = regular::read_text(path, cluster_file::FILE.max_bytes).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = printable(path.display());
    let mut out = String::new();
    for PositionedError { spot, fault } in faults {
        let fault = printable(fault);
        let Some(spot) = spot else {
            out += &format!("error: {fault}\n");
            continue;
        };
        out += &format!("error: {shown}:{spot}: {fault}\n");
        if let Some(line) = lines.get(spot.line - 1) {
            let (part, before) = around(line, spot.column);
            let number = spot.line.to_string();
            let (indent, before) = (" ".repeat(number.len()), " ".repeat(before));
            out += &format!("  {number} | {part}\n  {indent} | {before}^\n");
        }
    }
    match faults.len() {
        1 => format!("{out}{shown}: 1 fault"),
        more => format!("{out}{shown}: {more} faults"),
    }
}

/// Returns the part of a line around `column`, and the number of its characters before `column`.
fn around(line: &str, column: usize) -> (String, usize) {
    let skipped = match column > SHOWN * 3 / 4 {
        true => column - SHOWN / 2,
        false => 0,
    };
    let part = line.chars().skip(skipped).take(SHOWN);
    // Each character takes one column.
    let part = part.map(|c| if c.is_control() { ' ' } else { c });
    let part: String = part.collect();
    (part.trim_end().to_owned(), column - 1 - skipped)
}

/// Prints the content of a valid cluster file, and the tried hosts, as JSON.
pub fn cluster_json(
    cluster: &CheckedClusterFile,
    tried: Option<&[Tried]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (topology, guard) = (&cluster.topology, &cluster.guard);
    let (tree, placement) = (&topology.tree, topology.places());
    let figures = TreeFigures::of(tree);
    let links = links_of(topology, topology.settings.link);
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
    let certificates = cluster.shown.iter().map(|(name, is_here)| {
        let pe = match name {
            Name::Coordinator => None,
            Name::Pe(pe) => Some(pe.0),
        };
        json!({ "certificate": name.certificate_file(), "pe": pe, "is_here": is_here })
    });
    let configured = &topology.settings.timeouts;
    let timeouts = timeouts::ALL.into_iter();
    let timeouts = timeouts.map(|it| (it.name.to_owned(), json!(it.of(configured).to_string())));
    let timeouts: Map<String, Value> = timeouts.collect();
    let mut object = json!({
        "file": cluster.path.display().to_string(),
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
        "revoked": cluster.revoked,
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

pub fn faults_json(path: &Path, faults: &[PositionedError], out: &mut dyn Write) -> io::Result<()> {
    let faults = faults.iter().map(|PositionedError { spot, fault }| {
        json!({
            "line": spot.map(|spot| spot.line),
            "column": spot.map(|spot| spot.column),
            "fault": fault,
        })
    });
    let object = json!({
        "file": path.display().to_string(),
        "good": false,
        "faults": faults.collect::<Vec<_>>(),
    });
    writeln!(out, "{object}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_of_long_lines_contain_the_position() {
        assert_eq!(around("a = 1\t# x", 5), ("a = 1 # x".to_owned(), 4));
        let long: String = (0..1000)
            .map(|i| char::from(b'a' + (i % 26) as u8))
            .collect();
        for column in [1, 72, 73, 500, 1000] {
            let (part, before) = around(&long, column);
            assert!(part.len() <= SHOWN);
            assert_eq!(
                part.as_bytes()[before],
                long.as_bytes()[column - 1],
                "{column}"
            );
        }
    }
}
