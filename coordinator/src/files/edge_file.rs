//! The file of edges: a network, written by people and programs.
//!
//! ```text
//! # a triangle with a tail
//! 0 1
//! 1 2
//! 2 0
//! 2 3   # the tail
//! ```
//!
//! One edge on a line, as the numbers of its two nodes; the nodes are 0 to the
//! greatest number. An edge may stand there twice, or in both directions. All faults
//! are reported at once, each with its line. Whether the network is connected is not
//! asked here.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flitcast_proto::network::{MAX_EDGES, Network, NetworkFault};
use flitcast_proto::tree::MAX_PES;

/// The longest file that is read: 16 bytes for each of [`MAX_EDGES`] edges, which is
/// what a line with two numbers of seven digits has.
const MAX_FILE_BYTES: u64 = 16 * MAX_EDGES as u64;

/// How many faults are printed: in a file that is something else, every line is one.
const LISTED: usize = 100;

/// Why a file of edges gives no network.
#[derive(Debug, thiserror::Error)]
pub enum EdgeFileError {
    /// The system does not give it to us, or it is not text.
    #[error("cannot read the file of edges {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Not a file of edges, in all likelihood.
    #[error("the file of edges {} has more than {MAX_FILE_BYTES} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// Its lines are good; all together are not.
    #[error("{}: {fault}", path.display())]
    Network {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: NetworkFault,
    },
    /// It can be read, and is wrong.
    #[error("{}", Listed { path, faults })]
    Faults {
        /// The file.
        path: PathBuf,
        /// All that is wrong, by line, counted from 1.
        faults: Vec<(usize, Fault)>,
    },
}

/// What is wrong in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not two words.
    #[error("an edge is two nodes, like `0 1`, not `{found}`")]
    NotTwo {
        /// The line, or its beginning.
        found: String,
    },
    /// A word that names no node.
    #[error("a node is a whole number from 0 to {}, not `{found}`", MAX_PES - 1)]
    NoNode {
        /// The word, or its beginning.
        found: String,
    },
    /// An edge from a node to itself.
    #[error("node {node} is connected to itself; an edge has two different ends")]
    Loop {
        /// The node.
        node: u32,
    },
    /// No line says anything.
    #[error("no edges: give each a line, like `0 1` (a single PE is --tree path:1)")]
    NoEdges,
}

/// Reads the network in the file at `path`.
///
/// # Errors
///
/// That the file cannot be read, or all that is wrong in it.
pub fn load(path: &Path) -> Result<Network, EdgeFileError> {
    let path = path.to_owned();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) => return Err(EdgeFileError::Unreadable { path, error }),
    };
    let mut text = String::new();
    if let Err(error) = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text) {
        return Err(EdgeFileError::Unreadable { path, error });
    }
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(EdgeFileError::TooLong { path });
    }
    let edges = match parse(&text) {
        Ok(edges) => edges,
        Err(faults) => return Err(EdgeFileError::Faults { path, faults }),
    };
    let last = edges.iter().map(|&(a, b)| a.max(b)).max().unwrap_or(0);
    let network = Network::from_edges(last as usize + 1, edges);
    network.map_err(|fault| EdgeFileError::Network { path, fault })
}

/// Each edge's two nodes.
type Edges = Vec<(u32, u32)>;

/// The edges in `text`, at least one, or at least one fault.
pub(crate) fn parse(text: &str) -> Result<Edges, Vec<(usize, Fault)>> {
    let mut edges = Vec::new();
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or_default().trim();
        if said.is_empty() {
            continue;
        }
        let mut words = said.split_whitespace();
        let (Some(a), Some(b), None) = (words.next(), words.next(), words.next()) else {
            let found = beginning(said);
            faults.push((number, Fault::NotTwo { found }));
            continue;
        };
        match (node(a), node(b)) {
            (Ok(a), Ok(b)) if a == b => faults.push((number, Fault::Loop { node: a })),
            (Ok(a), Ok(b)) => edges.push((a, b)),
            (a, b) => {
                let wrong = a.err().into_iter().chain(b.err());
                faults.extend(wrong.map(|fault| (number, fault)));
            }
        }
    }
    if edges.is_empty() && faults.is_empty() {
        faults.push((text.lines().count().max(1), Fault::NoEdges));
    }
    match faults.is_empty() {
        true => Ok(edges),
        false => Err(faults),
    }
}

