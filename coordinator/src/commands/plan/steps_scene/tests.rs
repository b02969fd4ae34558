use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::plan;
use flitcast_proto::Tree;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::tree::TreeSpec;
use roxmltree::{Document, Node};

use super::super::svg::canvas::{Num, text_width};
use super::super::svg::control::mark;
use super::super::svg::frame;
use super::super::svg::layout::Layout;
use super::*;

const SERIAL: Algorithm = Algorithm::CERTIFICATION_SERIAL;
const PIPELINED: Algorithm = Algorithm::CERTIFICATION_PIPELINED;
const PARALLEL: Algorithm = Algorithm::CERTIFICATION_PARALLEL;

fn svg(plan: &Plan, title: &str) -> String {
    scene(plan, title.to_owned()).svg()
}

fn drawn(tree: &str, operation: Algorithm, flits: &[u64]) -> Plan {
    let tree = tree.parse::<TreeSpec>().unwrap().build().unwrap();
    plan(&Arc::new(tree), operation, flits)
}

fn spread(pes: usize, most: u64) -> Vec<u64> {
    let mut rng = SplitMix64::new(7);
    let mut flits: Vec<u64> = (0..pes).map(|_| rng.below(most + 1)).collect();
    flits[0] = 0;
    flits
}

fn but_p0(pes: usize, flits: u64) -> Vec<u64> {
    let mut all = vec![flits; pes];
    all[0] = 0;
    all
}

/// Returns a spine of 500 PEs, each with none, one or two teeth: deep, with paths that bend at every
/// hop.
fn comb() -> Plan {
    let mut rng = SplitMix64::new(3);
    let (mut parents, mut spine) = (vec![None], PeId(0));
    while parents.len() < 998 {
        for _ in 0..rng.below(3) {
            parents.push(Some(spine));
        }
        parents.push(Some(spine));
        spine = PeId(parents.len() as u32 - 1);
    }
    let flits = spread(parents.len(), 8);
    let tree = Tree::from_parents(parents).unwrap();
    plan(&Arc::new(tree), PIPELINED, &flits)
}

/// Returns the papers' figures, and other cases that were inspected.
fn cases() -> Vec<(&'static str, Plan)> {
    let figure = [0, 2, 3, 0, 2, 1];
    let scatter = Algorithm::FARTHEST_FIRST;
    vec![
        ("fig1a", drawn("path:6", scatter, &[0, 0, 0, 0, 4, 3])),
        ("fig2", drawn("path:6", Algorithm::SHOULDER_TAP, &figure)),
        (
            "fig3",
            drawn("path:6", Algorithm::SHOULDER_TAP, &[0, 9, 0, 1, 0, 1]),
        ),
        ("fig4", drawn("path:6", SERIAL, &figure)),
        ("kary15", drawn("kary:2:15", PIPELINED, &but_p0(15, 4))),
        ("star8", drawn("star:8", SERIAL, &but_p0(8, 3))),
        ("scatter31", drawn("kary:2:31", scatter, &but_p0(31, 3))),
        ("random60", drawn("random:60:1", PIPELINED, &spread(60, 8))),
        ("serial60", drawn("random:60:1", SERIAL, &spread(60, 8))),
        ("path60", drawn("path:60", SERIAL, &spread(60, 4))),
        ("star130", drawn("star:130", PARALLEL, &spread(130, 4))),
        ("one", drawn("path:1", PIPELINED, &[0])),
        ("nothing", drawn("path:3", SERIAL, &[0, 0, 0])),
        ("long", drawn("path:3", PIPELINED, &[0, 1 << 60, 3])),
    ]
}

fn large_cases() -> Vec<(&'static str, Plan)> {
    let flits = spread(1000, 8);
    vec![
        ("random1000", drawn("random:1000:1", PIPELINED, &flits)),
        ("path1000", drawn("path:1000", SERIAL, &flits)),
        ("star1000", drawn("star:1000", PIPELINED, &flits)),
        (
            "scatter1000",
            drawn("kary:2:1000", Algorithm::FARTHEST_FIRST, &flits),
        ),
        ("comb", comb()),
    ]
}

pub fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    let value = node.attribute(name).unwrap();
    value
        .parse()
        .unwrap_or_else(|_| panic!("{name}=\"{value}\""))
}

/// Returns an estimate of left, top, right and bottom of a text.
fn text_box(node: &Node<'_, '_>) -> [f64; 4] {
    let sized = node.ancestors().find(|n| n.has_attribute("font-size"));
    let size = number(&sized.unwrap(), "font-size");
    // The estimate is generous.
    let width = 0.9 * text_width(node.text().unwrap(), size);
    let left = number(node, "x")
        - match node.attribute("text-anchor").unwrap() {
            "start" => 0.0,
            "middle" => width / 2.0,
            _ => width,
        };
    let bottom = number(node, "y");
    [left, bottom - 0.7 * size, left + width, bottom]
}

