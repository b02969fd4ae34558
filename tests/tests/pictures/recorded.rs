//! The round in a page agrees with the actual round.

use std::collections::BTreeMap;

use flitcast_tests::scratch;
use serde_json::{Value, json};

use super::data::{Span, data, spans};
use super::{drawn, page};

/// Counts how often each item crosses each edge, by the spans of one kind of port.
fn crossings(spans: &[Span], received: bool) -> BTreeMap<(u64, u64, String), usize> {
    let mut all = BTreeMap::new();
    for span in spans.iter().filter(|span| span.received == received) {
        let (from, to) = span.edge();
        *all.entry((from, to, span.item.to_string())).or_default() += 1;
    }
    all
}

/// Checks that the spans of a PE's port do not overlap, and that each item sent at one end of an
/// edge arrives at the other, not before.
fn assert_consistent(spans: &[Span], pes: u64) {
    for pe in 0..pes {
        for received in [false, true] {
            let own = |span: &&Span| (span.pe, span.received) == (pe, received);
            let mut own: Vec<&Span> = spans.iter().filter(own).collect();
            own.sort_by_key(|span| (span.begin_ns, span.end_ns));
            for span in &own {
                assert!(span.begin_ns <= span.end_ns, "{span:?}");
            }
            for pair in own.windows(2) {
                assert!(pair[0].end_ns <= pair[1].begin_ns, "{pair:?}");
            }
        }
    }
    assert_eq!(crossings(spans, false), crossings(spans, true));
    for sent in spans.iter().filter(|span| !span.received) {
        let same =
            |span: &&Span| span.received && (span.edge(), &span.item) == (sent.edge(), &sent.item);
        let received = spans.iter().filter(same).map(|span| span.end_ns).max();
        assert!(received.expect("it arrived") >= sent.begin_ns, "{sent:?}");
    }
}

/// Returns the edges that M_i crosses, from its source on.
fn way(parents: &[Value], i: u64, up: bool) -> Vec<(u64, u64)> {
    let mut way = Vec::new();
    let mut at = i;
    while let Some(parent) = parents[at as usize].as_u64() {
        way.push(if up { (at, parent) } else { (parent, at) });
        at = parent;
    }
    way
}

#[test]
fn a_gather_is_recorded_item_by_item() {
    let dir = scratch();
    let line = "gather --tree kary:2:7 --lengths 300KiB,0,1,64KiB,7,200KiB";
    let report = drawn(&dir, line);
    let data = data(&page(&dir));
    let mut fields: Vec<&String> = data.as_object().expect("an object").keys().collect();
    fields.sort();
    let expected = "command fit flitcast is_over_tree measured message_columns messages names nothing \
                    palette predicted rounds_us rows run shown span_columns title";
    assert_eq!(fields, expected.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (&data["is_over_tree"], &data["names"][6]),
        (&json!(true), &json!("P6"))
    );
    assert_eq!(data["palette"].as_array().map(Vec::len), Some(10));
    let columns = ["id", "source", "destination", "bytes"];
    assert_eq!(data["message_columns"], json!(columns));
    let messages = (1..)
        .zip(report.message_bytes())
        .filter(|(_, bytes)| *bytes > 0);
    let messages = messages.map(|(i, bytes)| json!([i, i, 0, bytes]));
    assert_eq!(data["messages"], messages.collect::<Value>());
    // The page does not contain earlier runs: it shows the last.
    for (key, value) in data["run"].as_object().expect("an object") {
        assert_eq!(value, report.value(&format!("/{key}")), "{key}");
    }
    assert_eq!(data["rows"], json!([0, 1, 3, 4, 2, 5, 6]));
    assert_eq!(data["shown"]["round"], 1);
    let median = report.value("/round/measured_us/median");
    assert_eq!(data["shown"]["round_us"], *median);
    assert_eq!(data["rounds_us"], json!([median]));
    // Both directions of each measured edge, with the points of the fit.
    let fits = data["fit"].as_array().expect("a list");
    let edges = report.list("/edges").iter();
    let measured = edges.filter(|edge| edge["rate_of"].is_null()).count();
    assert!(measured > 0);
    assert_eq!(fits.len(), 2 * measured);
    for fit in fits {
        let points = fit["points"].as_array().expect("a list");
        assert!(points.iter().any(|point| point["used"] == true), "{fit}");
        let numbers = ["edge", "latency_ns", "ns_per_byte", "burst_bytes"];
        assert!(numbers.iter().all(|field| fit[field].is_number()), "{fit}");
    }
    let command = data["command"].as_str().expect("a text");
    let begin = "flitcast gather --tree kary:2:7 --lengths 300KiB,";
    assert!(command.starts_with(begin), "{command}");

    let spans = spans(&data, "measured");
    assert_consistent(&spans, 7);
    let parents = report.list("/parents");
    for (i, bytes) in (1..).zip(report.message_bytes()) {
        let of_message = |span: &&Span| !span.received && span.message() == Some(i);
        let mut crossed: Vec<_> = spans.iter().filter(of_message).map(Span::edge).collect();
        crossed.sort_unstable_by(|a, b| b.cmp(a));
        let mut at_p0 = spans.iter().filter(|span| span.pe == 0 && span.received);
        let at_p0 = at_p0.find(|span| span.message() == Some(i));
        if bytes == 0 {
            assert!(crossed.is_empty() && at_p0.is_none(), "M{i}");
            continue;
        }
        assert_eq!(crossed, way(parents, i, true), "M{i}");
        // Its last byte was taken while P0's port was busy with it.
        let span = at_p0.expect("it arrived");
        let arrived_us = report.float(&format!("/pes/{i}/measured_us/median"));
        let arrived_ns = (arrived_us * 1000.0).round() as i64;
        let range = span.begin_ns..=span.end_ns;
        assert!(range.contains(&arrived_ns), "{span:?}, {arrived_ns}");
    }
    // Pipelined certification: a token and a certificate on every edge, an order and a receipt if
    // there is something to send.
    let is = |span: &&Span, item: &str| !span.received && span.item == item;
    let sent = |item: &str| spans.iter().filter(|span| is(span, item)).count();
    assert_eq!((sent("token"), sent("certificate")), (6, 6));
    assert_eq!(sent("wakeup call"), 0);
    assert!(sent("order") >= 5);
}

