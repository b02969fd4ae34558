//! Output of a tree for other programs: as a tree file, Graphviz or JSON.

use std::io::{self, Write};

use serde_json::json;

use crate::render::tree::{TreeFigures, parents};
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::site::topology::Topology;

/// Number of parents per line of the tree file.
const PARENTS_A_LINE: usize = 16;

/// Writes the tree file that `--tree file:` reads.
pub fn toml(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}", one_line(&topology.name))?;
    if let Some(nodes) = topology.nodes.as_ref().filter(|nodes| nodes[0] != 0) {
        writeln!(
            out,
            "# P0 is on node {}, the other PEs on the other nodes in order.",
            nodes[0]
        )?;
    }
    let tree = &topology.tree;
    write!(out, "root = 0\nparents = [")?;
    let parents = tree.pes().filter_map(|pe| tree.parent(pe));
    for (i, parent) in parents.enumerate() {
        let between = match i % PARENTS_A_LINE {
            0 => "\n  ",
            _ => " ",
        };
        write!(out, "{between}{},", parent.0)?;
    }
    writeln!(out, "\n]")?;
    let links = tree
        .below_root()
        .map(|child| (child, topology.link_to(child)));
    let links: Vec<_> = links
        .filter_map(|(child, link)| Some((child, link?)))
        .collect();
    let has_setup = |link: LinkSpec| link.setup.is_some();
    if links
        .iter()
        .any(|(_, link)| has_setup(link.down) || has_setup(link.up))
    {
        writeln!(
            out,
            "# Tree files have no set-up times; those of the links are left out."
        )?;
    }
    for (child, link) in links {
        writeln!(out, "[[edges]]\nchild = {}", child.0)?;
        for (direction, link) in [("down", link.down), ("up", link.up)] {
            writeln!(out, "{direction} = {{ {} }}", link_keys(link))?;
        }
    }
    Ok(())
}

/// Returns the keys of a link in a tree file.
fn link_keys(link: LinkSpec) -> String {
    let rate = match link.rate {
        Some(rate) => format!("rate = \"{rate}\""),
        None => "rate = \"unlimited\"".to_owned(),
    };
    match link.latency {
        Some(latency) => format!("{rate}, latency = \"{latency}\""),
        None => rate,
    }
}

/// Writes a Graphviz graph.
pub fn dot(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let tree = &topology.tree;
    let name = one_line(&topology.name);
    let name = name.replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(out, "graph \"{name}\" {{\n  node [shape=circle];")?;
    for pe in tree.pes() {
        match topology.node_if_several(pe) {
            Some(node) => writeln!(out, "  {} [label=\"{pe}\\nnode {node}\"];", pe.0)?,
            None => writeln!(out, "  {} [label=\"{pe}\"];", pe.0)?,
        }
    }
    for pe in tree.pes() {
        for child in tree.children(pe) {
            writeln!(out, "  {} -- {};", pe.0, child.0)?;
        }
    }
    writeln!(out, "}}")
}

/// Writes one JSON object on one line.
pub fn json(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let Topology {
        name,
        tree,
        nodes,
        network,
        ..
    } = topology;
    let figures = TreeFigures::of(tree);
    let edges = network.as_ref();
    let edges = edges.map(|spanned| spanned.network.pairs().collect::<Vec<_>>());
    let object = json!({
        "name": name,
        "pes": tree.len(),
        "parents": parents(tree),
        "depth": figures.depth,
        "max_degree": figures.max_degree(),
        "leaves": figures.leaves(),
        "broadcast_steps": figures.broadcast_steps,
        "nodes": nodes,
        "network_edges": edges,
    });
    writeln!(out, "{object}")
}

/// Replaces control characters: a name may contain a path, and a path any character.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}
