//! Pictures of plans of all operations, by their own rows and axes.

use std::collections::BTreeMap;

use clap::Parser;
use flitcast_proto::seeded::SplitMix64;
use roxmltree::{Document, Node};
use serde_json::Value;

use super::super::{PlanOperation, run};
use super::canvas::text_width;
use super::{Scene, frame};

#[derive(Parser)]
struct Typed {
    #[command(subcommand)]
    plan: PlanOperation,
}

fn printed(line: &str, format: &str) -> Result<String, String> {
    let words = format!("plan {line} --format {format}");
    let typed = Typed::try_parse_from(words.split_whitespace()).expect(line);
    let mut out = Vec::new();
    match run(&typed.plan, &mut out) {
        Ok(written) => written.expect("a Vec takes anything"),
        Err(faults) => return Err(faults.0[0].to_string()),
    }
    Ok(String::from_utf8(out).expect("it is text"))
}

#[track_caller]
fn drawn(line: &str) -> String {
    printed(line, "svg").expect(line)
}

fn planned(line: &str) -> Value {
    serde_json::from_str(&printed(line, "json").expect(line)).expect(line)
}

/// In messages that do not stop on their way: the papers' figures, and other cases that were inspected.
const ON_THEIR_WAY: [&str; 17] = [
    "scatter --tree path:6 --lengths 0,0,0,4,3",
    "gather --tree path:6 --lengths 2,3,0,2,1 --algorithm shoulder-tap",
    "gather --tree path:6 --lengths 9,0,1,0,1 --algorithm shoulder-tap",
    "gather --tree path:6 --lengths 2,3,0,2,1 --algorithm certification --token serial",
    "gather --tree kary:2:15 --lengths equal:4",
    "gather --tree star:8 --lengths equal:3 --token serial",
    "scatter --tree kary:2:31 --lengths equal:3",
    "gather --tree random:60:1 --lengths uniform:0..8:7",
    "gather --tree random:60:1 --lengths uniform:0..8:7 --token serial",
    "gather --tree path:60 --lengths uniform:0..4:7 --algorithm certification --token serial",
    "gather --tree star:130 --lengths uniform:0..4:7 --ports multi",
    "gather --tree path:3 --lengths 0,0 --algorithm certification --token serial",
    "gather --tree path:3 --lengths 1099511627770,3 --algorithm certification",
    "gather --tree random:1000:1 --lengths uniform:0..8:7",
    "gather --tree path:1000 --lengths uniform:0..8:7 --algorithm certification --token serial",
    "gather --tree star:1000 --lengths uniform:0..8:7",
    "scatter --tree kary:2:1000 --lengths uniform:0..8:7",
];

/// In flits that cross in steps.
const IN_STEPS: [&str; 23] = [
    "broadcast --tree path:8 --size 6",
    "broadcast --tree star:6 --size 3 --algorithm child-by-child",
    "broadcast --tree kary:2:15 --size 5 --from P14 --ports multi",
    "broadcast --tree random:20:3 --size 8 --algorithm urgent",
    "broadcast --network complete:32 --size 20",
    "broadcast --network complete:8 --size 20 --algorithm path --from 3",
    "broadcast --network complete:8 --size 20 --algorithm kary:3",
    "broadcast --network hypercube:4 --size 6 --algorithm hypercube",
    "broadcast --network torus:4x4 --cover --size 12",
    "scatter --network torus:4x4 --cover --lengths equal:4",
    "scatter --tree kary:2:15 --lengths equal:2 --from P14",
    "scatter --tree star:32 --lengths equal:2 --ports multi",
    "gather --network hypercube:3 --cover --lengths equal:4",
    "exchange --tree kary:2:7 --lengths each:1",
    "exchange --tree path:6 --lengths each:2 --ports multi",
    "exchange --network complete:8 --lengths each:1 --algorithm rounds",
    "exchange --network complete:6 --lengths each:3 --algorithm shifts",
    "exchange --network complete:32 --lengths each:1",
    "exchange --network complete:64 --lengths each:1",
    "gossip --tree kary:2:15 --lengths equal:1",
    "gossip --tree star:32 --lengths equal:1",
    "gossip --tree kary:2:7 --lengths 1,2,0,1,2,3,1 --ports multi",
    "gossip --tree kary:2:7 --lengths equal:1 --ports multi --algorithm ring-emulation",
];