#[test]
fn a_page_is_complete_and_its_data_is_escaped() {
    let dir = scratch();
    dir.report("gather --tree path:3 --size 1KiB --report @/out.html --trace @/<b>.json");
    let page = page(&dir);
    let command = data(&page)["command"].to_string();
    assert!(command.contains("/<b>.json"), "{command}");
    assert!(!page.contains("<b>.json"));
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("{{"), "a mark is left");
    let scripts = page.matches("<script").count();
    assert_eq!(page.matches("</script>").count(), scripts);
    // A namespace is a name, not an address to load.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "url(", "src=", "@import", "fetch("] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn the_round_that_is_shown_is_the_median_one() {
    let dir = scratch();
    let report = drawn(&dir, "scatter --tree path:3 --size 100KiB --rounds 5");
    let data = data(&page(&dir));
    let rounds = data["rounds_us"].as_array().expect("a list");
    assert_eq!(rounds.len(), 5);
    let shown = data["shown"]["round"].as_u64().expect("a number") as usize;
    let median = report.value("/round/measured_us/median");
    assert_eq!(&rounds[shown - 1], median);
    assert_eq!(rounds[shown - 1], data["shown"]["round_us"]);
    let mut sorted: Vec<f64> = rounds.iter().filter_map(Value::as_f64).collect();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted[0], report.float("/round/measured_us/min"));
    assert_eq!(sorted[4], report.float("/round/measured_us/max"));
    let spans = spans(&data, "measured");
    assert_consistent(&spans, 3);
    let messages = spans.iter().filter(|span| span.message().is_some()).count();
    assert_eq!(messages, 2 * 3, "three crossings, seen from both ends");
}

#[test]
fn every_algorithm_is_recorded() {
    for command in [
        "gather --tree path:4 --algorithm shoulder-tap",
        "gather --tree star:4 --sync serial",
        "gather --network complete:6 --algorithm linear",
        "gather --network complete:6 --algorithm binomial",
        "scatter --network complete:6 --algorithm binomial",
    ] {
        let dir = scratch();
        let report = drawn(&dir, &format!("{command} --size 70KiB"));
        let data = data(&page(&dir));
        let spans = spans(&data, "measured");
        let parents = report.list("/parents");
        assert_consistent(&spans, parents.len() as u64);
        let up = command.starts_with("gather");
        let sent = |span: &&Span| !span.received && span.message().is_some();
        let crossed = spans.iter().filter(sent).count();
        let all = (1..parents.len() as u64).map(|i| way(parents, i, up).len());
        assert_eq!(crossed, all.sum::<usize>(), "{command}");
    }
}

#[test]
fn a_round_of_nothing_is_a_picture_too() {
    for tree in ["path:1", "star:3"] {
        let dir = scratch();
        let report = drawn(&dir, &format!("gather --tree {tree} --size 0"));
        assert!(report.value("/round/measured_us").is_null());
        let data = data(&page(&dir));
        assert_eq!(data["rounds_us"], json!([]));
        let spans = spans(&data, "measured");
        assert!(spans.iter().all(|span| span.message().is_none()));
    }
}