#[test]
fn all_that_is_planned_is_drawn_and_no_text_is_cut_off_or_on_another() {
    for (name, plan) in cases().into_iter().chain(large_cases()) {
        let text = svg(&plan, name);
        check_texts(name, &text);
        let document = Document::parse(&text).unwrap();
        // A thousand PEs fit on a sheet and in two megabytes.
        assert!(text.len() < 2_000_000, "{name}: {} bytes", text.len());
        let sheet = document.root_element();
        assert!(number(&sheet, "width") <= 2300.0, "{name}");
        assert!(number(&sheet, "height") <= 1900.0, "{name}");
        let of_class = |class: &str| -> Vec<Node<'_, '_>> {
            let all = document.descendants();
            all.filter(|node| node.attribute("class") == Some(class))
                .collect()
        };
        assert_eq!(of_class("band").len(), plan.messages.len(), "{name}");
        for (kind, ..) in frame::MARKS {
            let items = plan.control.iter().filter(|i| mark(i.item) == Some(kind));
            let marks = of_class(kind);
            let marks = marks.iter().flat_map(|group| group.children());
            let marks = marks.filter(|node| node.has_tag_name("use"));
            assert_eq!(marks.count(), items.count(), "{name}: {kind}");
        }
        for node in document.descendants().filter(|n| n.has_tag_name("use")) {
            let id = node.attribute("href").unwrap().strip_prefix('#');
            let defined = document.descendants().any(|n| n.attribute("id") == id);
            assert!(defined, "{name}: {id:?}");
        }
    }
}

#[test]
fn a_band_is_in_the_columns_of_the_papers_table() {
    let plan = drawn("path:6", SERIAL, &[0, 2, 3, 0, 2, 1]);
    let layout = Layout::new(&scene(&plan, String::new()).sheet, frame::HEAD, false);
    let text = svg(&plan, "figure 4");
    // m5,1 is in P5's column in row 16 and in P0's in row 21.
    let (first, last) = (layout.x(16.0), layout.x(21.0));
    let (from, to) = (layout.y(PeId(5)), layout.y(PeId(0)));
    let (first_end, last_end) = (first + layout.step_width, last + layout.step_width);
    let [a, b, c, d, y0, y1] = [first, last, last_end, first_end, from, to].map(Num);
    let band = format!("d=\"M{a},{y0}L{b},{y1}L{c},{y1}L{d},{y0}Z\"");
    assert!(text.contains(&band), "{band}");
}

/// Checks that nothing is cut off, and that no text covers another.
#[track_caller]
pub fn check_texts(name: &str, text: &str) {
    for bad in ["NaN", "inf"] {
        assert!(!text.contains(bad), "{name}");
    }
    let document = Document::parse(text).unwrap();
    let sheet = document.root_element();
    let (width, height) = (number(&sheet, "width"), number(&sheet, "height"));
    let texts = document.descendants().filter(|n| n.has_tag_name("text"));
    let boxes: Vec<_> = texts.map(|n| (n.text().unwrap(), text_box(&n))).collect();
    for (index, &(text, [left, top, right, bottom])) in boxes.iter().enumerate() {
        let inside = left >= 0.0 && top >= 0.0 && right <= width && bottom <= height;
        assert!(inside, "{name}: {text}");
        for &(other, [l, t, r, b]) in &boxes[..index] {
            let apart = right <= l || r <= left || bottom <= t || b <= top;
            assert!(apart, "{name}: {text} is on {other}");
        }
    }
}

#[test]
fn a_title_is_text_and_fits() {
    let plan = drawn("path:2", SERIAL, &[0, 1]);
    for title in ["<b>\"a\" & 'b'</b>", "]]>", "\u{1}\n\u{ffff}x", ""] {
        let text = svg(&plan, title);
        assert!(Document::parse(&text).is_ok(), "{text}");
    }
    let long = "a long title ".repeat(40);
    let text = svg(&plan, &long);
    let document = Document::parse(&text).unwrap();
    let whole = document.descendants().find(|n| n.has_tag_name("title"));
    assert_eq!(whole.unwrap().text(), Some(&*long));
    let mut texts = document.descendants().filter(|n| n.has_tag_name("text"));
    let shown = texts.find(|n| n.text().is_some_and(|t| t.starts_with("a long")));
    assert!(text_box(&shown.unwrap())[2] < number(&document.root_element(), "width"));
}