/// In packets, and in steps that take some time.
const IN_TIME: [&str; 11] = [
    "scatter --tree parents:0,1,2,0,4,5,6 --lengths 0,0,3,0,0,0,1 --setup 3/2",
    "scatter --tree path:6 --lengths 0,0,0,0,24 --setup 2",
    "scatter --tree star:32 --lengths equal:700 --setup 1/1000",
    "gather --tree kary:2:7 --lengths equal:5 --setup 2",
    "gather --tree path:6 --lengths 2,3,0,2,1 --setup 2 --algorithm certification",
    "gossip --network ring:27 --lengths equal:1 --ts 10",
    "gossip --network ring:32 --lengths equal:3 --algorithm halves --ts 0",
    "gossip --network torus:4x4 --lengths uniform:0..9:7 --ts 20 --td 1/2",
    "gossip --network mesh:2x3x4 --lengths equal:2 --ts 1/1000 --tl 1/1000",
    "gossip --network complete:8 --lengths equal:1 --ts 3",
    "gossip --network complete:32 --lengths equal:1 --algorithm direct",
];

const NOTHING: [&str; 5] = [
    "broadcast --tree path:1 --size 1099511627776",
    "broadcast --tree path:3 --size 0",
    "exchange --tree path:3 --lengths each:0",
    "gossip --tree path:4 --lengths equal:0",
    "gossip --network ring:5 --lengths equal:0",
];

