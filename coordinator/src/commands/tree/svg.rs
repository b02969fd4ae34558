//! A tree as an SVG drawing without external fonts or scripts: P0 at the top, one level below the
//! other, every PE centred above its children. Edges change direction halfway between two levels,
//! so that none crosses a PE.

use std::io::{self, Write};

use flitcast_proto::PeId;

use crate::render::tree::TreeFigures;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::phrases::counted;

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

pub fn write(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
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
