//! Names of deliveries, human-readable and machine-readable.

use flitcast_proto::{DeliveryName, PeId};
use serde_json::{Value, json};

use super::phrases;

/// Maximum number of deliveries by pairs that a text names; there can be as many as PEs squared.
const MOST_PAIRS: usize = 32;

/// Names deliveries: "P3, P5", or "P2's, P3's at P5; P0's at P6". Deliveries of pairs must be
/// ordered by row.
pub fn names(all: &[DeliveryName]) -> String {
    if all.iter().all(|name| name.source.is_none()) {
        return phrases::names(all);
    }
    let (named, rest) = all.split_at(all.len().min(MOST_PAIRS));
    let mut rows: Vec<(PeId, Vec<String>)> = Vec::new();
    for name in named {
        let source = name.source.unwrap_or(name.row);
        let source = format!("{source}'s");
        match rows.last_mut().filter(|(row, _)| *row == name.row) {
            Some((_, sources)) => sources.push(source),
            None => rows.push((name.row, vec![source])),
        }
    }
    let rows = rows.iter();
    let rows = rows.map(|(row, sources)| format!("{} at {row}", phrases::names(sources)));
    let mut parts: Vec<String> = rows.collect();
    if !rest.is_empty() {
        parts.push(format!("and {} more", rest.len()));
    }
    parts.join("; ")
}

/// Names a message: "P3's message", or "P2's message for P5".
pub fn message(name: DeliveryName) -> String {
    match name.source {
        None => format!("{}'s message", name.row),
        Some(source) => format!("{source}'s message for {}", name.row),
    }
}

/// Returns the machine-readable name: 3, or "p5/p2", like the entry in an output.
pub fn value(name: DeliveryName) -> Value {
    match name.source {
        None => json!(name.row.0),
        Some(source) => json!(format!("p{}/p{}", name.row.0, source.0)),
    }
}

/// Parses the name that [`value`] writes for a delivery of a pair.
pub fn parse_pair(text: &str) -> Option<DeliveryName> {
    let (row, source) = text.split_once('/')?;
    let pe = |text: &str| Some(PeId(text.strip_prefix('p')?.parse().ok()?));
    let name = DeliveryName {
        row: pe(row)?,
        source: Some(pe(source)?),
    };
    // `parse` alone would also accept `p+5` and `p05`.
    (value(name) == text).then_some(name)
}

/// Returns the machine-readable names of several deliveries.
pub fn values(all: &[DeliveryName]) -> Value {
    all.iter().map(|name| value(*name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_as_it_is_written() {
        assert_eq!(parse_pair("p5/p2"), Some(pair(2, 5)));
        for none in [
            "p5",
            "p5/",
            "5/2",
            "p05/p2",
            "p+5/p2",
            "p5/p2/",
            "p4294967296/p0",
        ] {
            assert_eq!(parse_pair(none), None, "{none}");
        }
    }

    fn pair(source: u32, row: u32) -> DeliveryName {
        DeliveryName {
            row: PeId(row),
            source: Some(PeId(source)),
        }
    }

    #[test]
    fn pairs_are_listed_row_by_row() {
        let [alone, other] = [3, 5].map(|row| DeliveryName {
            row: PeId(row),
            source: None,
        });
        assert_eq!(names(&[alone, other]), "P3, P5");
        assert_eq!(values(&[alone, other]), json!([3, 5]));
        let pairs = [pair(2, 5), pair(3, 5), pair(0, 6)];
        assert_eq!(names(&pairs), "P2's, P3's at P5; P0's at P6");
        assert_eq!(values(&pairs), json!(["p5/p2", "p5/p3", "p6/p0"]));
        assert_eq!(message(pairs[0]), "P2's message for P5");
        let many: Vec<DeliveryName> = (1..40).map(|source| pair(source, 0)).collect();
        assert!(names(&many).ends_with("P32's at P0; and 7 more"));
    }
}