/// Returns a spine of 500 PEs, each with none, one or two teeth: deep, with paths that bend at every
/// hop.
fn comb() -> String {
    let mut rng = SplitMix64::new(3);
    let (mut parents, mut spine) = (Vec::new(), 0);
    while parents.len() < 997 {
        parents.extend(std::iter::repeat_n(spine, rng.below(3) as usize + 1));
        spine = parents.len();
    }
    let parents: Vec<String> = parents.iter().map(usize::to_string).collect();
    let parents = parents.join(",");
    format!("gather --tree parents:{parents} --lengths uniform:0..8:7")
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    let value = node.attribute(name).unwrap();
    let number = value.parse();
    number.unwrap_or_else(|_| panic!("{name}=\"{value}\""))
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

/// Checks that nothing is cut off, and that no text covers another.
#[track_caller]
fn check_texts(name: &str, text: &str) {
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
fn nothing_is_cut_off_and_no_text_is_on_another() {
    for line in IN_STEPS.into_iter().chain(IN_TIME).chain(NOTHING) {
        let (svg, again) = (drawn(line), drawn(line));
        check_texts(line, &svg);
        assert_eq!(svg, again, "{line}: the same plan gives the same bytes");
    }
}

/// The content of a picture, by its own rows and axis.
struct Shown {
    /// Bars: row, begin and end.
    bars: Vec<(u64, [f64; 2])>,
    /// Distance of two steps or times.
    unit: f64,
}

impl Shown {
    fn of(svg: &str) -> Shown {
        let document = Document::parse(svg).expect("it is XML");
        let texts = document.descendants().filter(|n| n.has_tag_name("text"));
        let texts = texts.map(|n| {
            let (text, anchor) = (n.text().unwrap(), n.attribute("text-anchor").unwrap());
            (text, anchor, number(&n, "x"), number(&n, "y"))
        });
        let texts: Vec<_> = texts.collect();
        let rows = texts.iter().filter(|(_, anchor, ..)| *anchor == "end");
        let rows: Vec<(u64, f64)> = rows
            .filter_map(|(text, _, _, y)| Some((text.strip_prefix('P')?.parse().ok()?, *y)))
            .collect();
        let mut all = texts.iter();
        let axis = all.find(|t| t.0 == "step" || t.0 == "time");
        let (_, _, _, axis_y) = axis.unwrap();
        let ticks = texts.iter().filter(|t| t.1 == "middle" && t.3 == *axis_y);
        let ticks: Vec<(f64, f64)> = ticks.map(|t| (t.0.parse().unwrap(), t.2)).collect();
        let [(zero, zero_x), .., (last, last_x)] = ticks[..] else {
            panic!("no axis");
        };
        assert_eq!(zero, 0.0);
        let unit = (last_x - zero_x) / last;
        let mut bars = Vec::new();
        let paths = document.descendants().filter(|n| n.has_tag_name("path"));
        let bar_paths = paths
            .filter(|n| n.attribute("stroke").is_some() && n.attribute("d").unwrap().contains('h'));
        for path in bar_paths.filter(|n| n.parent().unwrap().attribute("transform").is_none()) {
            for bar in path.attribute("d").unwrap().split('M').skip(1) {
                let (x, rest) = bar.split_once(',').unwrap();
                let (y, width) = rest.split_once('h').unwrap();
                let [x, y, width] = [x, y, width].map(|n| n.parse::<f64>().unwrap());
                let near = |row: &&(u64, f64)| (row.1 - y).abs();
                let row = rows.iter().min_by(|a, b| near(a).total_cmp(&near(b)));
                let begin = (x - zero_x) / unit;
                bars.push((row.unwrap().0, [begin, begin + width / unit]));
            }
        }
        Shown { bars, unit }
    }
}

/// Every crossing flit of the plan is in a bar at its receiver, in the column of its step.
#[test]
fn bars_are_at_their_planned_places() {
    for line in IN_STEPS {
        let plan = planned(line);
        let shown = Shown::of(&drawn(line));
        let mut gets: BTreeMap<u64, u64> = BTreeMap::new();
        let mut sends: BTreeMap<u64, u64> = BTreeMap::new();
        for crossing in plan["crossings"].as_array().unwrap() {
            let field = |name: &str| crossing[name].as_u64().unwrap();
            for flit in 0..field("flits") {
                let step = (field("first_step") + flit * field("every")) as f64;
                let holds = |(pe, [begin, end]): &(u64, [f64; 2])| {
                    *pe == field("to") && *begin < step && step < *end
                };
                let is_drawn = shown.bars.iter().any(holds);
                assert!(is_drawn, "{line}: {crossing}");
            }
            *gets.entry(field("to")).or_default() += field("flits");
            *sends.entry(field("from")).or_default() += field("flits");
        }
        let idle = sends.iter().filter(|(pe, _)| !gets.contains_key(pe));
        let expected = gets.values().sum::<u64>() + idle.map(|(_, flits)| flits).sum::<u64>();
        let total: f64 = shown.bars.iter().map(|(_, [begin, end])| end - begin).sum();
        let off = shown.bars.len() as f64 * 0.02 / shown.unit;
        let is_near = (total - expected as f64).abs() <= off;
        assert!(is_near, "{line}: {total} for {expected}");
    }
}

/// Beyond 24 PEs, the crossings of one class are drawn, and rows are in groups.
#[test]
fn crossings_of_many_pes_do_not_cover_each_other() {
    for case in [
        "exchange --network complete:24 --lengths each:1 => 24 => P23 => ",
        "exchange --network complete:25 --lengths each:1 => 1 => P24 => crossings of P0 alone",
        "broadcast --network complete:32 --size 9 => 1 => P31 => crossings of flit 1 alone",
        "broadcast --network complete:512 --size 9 --algorithm hypercube => 1 => P22 => crossings of flit 1 alone",
    ] {
        let [line, classes, name, only] = case.split(" => ").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let svg = drawn(line);
        check_texts(line, &svg);
        let document = Document::parse(&svg).expect("it is XML");
        let all = || document.descendants();
        let bands = all().filter(|it| it.attribute("class") == Some("band"));
        assert_eq!(bands.count().to_string(), classes, "{line}");
        let has_name = all().any(|it| it.is_text() && it.text() == Some(name));
        assert!(has_name, "{line}: {name}");
        assert!(svg.contains(only), "{line}: {only}");
    }
}

#[test]
fn packets_end_at_their_planned_times() {
    for line in [IN_TIME[0], IN_TIME[1]] {
        let plan = planned(line);
        let shown = Shown::of(&drawn(line));
        for packet in plan["packets"].as_array().unwrap() {
            let end = match &packet["end"] {
                Value::String(text) => {
                    let (a, b) = text.split_once('/').unwrap();
                    a.parse::<f64>().unwrap() / b.parse::<f64>().unwrap()
                }
                number => number.as_f64().unwrap(),
            };
            let flits = packet["flits"].as_f64().unwrap();
            let is_it = |(pe, [begin, ends]): &(u64, [f64; 2])| {
                *pe == packet["pe"].as_u64().unwrap()
                    && (ends - end).abs() < 0.02
                    && (ends - begin - flits).abs() < 0.02
            };
            assert!(shown.bars.iter().any(is_it), "{line}: {packet}");
        }
    }
}

#[test]
fn all_that_is_planned_is_drawn() {
    let comb = comb();
    for line in ON_THEIR_WAY.into_iter().chain([&*comb]) {
        let plan = planned(line);
        let text = drawn(line);
        check_texts(line, &text);
        let document = Document::parse(&text).unwrap();
        // A thousand PEs fit on a sheet and in two megabytes.
        assert!(text.len() < 2_000_000, "{line}: {} bytes", text.len());
        let sheet = document.root_element();
        assert!(number(&sheet, "width") <= 2300.0, "{line}");
        assert!(number(&sheet, "height") <= 1900.0, "{line}");
        let all = || document.descendants();
        let of_class = |class| all().filter(move |node| node.attribute("class") == Some(class));
        let list = |key: &str| plan[key].as_array().unwrap();
        assert_eq!(of_class("band").count(), list("messages").len(), "{line}");
        for (kind, ..) in frame::MARKS {
            let marks = of_class(kind).flat_map(|group| group.children());
            let marks = marks.filter(|node| node.has_tag_name("use"));
            let items = list("control").iter().filter(|item| item["kind"] == kind);
            assert_eq!(marks.count(), items.count(), "{line}: {kind}");
        }
        for node in all().filter(|n| n.has_tag_name("use")) {
            let id = node.attribute("href").unwrap().strip_prefix('#');
            let defined = all().any(|n| n.attribute("id") == id);
            assert!(defined, "{line}: {id:?}");
        }
    }
}

/// The columns are those of the papers' tables: m5,1 is in P5's column in row 16 and in P0's in row 21.
#[test]
fn messages_are_in_the_columns_of_the_papers_table() {
    let shown = Shown::of(&drawn(ON_THEIR_WAY[3]));
    for (pe, step) in [(5, 16.0), (4, 17.0), (0, 21.0)] {
        let is_it = |(row, [begin, end]): &(u64, [f64; 2])| {
            *row == pe && (begin + 0.5 - step).abs() < 0.02 && (end - 0.5 - step).abs() < 0.02
        };
        assert!(shown.bars.iter().any(is_it), "P{pe}, step {step}");
    }
}

#[test]
fn a_title_is_text_and_fits() {
    let with_title = |title: &str| {
        let scene = Scene {
            title: title.to_owned(),
            pes: 2,
            ..Scene::default()
        };
        scene.svg()
    };
    for title in ["<b>\"a\" & 'b'</b>", "]]>", "\u{1}\n\u{ffff}x", ""] {
        let text = with_title(title);
        assert!(Document::parse(&text).is_ok(), "{text}");
    }
    let long = "a long title ".repeat(40);
    let text = with_title(&long);
    let document = Document::parse(&text).unwrap();
    let whole = document.descendants().find(|n| n.has_tag_name("title"));
    assert_eq!(whole.unwrap().text(), Some(&*long));
    let mut texts = document.descendants().filter(|n| n.has_tag_name("text"));
    let shown = texts.find(|n| n.text().is_some_and(|t| t.starts_with("a long")));
    assert!(text_box(&shown.unwrap())[2] < number(&document.root_element(), "width"));
}

/// Everything that each PE receives in all steps of a gossip on a network is in its row.
#[test]
fn bars_contain_all_received_flits_of_a_gossip() {
    for line in [IN_TIME[5], IN_TIME[6], IN_TIME[7], IN_TIME[9], IN_TIME[10]] {
        let plan = planned(line);
        let shown = Shown::of(&drawn(line));
        let mut gets: BTreeMap<u64, f64> = BTreeMap::new();
        let steps = plan["steps"].as_array().unwrap().iter();
        for packet in steps.flat_map(|step| step["packets"].as_array().unwrap()) {
            let to = packet["path"].as_array().unwrap().last().unwrap();
            let pieces = packet["pieces"].as_array().unwrap().iter();
            let flits: u64 = pieces.map(|piece| piece["flits"].as_u64().unwrap()).sum();
            *gets.entry(to.as_u64().unwrap()).or_default() += flits as f64;
        }
        let mut drawn: BTreeMap<u64, f64> = BTreeMap::new();
        for (pe, [begin, end]) in &shown.bars {
            *drawn.entry(*pe).or_default() += end - begin;
        }
        let off = shown.bars.len() as f64 * 0.02 / shown.unit;
        assert_eq!(gets.len(), drawn.len(), "{line}");
        for (pe, flits) in gets {
            assert!((drawn[&pe] - flits).abs() <= off, "{line}: P{pe}");
        }
        let ends = shown.bars.iter().map(|(_, [_, end])| *end);
        let last = ends.fold(0.0, f64::max);
        let off = (last - plan["time"].as_f64().unwrap()).abs();
        assert!(off <= 0.1, "{line}");
    }
}

#[test]
fn plans_that_are_too_large_to_draw_are_refused() {
    for refusal in [
        "broadcast --tree path:5000 --size 1 => 5000 PEs",
        "scatter --tree path:5000 --lengths equal:1 --setup 1 => 5000 PEs",
        "gossip --tree path:300 --lengths equal:1 => more than 20000 crossings",
        "gossip --network torus:30x30 --lengths equal:1 => more than 20000 crossings",
        "broadcast --tree kary:2:4 --size 1000000000 => more than 20000 crossings",
    ] {
        let (line, why) = refusal.split_once(" => ").unwrap();
        let fault = printed(line, "svg").expect_err(line);
        let has_both = fault.contains(why) && fault.contains("--summary");
        assert!(has_both, "{line}: {fault}");
    }
}
