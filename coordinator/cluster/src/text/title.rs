//! Titles of runs and plans, the same in all outputs.

/// Returns the title of an operation on a tree, a network or a cluster by an algorithm: `exchange on
/// complete:8 by rounds`. An empty algorithm is left out.
pub fn title(operation: &str, name: &str, algorithm: &str) -> String {
    let by = if algorithm.is_empty() { "" } else { " by " };
    format!("{operation} on {}{by}{algorithm}", in_words(name))
}

/// Returns the network in the name of a tree: `mesh:4x4` of `mesh:4x4 root 5 bfs`.
pub fn network_of(tree: &str) -> &str {
    tree.split_once(ROOT).map_or(tree, |(network, _)| network)
}

/// Separates the network from the root and the kind of a tree that spans it.
const ROOT: &str = " root ";

/// Returns the name of a tree in plain words: `mesh:4x4 over a bfs tree from 5`.
fn in_words(name: &str) -> String {
    let Some((network, tree)) = name.split_once(ROOT) else {
        return name.to_owned();
    };
    let (root, more) = tree.split_once(' ').unwrap_or((tree, ""));
    // The kind of the tree, if it has one, and its changes.
    let (kind, changes) = more.split_once(' ').unwrap_or((more, ""));
    let (over, changes) = match kind {
        "bfs" | "broadcast" => (format!("over a {kind} tree"), changes),
        _ => (String::new(), more),
    };
    let from = match root {
        "0" | "P0" => String::new(),
        root => format!("from {root}"),
    };
    let parts = [network, &over, &from, changes];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_plain() {
        for (name, place) in [
            ("kary:2:8", "kary:2:8"),
            ("star:3 in Slurm", "star:3 in Slurm"),
            ("ring:4 root 2 over 2 trees", "ring:4 from 2 over 2 trees"),
            ("complete:8 root 0 bfs", "complete:8 over a bfs tree"),
            (
                "lab root b broadcast without P2",
                "lab over a broadcast tree from b without P2",
            ),
        ] {
            assert_eq!(
                title("gather", name, "linear"),
                format!("gather on {place} by linear")
            );
        }
        assert_eq!(title("map", "star:3", ""), "map on star:3");
        assert_eq!(network_of("ring:4 root 2 bfs"), "ring:4");
        assert_eq!(network_of("ring:4"), "ring:4");
    }
}
