//! The page in a browser, opened from disk: its script runs to the end, it draws a bar for each
//! span, and it is visible in light and dark mode, wide and narrow.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use flitcast_tests::scratch;
use serde_json::{Value, json};

use super::data::{data, spans, with_data};
use super::{drawn, page};
use crate::plan::NAMED;

/// Time limit of a page.
const LIMIT_SECONDS: &str = "120";

/// Returns the browser's output for a page: its document after the script, or a picture of it. `what`
/// are options.
#[track_caller]
pub fn chromium(page: &Path, fragment: &str, size: (u32, u32), what: &str) -> String {
    let profile = scratch();
    let run = Command::new("timeout")
        .args(["--kill-after=5", LIMIT_SECONDS, "chromium"])
        .args("--headless=new --no-sandbox --disable-gpu --no-first-run".split(' '))
        .args(["--hide-scrollbars", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--window-size={},{}", size.0, size.1))
        .args(what.split(' '))
        .arg(format!("file://{}{fragment}", page.display()))
        .stdin(Stdio::null())
        .output()
        .expect("timeout is among the coreutils");
    let stderr = String::from_utf8_lossy(&run.stderr);
    match run.status.code() {
        Some(0) => String::from_utf8_lossy(&run.stdout).into_owned(),
        Some(127) => panic!(
            "chromium is not there, and the report's page is tested in it: \
             `apt-get install chromium`, or what else puts `chromium` on the PATH"
        ),
        code => panic!("chromium ended with {code:?}:\n{stderr}"),
    }
}

/// Returns an attribute of the document's body.
#[track_caller]
pub fn of_body(dom: &str, name: &str) -> String {
    let (_, body) = dom.split_once("<body ").expect("a document has a body");
    let (body, _) = body.split_once('>').expect("its tag ends");
    let mark = format!("{name}=\"");
    let value = body.split_once(&mark);
    let (_, value) = value.unwrap_or_else(|| panic!("no {name} in {body}"));
    value.split_once('"').expect("it ends").0.to_owned()
}

/// Checks that the script ran to its end and drew all spans of the data.
fn assert_drawn(dir: &Path, data: &Value) {
    for size in [(1400, 1600), (420, 1600)] {
        let dom = chromium(&dir.join("out.html"), "", size, "--dump-dom");
        assert_eq!(of_body(&dom, "data-state"), "drawn", "{size:?}");
        for run in ["measured", "predicted"] {
            let bars = of_body(&dom, &format!("data-{run}-bars"));
            assert_eq!(bars, spans(data, run).len().to_string(), "{run}, {size:?}");
        }
        let title = data["title"].as_str().expect("a text");
        let of = |key: &str| data["run"][key].as_str().expect("a text");
        assert!(title.starts_with(&format!("{} on {} by ", of("operation"), of("tree"))));
        for whole in [
            format!("<title>{title} –"),
            format!("<h1 id=\"title\">{title}</h1>"),
        ] {
            assert!(dom.contains(&whole), "{whole}");
        }
    }
}

/// Returns the pixels of a page's picture, three bytes each.
#[track_caller]
fn pixels(dir: &Path, fragment: &str, size: (u32, u32)) -> Vec<[u8; 3]> {
    let path = dir.join("shot.png");
    let what = format!("--screenshot={}", path.display());
    chromium(&dir.join("out.html"), fragment, size, &what);
    let file = std::io::BufReader::new(fs::File::open(&path).expect("a picture was taken"));
    let mut reader = png::Decoder::new(file).read_info().expect("it is a PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("it is small")];
    let frame = reader.next_frame(&mut bytes).expect("it is whole");
    assert_eq!((frame.width, frame.height), size);
    let samples = frame.color_type.samples();
    let pixels = bytes[..frame.buffer_size()].chunks_exact(samples);
    pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()
}

fn brightness(pixel: [u8; 3]) -> u32 {
    pixel.iter().map(|&c| u32::from(c)).sum::<u32>() / 3
}

/// Text and lines are grey; bars, marks and charts have colours.
fn is_coloured(pixel: &[u8; 3]) -> bool {
    let [one, two, three] = *pixel;
    one.max(two).max(three) - one.min(two).min(three) > 60
}

/// Checks that something is visible on a ground of the requested brightness.
#[track_caller]
fn assert_seen(pixels: &[[u8; 3]], ground: std::ops::Range<u32>) {
    let corner = pixels[0];
    assert!(ground.contains(&brightness(corner)), "{corner:?}");
    let coloured = pixels.iter().filter(|pixel| is_coloured(pixel)).count();
    assert!(coloured > 2000, "{coloured} pixels have a colour");
    let apart = |pixel: &&[u8; 3]| brightness(**pixel).abs_diff(brightness(corner)) > 120;
    let written = pixels.iter().filter(apart).count();
    assert!(written > 2000, "{written} pixels stand out");
}

/// Returns the data with invented predictions for all spans and fits for all edges.
fn embellished(mut data: Value) -> Value {
    let mut predicted = data["measured"].clone();
    for list in predicted.as_array_mut().expect("a list for each PE") {
        for span in list.as_array_mut().expect("a list") {
            for column in [3, 4] {
                let ns = span[column].as_i64().expect("a time");
                span[column] = json!(ns * 9 / 10);
            }
        }
    }
    data["predicted"] = predicted;
    let round_us = data["shown"]["round_us"].as_f64().unwrap_or(0.0);
    data["run"]["round"]["predicted_us"] = json!(round_us * 0.9);
    let edges = data["run"]["edges"].as_array().expect("a list").clone();
    let fit = edges.iter().map(|edge| {
        let point = |bytes: u64, used: bool| json!({ "bytes": bytes, "ns": 9000.0 + 2.0 * bytes as f64, "used": used });
        json!({
            "edge": edge["child"],
            "direction": "up",
            "points": [point(0, true), point(4096, true), point(50_000, false), point(65_536, true)],
            "latency_ns": 9000.0,
            "ns_per_byte": 2.0,
            "burst_bytes": 0.0,
        })
    });
    data["fit"] = fit.collect();
    data
}

#[test]
#[ignore = "needs chromium"]
fn the_page_draws_itself_in_light_and_dark() {
    let dir = scratch();
    let line = "gather --tree kary:2:15 --lengths ramp:256KiB --rounds 3";
    drawn(&dir, line);
    assert_drawn(&dir, &data(&page(&dir)));
    let size = (1200, 1500);
    assert_seen(&pixels(dir.path(), "#light", size), 200..256);
    assert_seen(&pixels(dir.path(), "#dark", size), 0..60);
    assert_seen(&pixels(dir.path(), "#dark", (600, 2000)), 0..60);
}

#[test]
#[ignore = "needs chromium"]
fn predictions_and_fits_are_drawn_with_it() {
    let dir = scratch();
    drawn(&dir, "scatter --tree path:3 --size 100KiB");
    let html = page(&dir);
    let data = embellished(data(&html));
    dir.put("out.html", with_data(&html, &data));
    assert!(!spans(&data, "predicted").is_empty());
    assert_drawn(&dir, &data);
    let dom = chromium(&dir.join("out.html"), "", (900, 900), "--dump-dom");
    assert_eq!(of_body(&dom, "data-fits"), "2");
}

#[test]
#[ignore = "needs chromium"]
fn a_hand_can_zoom_move_ask_and_choose() {
    let dir = scratch();
    drawn(&dir, "gather --tree path:3 --size 1MiB");
    let html = page(&dir);
    let data = embellished(data(&html));
    let hand = format!("<script>{}</script></body>", include_str!("hand.js"));
    let html = with_data(&html, &data).replace("</body>", &hand);
    dir.put("out.html", html);
    let dom = chromium(&dir.join("out.html"), "", (1200, 900), "--dump-dom");
    assert_eq!(of_body(&dom, "data-state"), "drawn");
    let results = of_body(&dom, "data-hand").replace("&quot;", "\"");
    let results: Value = serde_json::from_str(&results).expect("it is JSON");
    for (what, expected) in [
        ("zoomed", json!(true)),
        ("moved", json!(true)),
        ("whole", json!(true)),
        ("kept", json!(true)),
        ("chosen", json!(2)),
        ("selected", json!("2")),
        ("rows", json!(["P2"])),
        ("all", Value::Null),
        ("theme", json!(true)),
        ("predicted", json!("0")),
    ] {
        assert_eq!(results[what], expected, "{what} in {results}");
    }
    let tooltip = results["tooltip"].as_str().expect("a text");
    let message = "M2: P1 sends to P0, 1\u{202f}MiB";
    for expected in [message, "measured", "predicted", "difference"] {
        assert!(tooltip.contains(expected), "no `{expected}` in {tooltip}");
    }
}

#[test]
#[ignore = "needs chromium"]
fn the_critical_path_is_drawn_with_what_was_late_on_it() {
    let dir = scratch();
    drawn(&dir, "scatter --tree path:3 --lengths 0,100KiB");
    let html = page(&dir);
    let data = embellished(data(&html));
    dir.put("out.html", with_data(&html, &data));
    let dom = chromium(&dir.join("out.html"), "", (900, 900), "--dump-dom");
    for expected in ["waited for: P0 → P1 → P2; ", " of latency. The round took "] {
        assert!(dom.contains(expected), "no `{expected}`");
    }
    assert_ne!(of_body(&dom, "data-delays"), "0");
}

/// A port that is free a latency after something was sent to it has delayed nothing.
#[test]
#[ignore = "needs chromium"]
fn the_critical_path_knows_the_latency_of_links() {
    let dir = scratch();
    drawn(&dir, "gather --tree star:3 --size 1KiB");
    let html = page(&dir);
    let script = "<script>
        const span = (pe, port, peer, item, begin, end) => ({ pe, port, peer, item, begin, end });
        const busy = span(0, 1, 1, 1, 0, 100);
        const causes = [40, 50, 149].map((begin) => {
            const sent = span(2, 0, 0, 2, begin, 190);
            const received = { ...span(0, 1, 2, 2, 150, 240), far: sent };
            return causeOf(received, [[busy, received], [], [sent]]) === sent;
        });
        document.body.dataset.causes = causes;
        </script></body>";
    for (latency_us, expected) in [(0.05, "false,true,true"), (0.0, "false,false,true")] {
        let mut data = data(&html);
        for edge in data["run"]["edges"].as_array_mut().expect("a list") {
            edge["up"]["latency_us"] = json!(latency_us);
        }
        dir.put(
            "out.html",
            with_data(&html, &data).replace("</body>", script),
        );
        let dom = chromium(&dir.join("out.html"), "", (900, 900), "--dump-dom");
        assert_eq!(of_body(&dom, "data-causes"), expected, "{latency_us}");
    }
}

#[test]
#[ignore = "needs chromium"]
fn a_page_has_the_names_of_pes_and_why_there_is_nothing_to_send() {
    let dir = scratch();
    dir.put("c.toml", NAMED);
    drawn(&dir, "gather --cluster @/c.toml --size 100KiB");
    let html = page(&dir);
    let dom = chromium(&dir.join("out.html"), "", (1400, 900), "--dump-dom");
    for expected in [
        "from P0 alpha's trigger",
        "P2 gamma",
        "<td>P1 beta</td>",
        " of latency.",
    ] {
        assert!(dom.contains(expected), "no `{expected}`");
    }
    let names = json!(["P0 alpha", "P1 beta", "P2 gamma"]);
    assert_eq!(data(&html)["names"], names);
    let trace = dir.read("out.json");
    for expected in [
        "-> P1 beta",
        "\"source\":\"P2 gamma\"",
        "\"peer\":\"P0 alpha\"",
    ] {
        assert!(trace.contains(expected), "no `{expected}`");
    }
    for pe in 1..3 {
        dir.put(&format!("in/p{pe}"), "text");
    }
    for why in ["", "Nothing to send: everything is there already."] {
        drawn(&dir, "scatter --tree path:3 --input @/in --output @/there");
        let dom = chromium(&dir.join("out.html"), "", (900, 900), "--dump-dom");
        assert!(dom.contains(why), "no `{why}`");
        assert!(!dom.contains("Nothing to send: every message"));
    }
}

/// Folded rows have the measured bars alone.
#[test]
#[ignore = "needs chromium"]
fn rows_of_many_pes_are_folded_until_somebody_unfolds_them() {
    let dir = scratch();
    drawn(&dir, "gossip --network complete:25 --size 1KiB");
    let html = page(&dir);
    let data = embellished(data(&html));
    let html = with_data(&html, &data);
    let unfold = "<script>diagram.scroller.dispatchEvent(new KeyboardEvent('keydown', { key: 'g' })); \
        drawDiagram();</script></body>";
    let shown = |html: &str| {
        dir.put("out.html", html);
        let dom = chromium(&dir.join("out.html"), "", (1200, 3000), "--dump-dom");
        ["measured", "predicted"].map(|run| of_body(&dom, &format!("data-{run}-bars")))
    };
    let all = |run| spans(&data, run).len().to_string();
    assert_eq!(shown(&html), [all("measured"), "0".to_owned()]);
    let unfolded = shown(&html.replace("</body>", unfold));
    assert_eq!(unfolded, [all("measured"), all("predicted")]);
}

/// Returns the bytes received by each PE according to the table.
fn bytes_in_the_table(dom: &str) -> Vec<String> {
    let (_, table) = dom.split_once("<table id=\"table\">").expect("a table");
    let (table, _) = table.split_once("</table>").expect("its end");
    let cells = |row: &str| {
        let cells = row.split("</td>");
        let text = |cell: &str| cell.rsplit('>').next().unwrap_or_default().to_owned();
        cells.map(text).collect::<Vec<_>>()
    };
    let rows = table.split("<tr").filter(|row| row.contains("<td"));
    let mut rows: Vec<Vec<String>> = rows.map(cells).collect();
    // Rows are in the order of the tree.
    rows.sort();
    rows.into_iter().map(|mut row| row.swap_remove(3)).collect()
}

#[test]
#[ignore = "needs chromium"]
fn the_page_of_each_operation_shows_what_concerns_each_pe() {
    let kib = |count: &str| format!("{count}\u{202f}KiB");
    let (one, three) = (kib("1"), kib("3"));
    let one_each = [one.clone(), one.clone(), "–".to_owned(), one];
    let all = [(); 4].map(|()| three.clone());
    for (command, expected) in [
        ("scatter --from P2 --size 1KiB", &one_each),
        ("gather --to P2 --size 1KiB", &one_each),
        ("broadcast --from P2 --size 1KiB", &one_each),
        ("gossip --size 1KiB", &all),
        ("exchange --lengths equal:1KiB", &all),
    ] {
        let dir = scratch();
        drawn(&dir, &format!("{command} --tree path:4"));
        let html = page(&dir);
        assert_drawn(&dir, &data(&html));
        let dom = chromium(&dir.join("out.html"), "", (1200, 900), "--dump-dom");
        assert_eq!(bytes_in_the_table(&dom), expected, "{command}");
    }
}

#[test]
#[ignore = "needs chromium"]
fn a_page_of_nothing_is_drawn_too() {
    let dir = scratch();
    drawn(&dir, "gather --tree path:1 --size 0");
    assert_drawn(&dir, &data(&page(&dir)));
}

/// The other tests rely on this.
#[test]
#[ignore = "needs chromium"]
fn a_page_that_cannot_be_drawn_shows_an_error() {
    let dir = scratch();
    drawn(&dir, "scatter --tree path:2 --size 1KiB");
    let html = page(&dir);
    let mut data = data(&html);
    data["measured"] = json!("none");
    dir.put("out.html", with_data(&html, &data));
    let dom = chromium(&dir.join("out.html"), "", (900, 900), "--dump-dom");
    assert_eq!(of_body(&dom, "data-state"), "failed");
    assert!(dom.contains("This page could not be drawn"));
}
