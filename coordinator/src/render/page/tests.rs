use flitcast_proto::cost::Link;

use super::*;
use crate::render::pictures::scene::tests::with_scene;
use flitcast_cluster::job::fit::FitPoint;

/// Calls `check` with a page of a gather.
fn page(check: impl FnOnce(&Page<'_>)) {
    let point = |bytes, ns, used| FitPoint { bytes, ns, used };
    let fit = EdgeFit {
        edge: PeId(2),
        down: false,
        points: vec![point(0, 20.5, true), point(1 << 40, 9e9, false)],
        link: Link {
            latency_ns: 20.0,
            setup_ns: 0.0,
            ns_per_byte: 0.25,
            burst_bytes: 8.0,
        },
    };
    with_scene(|scene| {
        check(&Page {
            title: "gather on path:3 by linear".to_owned(),
            command: "flitcast gather --output '</script><b>'".to_owned(),
            run: json!({ "operation": "gather", "tree": "<!--" }),
            rounds_ns: &[3000, 2500, 2000],
            nothing: "nothing to send: everything is there already",
            scene,
            fit: &[fit],
        });
    });
}

fn written(page: &Page<'_>) -> String {
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the data as a browser finds it: the text up to the first `<`.
fn embedded(html: &str) -> &str {
    let begin = r#"<script type="application/json" id="data">"#;
    let (_, rest) = html.split_once(begin).unwrap();
    rest.split_once('<').unwrap().0
}

#[test]
fn data_has_the_documented_fields() {
    page(|page| {
        let expected = json!({
            "flitcast": env!("CARGO_PKG_VERSION"),
            "title": "gather on path:3 by linear",
            "command": "flitcast gather --output '</script><b>'",
            "run": { "operation": "gather", "tree": "<!--" },
            "rounds_us": [3.0, 2.5, 2.0],
            "nothing": "nothing to send: everything is there already",
            "shown": { "round": 4, "round_us": 5001.5, "pes_with_spans_left_out": [] },
            "rows": [0, 2, 1],
            "names": ["P0", "P1 one", "P2"],
            "is_over_tree": true,
            "palette": PALETTE,
            "message_columns": ["id", "source", "destination", "bytes"],
            "messages": [[1, 1, 0, 77]],
            "span_columns": ["port", "peer", "item", "begin_ns", "end_ns"],
            "measured": [
                [[1, 2, 1, 2_000_000, 5_001_500]],
                [[0, 2, 1, -1000, -1000]],
                [[1, 0, "wakeup call", 1, 3]],
            ],
            "predicted": [[[1, 2, 1, 3_000_000, 4_000_000]], [], []],
            "fit": [{
                "edge": 2,
                "direction": "up",
                "points": [
                    { "bytes": 0, "ns": 20.5, "used": true },
                    { "bytes": 1u64 << 40, "ns": 9e9, "used": false },
                ],
                "latency_ns": 20.0,
                "ns_per_byte": 0.25,
                "burst_bytes": 8.0,
            }],
        });
        let html = written(page);
        let data: Value = serde_json::from_str(embedded(&html)).unwrap();
        assert_eq!(data, expected);
    });
}

#[test]
fn page_is_complete_and_its_data_is_escaped() {
    page(|page| {
        let html = written(page);
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
        assert!(!html.contains("{{"), "a mark is left");
        for part in [CSS].iter().chain(&SCRIPTS) {
            assert!(html.contains(part));
        }
        assert!(!html.contains("</script><b>") && !embedded(&html).contains("<!--"));
        let scripts = html.matches("<script").count();
        assert_eq!(html.matches("</script>").count(), scripts);
        // A namespace is a name, not an address to load.
        let html = html.replace("http://www.w3.org/2000/svg", "");
        for address in ["http:", "https:", "url(", "src=", "@import", "fetch("] {
            assert!(!html.contains(address), "{address}");
        }
    });
}
