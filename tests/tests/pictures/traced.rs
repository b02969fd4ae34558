//! The trace agrees with the page.

use flitcast_tests::scratch;
use serde_json::{Value, json};

use super::data::{Span, data, spans};
use super::{drawn, page, trace};

/// Returns the event that the trace must have for a span.
fn event(pid: u64, span: &Span, bytes: &[u64]) -> Value {
    let micros = |ns: i64| json!(ns as f64 / 1000.0);
    let port = if span.received { "receive" } else { "send" };
    let peer = format!("P{}", span.peer);
    let (name, category, args) = match span.message() {
        Some(i) => {
            let arrow = if span.received { "<-" } else { "->" };
            let bytes = bytes[i as usize - 1];
            (
                format!("M_{i} {arrow} {peer}"),
                "message",
                json!({
                    "port": port, "peer": peer, "message": i,
                    "source": format!("P{i}"), "destination": "P0", "bytes": bytes,
                }),
            )
        }
        None => (
            span.item.as_str().expect("a name").to_owned(),
            "control",
            json!({ "port": port, "peer": peer }),
        ),
    };
    json!({
        "ph": "X",
        "pid": pid,
        "track": format!("P{} {port}", span.pe),
        "ts": micros(span.begin_ns),
        "dur": micros(span.end_ns - span.begin_ns),
        "name": name,
        "cat": category,
        "args": args,
    })
}

#[test]
fn the_trace_has_an_event_for_each_span_on_the_track_of_its_port() {
    let dir = scratch();
    let report = drawn(&dir, "gather --tree kary:2:5 --size 100KiB --rounds 3");
    let data = data(&page(&dir));
    let trace = trace(&dir);
    assert_eq!(trace["otherData"]["measured_round"], data["shown"]["round"]);
    assert_eq!(trace["otherData"]["rounds"], 3);
    let events = trace["traceEvents"].as_array().expect("a list");

    let name_of = |kind: &str, pid: &Value, tid: &Value| {
        let mut all = events.iter().filter(|event| {
            event["ph"] == "M"
                && event["name"] == kind
                && (&event["pid"], &event["tid"]) == (pid, tid)
        });
        let name = all.next().expect("it is named")["args"]["name"].clone();
        assert!(all.next().is_none(), "{kind} {pid} {tid} is named once");
        name
    };
    let process = name_of("process_name", &json!(1), &json!(0));
    let round = &data["shown"]["round"];
    let shown = format!("round {round} of 3, the one nearest to the median");
    assert_eq!(trace["otherData"]["shown"], shown);
    assert_eq!(process, format!("measured: {shown}"));
    assert_eq!(name_of("process_name", &json!(2), &json!(0)), "predicted");

    let rows = data["rows"].as_array().expect("a list").iter();
    let tracks = rows.flat_map(|pe| ["send", "receive"].map(|port| json!(format!("P{pe} {port}"))));
    let tracks: Vec<Value> = tracks.collect();
    let places: Vec<Value> = (0..tracks.len()).map(Value::from).collect();
    for pid in [1, 2] {
        let all = |kind, field| -> Vec<Value> {
            let of_kind = |event: &&Value| event["name"] == kind && event["pid"] == pid;
            let all = events.iter().filter(of_kind);
            all.map(|event| event["args"][field].clone()).collect()
        };
        assert_eq!(all("thread_name", "name"), tracks);
        assert_eq!(all("thread_sort_index", "sort_index"), places);
    }

    let traced = events.iter().filter(|event| event["ph"] == "X");
    let traced = traced.map(|event| {
        let mut event = event.clone();
        let track = name_of("thread_name", &event["pid"], &event["tid"]);
        let fields = event.as_object_mut().expect("an object");
        fields.remove("tid");
        fields.insert("track".to_owned(), track);
        event
    });
    let bytes = report.message_bytes();
    let measured = spans(&data, "measured");
    let all = "each of four messages, and control items";
    assert!(measured.len() > 40, "{all}");
    let predicted = spans(&data, "predicted");
    let expected = (measured.iter().map(|span| event(1, span, &bytes)))
        .chain(predicted.iter().map(|span| event(2, span, &bytes)));
    assert_eq!(traced.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}
