//! The data in a page, checked against its specification.

use serde_json::Value;

const BEGIN: &str = r#"<script type="application/json" id="data">"#;

/// Returns the data in a page.
#[track_caller]
pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once(BEGIN).expect("a page has data");
    let (data, _) = rest.split_once("</script>").expect("they end");
    serde_json::from_str(data).expect("they are JSON")
}

/// Returns the page with other data.
pub fn with_data(page: &str, data: &Value) -> String {
    let (head, rest) = page.split_once(BEGIN).expect("a page has data");
    let (_, tail) = rest.split_once("</script>").expect("they end");
    let data = data.to_string().replace('<', "\\u003c");
    format!("{head}{BEGIN}{data}</script>{tail}")
}

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub pe: u64,
    /// Whether this is a span of the receive port, not of the send port.
    pub received: bool,
    /// The PE at the other end.
    pub peer: u64,
    /// The number of a message, or the name of a control item.
    pub item: Value,
    /// The begin, from P0's trigger.
    pub begin_ns: i64,
    /// The end, from P0's trigger.
    pub end_ns: i64,
}

impl Span {
    pub fn edge(&self) -> (u64, u64) {
        match self.received {
            true => (self.peer, self.pe),
            false => (self.pe, self.peer),
        }
    }

    pub fn message(&self) -> Option<u64> {
        self.item.as_u64()
    }
}

/// Returns the spans of the run that is called "measured" or "predicted", in the PEs' order.
#[track_caller]
pub fn spans(data: &Value, run: &str) -> Vec<Span> {
    let columns = ["port", "peer", "item", "begin_ns", "end_ns"];
    assert_eq!(data["span_columns"], serde_json::json!(columns));
    let by_pe = data[run].as_array().expect("a list for each PE");
    let of_pe = |(pe, list): (u64, &Value)| {
        let list = list.as_array().expect("a list of spans").clone();
        list.into_iter().map(move |row| Span {
            pe,
            received: row[0] == 1,
            peer: row[1].as_u64().expect("an index"),
            item: row[2].clone(),
            begin_ns: row[3].as_i64().expect("a time"),
            end_ns: row[4].as_i64().expect("a time"),
        })
    };
    (0..).zip(by_pe).flat_map(of_pe).collect()
}
