//! `flitcast tree`: prints a tree and its figures: for terminals, as a tree file, as Graphviz, as a drawing or as JSON.

use std::io::{self, Write};

use anyhow::anyhow;
use clap::Args;
use flitcast_proto::PeId;
use serde_json::json;

use crate::render::tree::{self, TreeFigures, parents};
use flitcast_cluster::options::format::{Format, Formats};
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::phrases::counted;

/// Maximum number of PEs of a drawing, so that viewers can open it and a PE can be found in it.
const MAX_DRAWN: usize = 5_000;

/// Number of parents per line of the tree file.
const PARENTS_A_LINE: usize = 16;
/// Distance in pixels between two leaves.
const COLUMN: f64 = 44.0;
/// Distance in pixels between two levels.
const LEVEL: f64 = 64.0;
const RADIUS: f64 = 17.0;
const MARGIN: f64 = 28.0;
/// Height of the two lines of heading.
const HEADING: f64 = 62.0;
/// Width of a letter in pixels, so that the heading of a small tree is not cut off.
const LETTER: f64 = 8.2;

const STYLE: &str = "\
    text { font-family: sans-serif; fill: #1f2933; }\n\
    .title { font-size: 15px; font-weight: bold; }\n\
    .figures { font-size: 12px; fill: #52606d; }\n\
    .edge { fill: none; stroke: #9aa5b1; stroke-width: 1.5; }\n\
    .pe { fill: #ffffff; stroke: #3e6fa3; stroke-width: 1.5; }\n\
    .leaf { fill: #e6f0fa; stroke: #3e6fa3; stroke-width: 1.5; }\n\
    .root { fill: #2f5f93; stroke: #1d3f63; stroke-width: 1.5; }\n\
    .id { font-size: 11px; text-anchor: middle; }\n\
    .root-id { font-size: 11px; text-anchor: middle; fill: #ffffff; font-weight: bold; }\n\
    .node { font-size: 8px; text-anchor: middle; fill: #52606d; }\n\
    .root-node { font-size: 8px; text-anchor: middle; fill: #dbe7f3; }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #e7eaee; } .figures, .node { fill: #a2abb8; } .sheet, .pe { fill: #14171b; }\n\
    .edge { stroke: #6b7684; } .pe, .leaf, .root { stroke: #8ab6ea; } .leaf { fill: #22344a; }\n\
    }\n";

/// Arguments of `flitcast tree`.
#[derive(Debug, Args)]
pub struct PrintTreeArgs {
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
        Format::Svg => svg(&topology, out),
        _ => tree::write(&topology, out),
    })
}

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

/// Writes an SVG drawing without external fonts or scripts: P0 at the top, one level below the
/// other, every PE centred above its children. Edges change direction halfway between two levels,
/// so that none crosses a PE.
fn svg(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let tree = &topology.tree;
    let figures = TreeFigures::of(tree);
    let mut described = format!(
        "{}, {}, depth {}, at most {}, broadcast in {}",
        counted(tree.len() as u64, "PE", "PEs"),
        counted(figures.leaves() as u64, "leaf", "leaves"),
        figures.depth,
        counted(figures.max_degree() as u64, "child", "children"),
        counted(figures.broadcast_steps, "step", "steps"),
    );
    if topology.node_if_several(PeId::ROOT).is_some() {
        described.push_str("; below each PE's name, its node");
    }
    // The letters of the second line are smaller.
    let letters = topology.name.chars().count().max(described.len() * 4 / 5);
    let drawn = 2.0 * RADIUS + COLUMN * (figures.leaves() - 1) as f64;
    let inner = drawn.max(LETTER * letters as f64);
    let width = 2.0 * MARGIN + inner;
    let height = HEADING + 2.0 * RADIUS + LEVEL * f64::from(figures.depth) + MARGIN;

    let columns = columns(topology);
    let first = MARGIN + (inner - drawn) / 2.0 + RADIUS;
    let place = |pe: PeId| {
        (
            first + COLUMN * columns[pe.index()],
            HEADING + RADIUS + LEVEL * f64::from(tree.depth(pe)),
        )
    };
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}">"#
    )?;
    writeln!(out, "<style>\n{STYLE}</style>")?;
    writeln!(
        out,
        r##"<rect class="sheet" width="100%" height="100%" fill="#fbfcfd"/>"##
    )?;
    text(out, "title", MARGIN, 26.0, &topology.name)?;
    text(out, "figures", MARGIN, 44.0, &described)?;
    for pe in tree.pes() {
        let (x, y) = place(pe);
        if let Some((from_x, from_y)) = tree.parent(pe).map(place) {
            let turn = y - LEVEL / 2.0;
            writeln!(
                out,
                r#"<path class="edge" d="M{from_x:.1} {from_y:.1}V{turn:.1}H{x:.1}V{y:.1}"/>"#
            )?;
        }
    }
    for pe in tree.pes() {
        let (x, y) = place(pe);
        let (shape, id, node_id) = match tree.children(pe) {
            _ if pe == PeId::ROOT => ("root", "root-id", "root-node"),
            [] => ("leaf", "id", "node"),
            _ => ("pe", "id", "node"),
        };
        let step = tree.token_broadcast().received_step(pe);
        writeln!(
            out,
            r#"<circle class="{shape}" cx="{x:.1}" cy="{y:.1}" r="{RADIUS}"><title>{pe}, depth {}, gets the token in step {step}</title></circle>"#,
            tree.depth(pe)
        )?;
        match topology.node_if_several(pe) {
            Some(node) => {
                text(out, id, x, y + 1.0, &pe.to_string())?;
                text(out, node_id, x, y + 11.0, &node.to_string())?;
            }
            None => text(out, id, x, y + 4.0, &pe.to_string())?,
        }
    }
    writeln!(out, "</svg>")
}

/// Returns the column of each PE: every leaf has one, and a parent is centred above its children.
fn columns(topology: &Topology) -> Vec<f64> {
    let tree = &topology.tree;
    let mut columns = vec![0.0; tree.len()];
    let mut next = 0.0;
    let mut waiting = vec![PeId::ROOT];
    while let Some(pe) = waiting.pop() {
        if tree.children(pe).is_empty() {
            columns[pe.index()] = next;
            next += 1.0;
        }
        waiting.extend(tree.children(pe).iter().rev());
    }
    for &pe in tree.top_down().iter().rev() {
        if let [first, .., last] | [first @ last] = tree.children(pe) {
            columns[pe.index()] = (columns[first.index()] + columns[last.index()]) / 2.0;
        }
    }
    columns
}

fn text(out: &mut dyn Write, class: &str, x: f64, y: f64, text: &str) -> io::Result<()> {
    let text = text.replace(char::is_control, " ");
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        out,
        r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
    )
}
