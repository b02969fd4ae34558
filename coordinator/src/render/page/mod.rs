//! The page that `--report` writes: one HTML file with its data, styles and scripts.

use std::io::{self, Write};

use flitcast_cluster::job::model::EdgeFit;
use flitcast_proto::PeId;
use flitcast_proto::spans::{Span, SpanItem};
use serde_json::{Value, json};

use crate::render::colours::PALETTE;
use crate::render::pictures::scene::{Scene, SceneMessage, control_name};

const HTML: &str = include_str!("page.html");
const CSS: &str = include_str!("page.css");
/// The scripts in the order in which the page includes them.
const SCRIPTS: [&str; 9] = [
    include_str!("model.js"),
    include_str!("table.js"),
    include_str!("charts.js"),
    include_str!("rows.js"),
    include_str!("diagram.js"),
    include_str!("bars.js"),
    include_str!("path.js"),
    include_str!("hand.js"),
    include_str!("page.js"),
];

pub struct Page<'a> {
    /// The title of the run.
    pub title: String,
    /// The command line that made the page.
    pub command: String,
    /// The value that `--format json` prints.
    pub run: Value,
    pub rounds_ns: &'a [u64],
    /// The description of a round without messages.
    pub nothing: &'static str,
    /// One round, with its spans.
    pub scene: &'a Scene<'a>,
    /// The measurements that the links were fitted to; may be empty.
    pub fit: &'a [EdgeFit],
}

impl Page<'_> {
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rest = HTML;
        while let Some((before, mark)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (name, after) = mark.split_once("}}").unwrap_or((mark, ""));
            match name {
                "css" => out.write_all(CSS.as_bytes())?,
                // JSON without `<` cannot contain markup. It occurs in strings only, where its escape sequence
                // has the same meaning.
                "data" => {
                    let data = self.data().to_string().replace('<', "\\u003c");
                    out.write_all(data.as_bytes())?;
                }
                "js" => {
                    for script in SCRIPTS {
                        out.write_all(script.as_bytes())?;
                    }
                }
                // A test replaces all marks of the page.
                other => unreachable!("page.html asks for {other}"),
            }
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }

    /// Returns the data that the page's scripts read. Names of times contain their units; times are
    /// relative to the trigger of the root.
    fn data(&self) -> Value {
        let measured = self.scene.measured;
        let message = |message: SceneMessage| {
            let to = message.destination.map(|to| to.0);
            json!([message.id.0, message.source.0, to, message.bytes])
        };
        let micros = |ns: &u64| *ns as f64 / 1000.0;
        let pes = |pes: Vec<PeId>| pes.iter().map(|pe| pe.0).collect::<Vec<_>>();
        json!({
            "flitcast": env!("CARGO_PKG_VERSION"),
            "title": self.title,
            "command": self.command,
            "run": self.run,
            "rounds_us": self.rounds_ns.iter().map(micros).collect::<Vec<_>>(),
            "nothing": self.nothing,
            "shown": {
                "round": measured.round.0,
                "round_us": micros(&measured.round_ns),
                "pes_with_spans_left_out": pes(self.scene.cut()),
            },
            "rows": pes(self.scene.rows()),
            "names": self.scene.names,
            "is_over_tree": self.scene.is_over_tree,
            "palette": PALETTE,
            "message_columns": ["id", "source", "destination", "bytes"],
            "messages": self.scene.messages().map(message).collect::<Value>(),
            "span_columns": ["port", "peer", "item", "begin_ns", "end_ns"],
            "measured": self.spans(&measured.spans, measured.started_ns),
            "predicted": self.spans(self.scene.predicted, 0),
            "fit": self.fit.iter().map(EdgeFit::data).collect::<Vec<_>>(),
        })
    }

    /// Returns the spans by PE index, each as a list with the columns of `span_columns`. Port 0 sends,
    /// 1 receives, 2 is files. An item is the id of an undivided message or the name of a control
    /// item.
    fn spans(&self, by_pe: &[Vec<Span>], origin_ns: u64) -> Value {
        let since = |ns: u64| (i128::from(ns) - i128::from(origin_ns)) as i64;
        let row = |span: &Span| {
            let item = match span.item {
                SpanItem::Message(id) => json!(self.scene.whole(id).0),
                control => json!(control_name(control)),
            };
            let (port, begin, end) = (span.port as u32, since(span.begin_ns), since(span.end_ns));
            json!([port, span.peer.0, item, begin, end])
        };
        let rows = |spans: &Vec<Span>| spans.iter().map(row).collect::<Value>();
        by_pe.iter().map(rows).collect()
    }
}
