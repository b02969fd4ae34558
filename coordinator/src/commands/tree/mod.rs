//! `flitcast tree`: prints a tree and its figures: for terminals, as a tree file, as Graphviz, as a drawing or as JSON.

mod svg;

use std::io::{self, Write};

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use crate::render::tree::{self, TreeFigures, parents};
use flitcast_cluster::options::format::{Format, Formats};
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;

/// Maximum number of PEs of a drawing, so that viewers can open it and a PE can be found in it.
const MAX_DRAWN: usize = 5_000;

/// Arguments of `flitcast tree`.
#[derive(Debug, Args)]
pub struct PrintTreeArgs {
    /// Tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Format on stdout
    #[arg(long, value_parser = FORMATS, default_value = "text")]
    pub format: Format,
}

const FORMATS: Formats = Formats(&[
    (
        Format::Text,
        "A drawing for terminals, up to 200 PEs, and the figures",
    ),
    (Format::Toml, "A tree file, for --tree file:PATH"),
    (Format::Dot, "For Graphviz"),
    (Format::Svg, "A drawing"),
    (Format::Json, "For programs"),
]);

/// Prints the tree.
pub fn run(args: PrintTreeArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let topology = args.tree.topology(SpanningArg::Bfs)?;
    let pes = topology.tree.len();
    Ok(match args.format {
        Format::Toml => toml(&topology, out),
        Format::Dot => dot(&topology, out),
        Format::Json => json(&topology, out),
        Format::Svg if pes > MAX_DRAWN => {
            let most = format!("the limit is {MAX_DRAWN}; use another format");
            return Err(anyhow!("--format svg: {pes} PEs are too many to draw; {most}").into());
        }
        Format::Svg => svg::write(&topology, out),
        _ => tree::write(&topology, out),
    })
}

/// Number of parents per line of the tree file.
const PARENTS_A_LINE: usize = 16;

/// Writes the tree file that `--tree file:` reads.
fn toml(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
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
    let links = tree.below_root();
    let links = links.filter_map(|child| Some((child, topology.link_to(child)?)));
    let links: Vec<_> = links.collect();
    let mut all = links.iter().flat_map(|(_, link)| [link.down, link.up]);
    if all.any(|link| link.setup.is_some()) {
        let note = "# Tree files have no set-up times; those of the links are left out.";
        writeln!(out, "{note}")?;
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
fn dot(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
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
fn json(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let tree = &topology.tree;
    let figures = TreeFigures::of(tree);
    let edges = topology.network.as_ref();
    let edges = edges.map(|spanned| spanned.network.pairs().collect::<Vec<_>>());
    let object = json!({
        "name": topology.name,
        "pes": tree.len(),
        "parents": parents(tree),
        "depth": figures.depth,
        "max_degree": figures.max_degree(),
        "leaves": figures.leaves(),
        "broadcast_steps": figures.broadcast_steps,
        "nodes": topology.nodes,
        "network_edges": edges,
    });
    writeln!(out, "{object}")
}

/// Replaces control characters: a name may contain a path, and a path any character.
fn one_line(name: &str) -> String {
    name.replace(char::is_control, " ")
}
