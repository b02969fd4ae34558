//! The page of `--report`: one file, that needs nothing else and asks no network.
//!
//! The page's own code (`page.js`) draws; here is only what it is given, as JSON. Its
//! contract is [`Page::data`]'s: `run` is what `--format json` prints.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::spans::{Span, SpanItem};
use serde_json::{Value, json};

use crate::render::pictures::{ItemName, Scene};

use crate::job::fit::EdgeFit;

const HTML: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
/// In this order they are one script.
const SCRIPTS: [&str; 7] = [
    include_str!("model.js"),
    include_str!("table.js"),
    include_str!("charts.js"),
    include_str!("diagram.js"),
    include_str!("bars.js"),
    include_str!("hand.js"),
    include_str!("page.js"),
];

/// What a page shows.
pub struct Page<'a> {
    /// The command that made it.
    pub command: String,
    /// What `--format json` prints.
    pub run: Value,
    /// What each round took.
    pub rounds_ns: &'a [u64],
    /// One round, span by span.
    pub scene: &'a Scene<'a>,
    /// What the links were fitted from; may be empty.
    pub fit: &'a [EdgeFit],
}

impl Page<'_> {
    /// Writes the page.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rest = HTML;
        while let Some((before, mark)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (name, after) = mark.split_once("}}").unwrap_or((mark, ""));
            match name {
                "css" => out.write_all(CSS.as_bytes())?,
                "data" => out.write_all(unmarked(&self.data()).as_bytes())?,
                "js" => {
                    for script in SCRIPTS {
                        out.write_all(script.as_bytes())?;
                    }
                }
                // A test knows all of the page's marks.
                other => unreachable!("page.html asks for {other}"),
            }
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }

    /// What the page's code reads. Times are in the units that their names say, and
    /// count from the root's trigger.
    fn data(&self) -> Value {
        let Scene {
            measured,
            predicted,
            ..
        } = self.scene;
        let micros = |ns: &u64| *ns as f64 / 1000.0;
        let pes = |pes: Vec<PeId>| pes.iter().map(|pe| pe.0).collect::<Vec<_>>();
        json!({
            "flitcast": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "run": self.run,
            "rounds_us": self.rounds_ns.iter().map(micros).collect::<Vec<_>>(),
            "shown": {
                "round": measured.round.0,
                "round_us": micros(&measured.round_ns),
                "pes_with_spans_left_out": pes(self.scene.cut()),
            },
            "rows": pes(self.scene.rows()),
            "span_columns": ["port", "peer", "item", "begin_ns", "end_ns"],
            "measured": spans(&measured.spans, measured.started_ns),
            "predicted": spans(predicted, 0),
            "fit": self.fit.iter().map(EdgeFit::data).collect::<Vec<_>>(),
        })
    }
}

/// By PE index, each span a list as `span_columns` says: port 0 sends, 1 receives and 2 is of files,
/// an item is a message's number or a control item's name.
fn spans(by_pe: &[Vec<Span>], origin_ns: u64) -> Value {
    let since = |ns: u64| (i128::from(ns) - i128::from(origin_ns)) as i64;
    let row = |span: &Span| {
        let item = match span.item {
            SpanItem::Message(pe) => json!(pe.0),
            control => json!(ItemName(control).to_string()),
        };
        json!([
            span.port as u32,
            span.peer.0,
            item,
            since(span.begin_ns),
            since(span.end_ns)
        ])
    };
    let rows = |spans: &Vec<Span>| spans.iter().map(row).collect::<Value>();
    by_pe.iter().map(rows).collect()
}

/// JSON in which nothing can be taken for markup: what stands for `<` in a string says
/// the same, and outside of strings there is none.
fn unmarked(value: &Value) -> String {
    value.to_string().replace('<', "\\u003c")
}

#[cfg(test)]
mod tests;
