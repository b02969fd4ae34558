//! The edge file: a network, written by users and programs.
//!
//! ```text
//! # a triangle with a tail
//! 0 1
//! 1 2
//! 2 0
//! 2 3   # the tail
//! ```
//!
//! Each line has one edge, as the numbers of its two nodes; the nodes are 0 to the greatest number. An
//! edge may occur twice, or in both directions. All errors are reported at once, each with its line.
//! The file is not checked for a connected network.

use std::path::Path;

use flitcast_plan::network::{MAX_EDGES, Network};
use flitcast_proto::tree::MAX_PES;

use crate::files::user_file::{
    self, FileError, FileKind, PositionedError, accepted, beginning, whole_number,
};

const FILE: FileKind = FileKind {
    name: "file of edges",
    // 16 bytes for each edge, which is what a line with two numbers of seven digits has.
    max_bytes: 16 * MAX_EDGES as u64,
};

pub fn load(path: &Path) -> Result<Network, FileError> {
    user_file::load(FILE, path, |text| {
        let edges = parse(text)?;
        let last = edges.iter().map(|&(a, b)| a.max(b)).max().unwrap_or(0);
        let network = Network::from_edges(last as usize + 1, edges);
        network.map_err(|fault| vec![PositionedError::new(None, fault)])
    })
}

/// Parses the edges in `text`, at least one; returns at least one error otherwise.
pub(crate) fn parse(text: &str) -> Result<Vec<(u32, u32)>, Vec<PositionedError>> {
    let mut edges = Vec::new();
    let mut faults = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let content = text.split('#').next().unwrap_or_default().trim();
        if content.is_empty() {
            continue;
        }
        let on_line = |fault| PositionedError::new(Some(line), fault);
        match edge(content) {
            Ok(edge) => edges.push(edge),
            Err(found) => faults.extend(found.into_iter().map(on_line)),
        }
    }
    if edges.is_empty() && faults.is_empty() {
        let last = text.lines().count().max(1);
        let none = "no edges: give each a line, like `0 1` (a single PE is --tree path:1)";
        faults.push(PositionedError::new(Some(last), none));
    }
    accepted(edges, faults)
}

/// Parses the edge on a line, without its comment.
fn edge(text: &str) -> Result<(u32, u32), Vec<String>> {
    let mut words = text.split_whitespace();
    let (Some(a), Some(b), None) = (words.next(), words.next(), words.next()) else {
        let found = beginning(text);
        return Err(vec![format!(
            "an edge is two nodes, like `0 1`, not `{found}`"
        )]);
    };
    match (node(a), node(b)) {
        (Ok(a), Ok(b)) if a == b => Err(vec![format!(
            "node {a} is connected to itself; an edge has two different ends"
        )]),
        (Ok(a), Ok(b)) => Ok((a, b)),
        (a, b) => Err(a.err().into_iter().chain(b.err()).collect()),
    }
}

fn node(word: &str) -> Result<u32, String> {
    let number = whole_number(word).filter(|&number: &u32| (number as usize) < MAX_PES);
    number.ok_or_else(|| {
        let (last, found) = (MAX_PES - 1, beginning(word));
        format!("a node is a whole number from 0 to {last}, not `{found}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::user_file::printed;

    fn message(text: &str) -> Vec<String> {
        printed(parse(text).unwrap_err())
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
        assert_eq!(lines.len(), 101);
        assert_eq!(lines[100], "and 900 more faults");
    }

    #[test]
    fn load_names_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "3 1\n1 0\n").unwrap();
        let network = load(file.path()).unwrap();
        assert_eq!((network.len(), network.edges()), (4, 2));
        assert_eq!(network.neighbours(1), [0, 3]);

        std::fs::write(&file, "3 1\n1 0\n1 1\n").unwrap();
        let error = load(file.path()).unwrap_err().to_string();
        let expected = format!("{}:3: node 1 is", file.path().display());
        assert!(error.starts_with(&expected), "{error}");
    }
}