fn node(word: &str) -> Result<u32, Fault> {
    // `parse` alone would also take `+5`.
    let digits = word.bytes().all(|b| b.is_ascii_digit());
    let number = word
        .parse()
        .ok()
        .filter(|&n: &u32| digits && (n as usize) < MAX_PES);
    number.ok_or_else(|| Fault::NoNode {
        found: beginning(word),
    })
}

/// Enough of it to find it by.
fn beginning(text: &str) -> String {
    text.chars().take(24).collect()
}

/// One fault a line, each as compilers print it: `net.txt:7: ...`.
struct Listed<'a> {
    path: &'a Path,
    faults: &'a [(usize, Fault)],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (line, fault)) in self.faults.iter().take(LISTED).enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:{line}: {fault}", self.path.display())?;
        }
        match self.faults.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more faults"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn message(text: &str) -> Vec<String> {
        let faults = parse(text).unwrap_err();
        let path = "t".into();
        let error = EdgeFileError::Faults { path, faults }.to_string();
        error.lines().map(str::to_owned).collect()
    }

    #[test]
    fn edges_comments_and_blank_lines() {
        let text = "# a triangle\n0 1\n\n  1\t2 # here\r\n2 0\n0 2\n   \n";
        assert_eq!(parse(text).unwrap(), [(0, 1), (1, 2), (2, 0), (0, 2)]);
    }

    #[test]
    fn all_faults_with_their_lines() {
        let text = "0 1\n1\n2 3 4\n# fine\na b\n5 5\n1048576 0\n-1 +2\n0,1\n1.5 2";
        let node = "a node is a whole number from 0 to 1048575, not";
        let two = "an edge is two nodes, like `0 1`, not";
        assert_eq!(
            message(text),
            [
                format!("t:2: {two} `1`"),
                format!("t:3: {two} `2 3 4`"),
                format!("t:5: {node} `a`"),
                format!("t:5: {node} `b`"),
                "t:6: node 5 is connected to itself; an edge has two different ends".to_owned(),
                format!("t:7: {node} `1048576`"),
                format!("t:8: {node} `-1`"),
                format!("t:8: {node} `+2`"),
                format!("t:9: {two} `0,1`"),
                format!("t:10: {node} `1.5`"),
            ]
        );
        assert!(message("")[0].starts_with("t:1: no edges: "));
        assert!(message("# a\n# b\n")[0].starts_with("t:2: no edges: "));
    }

    #[test]
    fn a_file_that_is_something_else_is_not_printed_whole() {
        let lines = message(&"x\n".repeat(1000));
        assert_eq!(lines.len(), LISTED + 1);
        assert_eq!(lines[LISTED], "and 900 more faults");
    }

    #[test]
    fn load_names_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "3 1\n1 0").unwrap();
        let network = load(file.path()).unwrap();
        assert_eq!((network.len(), network.edges()), (4, 2));
        assert_eq!(network.neighbours(1), [0, 3]);

        writeln!(file, "1 1").unwrap();
        let path = file.path().display().to_string();
        let error = load(file.path()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{path}:3: node 1 is")),
            "{error}"
        );

        file.as_file().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = load(file.path()).unwrap_err().to_string();
        assert!(
            error.contains(&path) && error.contains("more than"),
            "{error}"
        );
        let error = load(Path::new("no/such")).unwrap_err().to_string();
        assert!(
            error.contains("cannot read the file of edges no/such: "),
            "{error}"
        );
    }
}
