//! The modules that a file imports. Unit tests are excluded, because their imports are not part of the
//! program.

use super::source::Source;

/// Returns the module of a file: `coordinator/cluster/src/text/units.rs` is `text` and `units`.
pub fn module(file: &str) -> Vec<&str> {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside);
    let inside = inside.strip_suffix(".rs").unwrap_or(inside);
    let names = inside.split('/').collect::<Vec<_>>();
    match names.split_last() {
        Some((&"mod", folders)) => folders.to_vec(),
        _ => names,
    }
}

/// Returns all paths that a path with groups names, each after the common prefix: `a::{b, c::d}` is
/// two.
pub fn spelled_out<'a>(code: &'a str, common: &[&'a str]) -> (Vec<Vec<&'a str>>, &'a str) {
    let rest = code.trim_start();
    if let Some(group) = rest.strip_prefix('{') {
        let (mut all, mut rest) = (Vec::new(), group.trim_start());
        while !rest.starts_with('}') {
            let (paths, after) = spelled_out(rest, common);
            all.extend(paths);
            // Behind a path, up to what ends it: `as other`.
            let end = after.find([',', '}']).expect("a group ends");
            rest = after[end..].trim_start_matches(',').trim_start();
        }
        return (all, &rest[1..]);
    }
    let is_of_name = |char: char| char.is_alphanumeric() || char == '_' || char == '*';
    let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
    let own = (name != "self").then_some(name);
    let path: Vec<&str> = common.iter().copied().chain(own).collect();
    match rest.strip_prefix("::") {
        // Generic arguments are not part of the path.
        Some(more) if !more.starts_with('<') => spelled_out(more, &path),
        _ => (vec![path], rest),
    }
}

/// Returns all paths into this crate that a file names, from the crate's root.
pub fn named(source: &Source) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for name in ["crate", "super"] {
        for at in source.places(name) {
            let mut rest = &source.code[at..];
            if source.code[..at].trim_end().ends_with("::") || !rest[name.len()..].starts_with("::")
            {
                continue;
            }
            let mut above = module(&source.file);
            if let Some(inside) = rest.strip_prefix("crate::") {
                (above, rest) = (Vec::new(), inside);
            }
            while let Some(higher) = rest.strip_prefix("super::") {
                above.pop();
                rest = higher;
            }
            found.extend(spelled_out(rest, &above).0);
        }
    }
    found
}
