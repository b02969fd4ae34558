//! Networks by name: `mesh:4x4`, `hypercube:4`, `edges:FILE`.
//!
//! Users type the name and reports print it, so it denotes the same network on every machine. A
//! network in a file is only named here: this crate does not read files.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use flitcast_proto::names::{did_you_mean, number_in};
use flitcast_proto::tree::MAX_PES;

use super::{Grid, MAX_EDGES, Network, NetworkError, bounded};

/// A network by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkSpec {
    /// `mesh:AxBx..`: the points of a grid of any number of dimensions; two are neighbours if one
    /// coordinate differs by 1. Nodes are numbered row by row: in `mesh:4x3`, node 3 y + x is in
    /// row y, column x. `array:N` is `mesh:N`.
    Mesh {
        /// Number of nodes on each side.
        sides: Vec<u32>,
    },
    /// `torus:AxBx..`: the mesh, with the ends of each line connected as well.
    Torus {
        /// Number of nodes on each side.
        sides: Vec<u32>,
    },
    /// `ring:N`: 0 - 1 - 2 and so on, and back to 0.
    Ring {
        /// N.
        nodes: u32,
    },
    /// `hypercube:D`: 2^D nodes; two are neighbours if one bit differs.
    Hypercube {
        /// D.
        dimensions: u32,
    },
    /// `debruijn:B:D`: the words of D digits from 0 to B-1, as numbers to base B. The neighbours of
    /// a word result from removing the digit at one end and adding any digit at the other.
    /// Undirected, without loops or double edges.
    DeBruijn {
        /// B.
        base: u32,
        /// D.
        digits: u32,
    },
    /// `complete:N`: any two nodes are neighbours.
    Complete {
        /// N.
        nodes: u32,
    },
    /// `edges:FILE`: a file with one edge per line, which the caller reads.
    Edges(PathBuf),
}

/// The reason why a text does not name a network, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkSpecError(String);

/// Names and forms of the networks; messages print the forms.
const FORMS: [(&str, &str); 8] = [
    ("mesh", "mesh:AxBx.."),
    ("torus", "torus:AxBx.."),
    ("ring", "ring:N"),
    ("array", "array:N"),
    ("hypercube", "hypercube:D"),
    ("debruijn", "debruijn:B:D"),
    ("complete", "complete:N"),
    ("edges", "edges:FILE"),
];

/// Maximum of D, for which 2^D is [`MAX_PES`].
const MAX_DIMENSIONS: u64 = MAX_PES.ilog2() as u64;

impl FromStr for NetworkSpec {
    type Err = NetworkSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let split = text.split_once(':');
        let (name, rest) = split.map_or((text, None), |(name, rest)| (name, Some(rest)));
        let Some(&(_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
            return Err(NetworkSpecError(format!(
                "no network is called `{name}`{}; the networks are {}",
                hint(text, name),
                FORMS.map(|(_, form)| form).join(", ")
            )));
        };
        let wrong_form = || NetworkSpecError(format!("`{text}` does not have the form {form}"));
        let rest = rest.ok_or_else(wrong_form)?;
        let number = |what, given, low, high| {
            let number = number_in(form, what, given, [low, high]).map_err(NetworkSpecError);
            // `high` is at most MAX_PES.
            number.map(|n| n as u32)
        };
        let sides = || {
            let side = |given| number("each side", given, 1, MAX_PES as u64);
            rest.split('x').map(side).collect::<Result<Vec<u32>, _>>()
        };

        let spec = match name {
            "edges" if rest.is_empty() => return Err(wrong_form()),
            "edges" => NetworkSpec::Edges(PathBuf::from(rest)),
            "debruijn" => {
                let (base, digits) = rest.split_once(':').ok_or_else(wrong_form)?;
                NetworkSpec::DeBruijn {
                    base: number("B", base, 2, MAX_PES as u64)?,
                    digits: number("D", digits, 1, MAX_DIMENSIONS)?,
                }
            }
            _ if rest.is_empty() || rest.contains(':') => return Err(wrong_form()),
            "mesh" => NetworkSpec::Mesh { sides: sides()? },
            "torus" => NetworkSpec::Torus { sides: sides()? },
            "hypercube" => NetworkSpec::Hypercube {
                dimensions: number("D", rest, 0, MAX_DIMENSIONS)?,
            },
            _ => {
                let nodes = number("N", rest, 1, MAX_PES as u64)?;
                match name {
                    "array" => NetworkSpec::Mesh { sides: vec![nodes] },
                    "ring" => NetworkSpec::Ring { nodes },
                    _ => NetworkSpec::Complete { nodes },
                }
            }
        };
        let checked = spec.check_size();
        checked.map_err(|fault| NetworkSpecError(format!("{text}: {fault}")))?;
        Ok(spec)
    }
}

/// Returns a suggestion for an unknown network.
fn hint(text: &str, name: &str) -> String {
    if !text.contains(':') && text.contains(['/', '.']) {
        return format!(" (for a file of edges, write edges:{text})");
    }
    const TREES: [&str; 7] = [
        "path", "star", "kary", "binomial", "random", "parents", "file",
    ];
    if TREES.contains(&name) {
        return format!(" (that is a tree: --tree {text})");
    }
    did_you_mean(name, FORMS.iter().map(|(known, _)| *known))
}

