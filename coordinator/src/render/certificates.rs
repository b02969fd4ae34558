//! The table of the certificates of a gather by certification, which `-v` adds to the report.

use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::certificates::{Certificates, StreamFigures};
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::text::figures::{self, beside, fitted};
use flitcast_cluster::text::units::{Bytes, Nanos};

/// Columns that a narrow terminal has no room for, the least important first.
const LEAST: [&str; 6] = ["bytes", "first flit", "ordered", "certified", "took", "n"];

/// Returns the table: for each PE its planned figures, and below them those of the shown round. It is
/// empty if there are no certificates. At most `width` characters wide.
pub fn table(request: &Request, outcome: &Outcome, width: Option<usize>) -> String {
    let tree = &request.site.tree;
    let certificates = Certificates::of(tree, &outcome.rounds);
    let mut table = figures::table([
        "PE",
        "",
        "c",
        "n",
        "bytes",
        "s",
        "certified",
        "ordered",
        "first flit",
        "lag",
        "took",
    ]);
    let called = |pe| request.site.placement.called(pe);
    let mut is_empty = true;
    for (pe, certificate) in tree.ids().zip(&certificates.pes) {
        let Some(certificate) = certificate else {
            continue;
        };
        is_empty = false;
        table.add_row(row(called(pe), "planned", &certificate.planned));
        if let Some(received) = &certificate.received {
            table.add_row(row(String::new(), "received", received));
        }
    }
    if is_empty {
        return String::new();
    }
    let shown = match certificates.round {
        Some(round) => format!("as planned, and as received in round {}", round.0),
        None => "as planned".to_owned(),
    };
    let heading =
        format!("{shown}: a stream begins at c at the earliest, takes n, and is ordered for s");
    let heading = beside("certificates", 13, &heading, width);
    format!("\n{heading}\n{}", fitted(table, 2, &LEAST, width))
}

fn row(pe: String, which: &str, figures: &StreamFigures) -> Vec<String> {
    let nanos = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
    vec![
        pe,
        which.to_owned(),
        Nanos(figures.lag_ns).to_string(),
        Nanos(figures.stream_ns).to_string(),
        Bytes(figures.stream_bytes).to_string(),
        nanos(figures.after_ns),
        nanos(Some(figures.certified_ns)),
        nanos(figures.ordered_ns),
        nanos(figures.flits_ns.map(|flits| flits[0])),
        nanos(figures.lag_taken_ns()),
        nanos(figures.stream_taken_ns()),
    ]
}
