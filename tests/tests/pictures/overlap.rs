//! Pages and plans of all operations in a browser: no text covers another, at 8, 32 and 64 PEs, narrow
//! and wide, in light and dark.

use flitcast_tests::{Folder, printed, rows, scratch};
use serde_json::{Value, json};

use super::browser::{chromium, of_body};

const TEXTS: &str = include_str!("texts.js");
const SIZES: [u32; 3] = [8, 32, 64];

/// A real command and a plan of each operation, without the number of PEs.
const OPERATIONS: &str = "
    scatter --tree kary:2:N --size 16KiB | scatter --tree kary:2:N --lengths equal:2
    gather --cluster @/N.toml --lengths ramp:64KiB | gather --tree star:N --lengths equal:2
    broadcast --network complete:N --size 256KiB | broadcast --network complete:N --size 8
    gossip --network complete:N --size 4KiB | gossip --network complete:N --lengths equal:1
    exchange --network complete:N --lengths equal:1KiB | exchange --network complete:N --lengths each:1
";

/// Returns a cluster file of PEs with names, in a star.
fn named(pes: u32) -> String {
    let entry = |pe| {
        let parent = if pe > 0 { "parent = 'node00'\n" } else { "" };
        format!("[[pe]]\nname = 'node{pe:02}'\naddress = '127.0.0.1'\n{parent}")
    };
    (0..pes).map(entry).collect()
}

fn of_size(line: &str, pes: u32) -> String {
    line.replace('N', &pes.to_string())
}

/// Returns what a script stores in an attribute of the body.
fn script_result(dir: &Folder, html: &str, what: &str) -> Value {
    dir.put("all.html", html);
    let dom = chromium(&dir.join("all.html"), "", (1500, 1200), what);
    let text = of_body(&dom, "data-results").replace("&quot;", "\"");
    let text = text.replace("&gt;", ">").replace("&lt;", "<");
    serde_json::from_str(&text.replace("&amp;", "&")).expect("it is JSON")
}

#[test]
#[ignore = "needs chromium"]
fn no_text_of_a_page_covers_another() {
    let dir = scratch();
    let mut pages = Vec::new();
    for pes in SIZES {
        dir.put(&format!("{pes}.toml"), named(pes));
        for [line, _] in rows(OPERATIONS) {
            let line = of_size(line, pes);
            dir.run(&format!("{line} -q --report @/out.html")).ok();
            let head = format!("<head><script>{TEXTS}</script>");
            let page = dir.read("out.html").replacen("<head>", &head, 1);
            pages.push(json!([line, page]));
        }
    }
    // All in one browser: it takes a second to start.
    let pages = Value::from(pages).to_string().replace('<', "\\u003c");
    let html = format!(
        "<!doctype html><meta charset='utf-8'><body><script>
        const results = [];
        let left = 0;
        for (const width of [400, 1400]) for (const [name, page] of {pages}) {{
            left += 1;
            const frame = document.createElement('iframe');
            frame.style = `width:${{width}}px;height:1200px`;
            frame.srcdoc = page;
            // The page is drawn again in the frame after the one that gives it its size.
            const drawn = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
            frame.onload = () => drawn(() => {{
                const page = frame.contentWindow;
                const inner = page.document;
                const {{ state }} = inner.body.dataset;
                const {{ theme }} = inner.documentElement.dataset;
                const named = page.textsOfCanvas().some((text) => /node0/.test(text));
                results.push([`${{name}} ${{width}}`, page.textCount(), state, theme, named, page.textFaults()]);
                left -= 1;
                if (left === 0) document.body.dataset.results = JSON.stringify(results);
            }});
            document.body.append(frame);
        }}
        </script></body>"
    );
    for (dark, theme) in [(1, "light"), (0, "dark")] {
        let what = format!("--dump-dom --blink-settings=preferredColorScheme={dark}");
        let results = script_result(&dir, &html, &what);
        let results = results.as_array().expect("a list");
        assert_eq!(results.len(), 2 * 5 * SIZES.len());
        for page in results {
            let line = page[0].as_str().expect("a text");
            let has_names = line.contains("--cluster");
            let expected = json!(["drawn", theme, has_names, []]);
            assert_eq!(
                page.as_array().expect("a list")[2..],
                *expected.as_array().expect("a list"),
                "{line}"
            );
            assert!(page[1].as_u64() > Some(20), "{page}");
        }
    }
}

#[test]
#[ignore = "needs chromium"]
fn no_text_of_a_plan_covers_another_and_plans_are_dark_where_that_is_preferred() {
    let dir = scratch();
    let mut pictures = String::new();
    for [_, line] in rows(OPERATIONS) {
        for pes in SIZES {
            let line = format!("plan {} --format svg", of_size(line, pes));
            pictures.push_str(&printed(&line));
        }
    }
    pictures.push_str(&printed("tree --tree kary:2:32 --format svg"));
    let html = format!(
        "<!doctype html><meta charset='utf-8'><body><script>{TEXTS}</script>{pictures}<script>
        const sheets = [...document.querySelectorAll('svg > rect')].map((one) => getComputedStyle(one).fill);
        document.body.dataset.results = JSON.stringify([textFaults(), textCount(), sheets]);
        </script></body>"
    );
    let all = 5 * SIZES.len() + 1;
    for (dark, sheet) in [(1, "rgb(255, 255, 255)"), (0, "rgb(20, 23, 27)")] {
        let what = format!("--dump-dom --blink-settings=preferredColorScheme={dark}");
        let results = script_result(&dir, &html, &what);
        assert_eq!(results[0], json!([]));
        assert!(results[1].as_u64() > Some(1000), "{results}");
        let sheets = results[2].as_array().expect("a list");
        assert_eq!(sheets.len(), all);
        assert!(
            sheets[..all - 1].iter().all(|one| one == sheet),
            "{sheets:?}"
        );
    }
}