impl fmt::Display for NetworkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grid = |sides: &[u32]| {
            let sides: Vec<String> = sides.iter().map(u32::to_string).collect();
            sides.join("x")
        };
        match self {
            NetworkSpec::Mesh { sides } => write!(f, "mesh:{}", grid(sides)),
            NetworkSpec::Torus { sides } => write!(f, "torus:{}", grid(sides)),
            NetworkSpec::Ring { nodes } => write!(f, "ring:{nodes}"),
            NetworkSpec::Hypercube { dimensions } => write!(f, "hypercube:{dimensions}"),
            NetworkSpec::DeBruijn { base, digits } => write!(f, "debruijn:{base}:{digits}"),
            NetworkSpec::Complete { nodes } => write!(f, "complete:{nodes}"),
            NetworkSpec::Edges(path) => write!(f, "edges:{}", path.display()),
        }
    }
}

impl NetworkSpec {
    /// Returns the forms of the names of all networks.
    pub fn forms() -> impl Iterator<Item = &'static str> {
        FORMS.into_iter().map(|(_, form)| form)
    }

    /// Builds the network.
    ///
    /// # Errors
    ///
    /// Returns an error for a size that parsing would have rejected, and for any
    /// [`NetworkSpec::Edges`], which the caller must read.
    pub fn build(&self) -> Result<Network, NetworkError> {
        self.check_size()?;
        match (self, self.grid()) {
            (_, Some(grid)) => of_grid(&grid),
            (NetworkSpec::DeBruijn { base, digits }, _) => {
                let nodes = u64::from(*base).pow(*digits);
                let next = |node: u64| {
                    let shifted = node * u64::from(*base) % nodes;
                    let others = shifted..shifted + u64::from(*base);
                    others.map(move |other| (node as u32, other as u32))
                };
                let edges = (0..nodes).flat_map(next).filter(|(a, b)| a != b);
                Network::from_edges(nodes as usize, edges)
            }
            (NetworkSpec::Complete { nodes }, _) => {
                let pairs = (0..*nodes).flat_map(|b| (0..b).map(move |a| (a, b)));
                Network::from_edges(*nodes as usize, pairs)
            }
            (NetworkSpec::Edges(path), _) => Err(NetworkError(format!(
                "the network is in a file ({}), which must be read first",
                path.display()
            ))),
            (_, None) => unreachable!("{self} is a grid"),
        }
    }

    /// Returns the network as a grid, if it is one.
    pub(super) fn grid(&self) -> Option<Grid> {
        match self {
            NetworkSpec::Mesh { sides } => Some(Grid::of(sides, false)),
            NetworkSpec::Torus { sides } => Some(Grid::of(sides, true)),
            NetworkSpec::Ring { nodes } => Some(Grid::of(&[*nodes], true)),
            // Each bit of a node's number is a coordinate. More than 128 are too many in any case.
            NetworkSpec::Hypercube { dimensions } => {
                let dimensions = u128::BITS.min(*dimensions) as usize;
                Some(Grid::of(&vec![2; dimensions], false))
            }
            _ => None,
        }
    }

    /// Checks the numbers of nodes and edges. For edges it uses an upper bound, which only de
    /// Bruijn graphs and short tori are below; only nearly complete networks come close to the
    /// limit.
    fn check_size(&self) -> Result<(), NetworkError> {
        let (nodes, degree) = match (self, self.grid()) {
            (_, Some(Grid { sides, .. })) => {
                let nodes = sides.iter().map(|&side| side as u128);
                let long = sides.iter().filter(|&&side| side > 1).count();
                // Each dimension has two neighbours, or one if the side is 2.
                let pairs = sides.iter().filter(|&&side| side == 2).count();
                let degree = (2 * long - pairs) as u128;
                (nodes.fold(1, u128::saturating_mul), degree)
            }
            (NetworkSpec::DeBruijn { base, digits }, _) => {
                let nodes = u128::from(*base).saturating_pow(*digits);
                let degree = (2 * u128::from(*base)).min(nodes.saturating_sub(1));
                (nodes, degree)
            }
            (NetworkSpec::Complete { nodes }, _) => {
                ((*nodes).into(), nodes.saturating_sub(1).into())
            }
            _ => return Ok(()),
        };
        bounded(nodes, nodes.saturating_mul(degree) / 2)
    }
}

/// Builds a grid, numbered row by row.
fn of_grid(grid: &Grid) -> Result<Network, NetworkError> {
    let nodes = grid.pes() as u32;
    let mut edges = Vec::new();
    let mut stride = 1;
    for side in grid.sides.iter().rev().map(|side| *side as u32) {
        for node in 0..nodes {
            match node / stride % side {
                place if place + 1 < side => edges.push((node, node + stride)),
                // A side of 1 would give a loop, and a side of 2 a double edge.
                place if grid.closed && side > 2 => edges.push((node, node - place * stride)),
                _ => {}
            }
        }
        stride *= side;
    }
    debug_assert!(edges.len() <= MAX_EDGES);
    Network::from_edges(nodes as usize, edges)
}
