//! The parts around the bands: head, rows with the tree at their side, the axis of steps or time,
//! marker lines, legend.

use flitcast_proto::Tree;

use super::canvas::{Canvas, Num, bold_width, text_width};
use super::layout::{HEAD, Layout, MARGIN};
use super::{Axis, Entry, Icon, Scene};

/// The height of the numbers below the plot.
const AXIS: f64 = 34.0;
const LEGEND_LINE: f64 = 20.0;
const LEGEND_SIZE: f64 = 11.0;
/// Width of letters relative to the digits that [`text_width`] assumes.
const LETTERS: f64 = 0.86;
const TICK_SIZE: f64 = 11.0;

/// A white rim, so that a text can be read on a band.
pub const HALO: &str = "stroke=\"#fff\" stroke-opacity=\"0.85\" stroke-width=\"2.5\" \
                        stroke-linejoin=\"round\" paint-order=\"stroke\"";

/// Kind, ink and legend of the control items.
pub const MARKS: [(&str, &str, &str); 4] = [
    ("token", "#333333", "token"),
    ("certificate", "#3b2a7a", "certificate, with its lag"),
    ("order", "#b3201c", "order, with its s"),
    ("wakeup", "#b3201c", "wakeup call, with its s"),
];

/// Returns half the width of a mark.
pub fn mark_size(layout: &Layout) -> f64 {
    let room = (layout.row_height * 0.2).min(layout.step_width * 0.45);
    room.clamp(0.4, 5.0)
}

/// Draws the sheet and everything behind the bands.
pub fn canvas(scene: &Scene, entries: &[Entry], layout: &Layout) -> Canvas {
    let places = legend_places(entries, layout);
    let lines = places.last().map_or(1.0, |&(line, _)| line + 1.0);
    let height = layout.bottom + AXIS + lines * LEGEND_LINE + MARGIN;
    let mut canvas = Canvas::new(layout.width, height, &scene.title);
    head(&mut canvas, layout, scene);
    axis(&mut canvas, layout, scene.axis);
    if let Some(side) = &scene.tree {
        tree(&mut canvas, side, layout);
    }
    names(&mut canvas, layout);
    canvas
}

fn head(canvas: &mut Canvas, layout: &Layout, scene: &Scene) {
    let title = &scene.title;
    let room = layout.width - 2.0 * MARGIN;
    let size = (18.0 * room / bold_width(title, 18.0).max(1.0)).clamp(10.0, 18.0);
    let fit = (room / bold_width("M", size)) as usize;
    let title = match title.chars().count() {
        count if count > fit => title.chars().take(fit.max(1) - 1).collect::<String>() + "…",
        _ => title.clone(),
    };
    canvas.open(format_args!(
        "font-size=\"{}\" font-weight=\"bold\"",
        Num(size)
    ));
    canvas.text((MARGIN, 32.0), "start", &title);
    canvas.close();
    canvas.open(format_args!("font-size=\"12\" fill=\"#555\""));
    canvas.text((MARGIN, 51.0), "start", &scene.summary);
    canvas.close();
}

fn axis(canvas: &mut Canvas, layout: &Layout, axis: Axis) {
    canvas.open(format_args!("stroke=\"#e4e4e4\" stroke-width=\"0.8\""));
    for (tick, _) in layout.ticks(TICK_SIZE) {
        let x = layout.tick_x(tick);
        canvas.line((x, layout.top), (x, layout.bottom + 4.0));
    }
    canvas.close();
    canvas.open(format_args!("font-size=\"{TICK_SIZE}\" fill=\"#444\""));
    let y = layout.bottom + 17.0;
    for (tick, number) in layout.ticks(TICK_SIZE) {
        let half = text_width(&number, TICK_SIZE) / 2.0;
        let x = layout.tick_x(tick);
        if x + half < layout.width {
            canvas.text((x, y), "middle", &number);
        }
    }
    canvas.text((layout.left - 9.0, y), "end", axis.name());
    canvas.close();
}

/// Draws the tree, turned so that every PE is at its row.
fn tree(canvas: &mut Canvas, tree: &Tree, layout: &Layout) {
    let place = |pe| {
        (
            MARGIN + f64::from(tree.depth(pe)) * layout.level_width,
            layout.y(pe),
        )
    };
    let thin = layout.row_height < 6.0;
    let width = if thin { 0.5 } else { 1.0 };
    canvas.open(format_args!(
        "fill=\"none\" stroke=\"#9a9a9a\" stroke-width=\"{width}\""
    ));
    for &pe in &layout.rows {
        let (x, y) = place(pe);
        let children = tree.children(pe).iter();
        if let Some(&last) = children.max_by_key(|&&child| layout.row(child)) {
            canvas.line((x, y), (x, place(last).1));
        }
        if let Some(parent) = tree.parent(pe) {
            canvas.line((place(parent).0, y), (x, y));
        }
    }
    canvas.close();
    if !thin {
        canvas.open(format_args!("fill=\"#666\""));
        let radius = (layout.row_height * 0.12).clamp(1.0, 2.5);
        let radius = radius.min(layout.level_width * 0.3).max(0.8);
        for &pe in &layout.rows {
            let (x, y) = place(pe);
            let (x, y, radius) = (Num(x), Num(y), Num(radius));
            canvas.put(format_args!(
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"
            ));
        }
        canvas.close();
    }
}

fn names(canvas: &mut Canvas, layout: &Layout) {
    canvas.open(format_args!("stroke=\"#d4d4d4\" stroke-width=\"0.8\""));
    for (pe, _) in layout.named() {
        let y = layout.y(pe);
        canvas.line((layout.left - 4.0, y), (layout.right, y));
    }
    canvas.close();
    canvas.open(format_args!("font-size=\"{}\"", Num(layout.name_size)));
    for (pe, name) in layout.named() {
        let y = layout.y(pe) + layout.name_size * 0.36;
        canvas.text((layout.left - 8.0, y), "end", &name);
    }
    canvas.close();
}

/// A line at the end of a step, or at a time.
struct Marker {
    at: f64,
    label: String,
    /// The dash pattern.
    dashes: &'static str,
}

/// Returns markers for the time of an operation and the lower bound, if one is known.
fn time_and_bound(scene: &Scene) -> Vec<Marker> {
    let marker = |at, label, dashes| Marker { at, label, dashes };
    let (time, name) = (scene.time.at, &scene.time.name);
    match &scene.bound {
        _ if time <= 0.0 => Vec::new(),
        Some(bound) if bound.name == *name => {
            vec![marker(time, format!("time {name} = lower bound"), "none")]
        }
        bound => {
            let time = marker(time, format!("time {name}"), "none");
            let bound = bound.as_ref().map(|bound| {
                let label = format!("lower bound {}", bound.name);
                marker(bound.at, label, "5 3")
            });
            [time].into_iter().chain(bound).collect()
        }
    }
}

/// Draws the lines at the ends of their steps, or at their times.
pub fn markers(canvas: &mut Canvas, layout: &Layout, scene: &Scene) {
    for (marker, below) in time_and_bound(scene).iter().zip([24.0, 9.0]) {
        let Marker { at, label, dashes } = marker;
        let (x, y) = (layout.x(scene.axis.behind(*at)), HEAD - below);
        canvas.open(format_args!(
            "stroke=\"#111\" stroke-width=\"1.2\" stroke-dasharray=\"{dashes}\""
        ));
        canvas.line((x, y - 9.0), (x, layout.bottom));
        canvas.close();
        let (x, anchor) = match x - 5.0 - text_width(label, 12.0) > MARGIN {
            true => (x - 5.0, "end"),
            false => (x + 5.0, "start"),
        };
        canvas.open(format_args!("font-size=\"12\""));
        canvas.text((x, y), anchor, label);
        canvas.close();
    }
}

/// Returns the definitions of the marks at their size, around the origin.
pub fn marks(size: f64, prefix: &str) -> String {
    let [token, certificate, order, wakeup] = MARKS;
    let rim = Num((size * 0.25).clamp(0.1, 1.0));
    let (r, d, t) = (Num(size * 0.75), size * 1.05, size);
    let [d, minus_d] = [Num(d), Num(-d)];
    let [t, minus_t, base] = [Num(t), Num(-t), Num(-t * 0.75)];
    let [minus_s, side] = [Num(-size * 0.8), Num(size * 1.6)];
    let ring = Num((size * 0.4).max(0.2));
    format!(
        "<defs>\n<circle id=\"{prefix}{}\" r=\"{r}\" fill=\"#fff\" stroke=\"{}\" stroke-width=\"{ring}\"/>\n\
         <path id=\"{prefix}{}\" d=\"M0,{minus_d}L{d},0L0,{d}L{minus_d},0Z\" fill=\"{}\" \
         stroke=\"#fff\" stroke-width=\"{rim}\"/>\n\
         <path id=\"{prefix}{}\" d=\"M{base},{minus_t}L{t},0L{base},{t}Z\" fill=\"{}\" \
         stroke=\"#fff\" stroke-width=\"{rim}\"/>\n\
         <rect id=\"{prefix}{}\" x=\"{minus_s}\" y=\"{minus_s}\" width=\"{side}\" \
         height=\"{side}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"{rim}\"/>\n</defs>\n",
        token.0, token.1, certificate.0, certificate.1, order.0, order.1, wakeup.0, wakeup.1,
    )
}

/// Returns the width of a symbol with its gap.
fn width(icon: Icon) -> f64 {
    match icon {
        Icon::Band => 44.0,
        Icon::Colour(_) | Icon::Mark(_) => 14.0,
    }
}

/// Returns line and x of each entry.
fn legend_places(entries: &[Entry], layout: &Layout) -> Vec<(f64, f64)> {
    let mut places = Vec::new();
    let (mut line, mut x) = (0.0, MARGIN);
    for Entry { icon, text } in entries {
        let taken = width(*icon) + text_width(text, LEGEND_SIZE) * LETTERS;
        if x > MARGIN && x + taken > layout.width - MARGIN {
            line += 1.0;
            x = MARGIN;
        }
        places.push((line, x));
        x += taken + 18.0;
    }
    places
}

/// Draws the legend of bands and marks.
pub fn legend(canvas: &mut Canvas, layout: &Layout, entries: &[Entry]) {
    let is_mark = |entry: &Entry| matches!(entry.icon, Icon::Mark(_));
    if entries.iter().any(is_mark) {
        canvas.put(format_args!("{}", marks(4.5, "key-")));
    }
    canvas.open(format_args!("font-size=\"{LEGEND_SIZE}\" fill=\"#333\""));
    for (Entry { icon, text }, (line, x)) in entries.iter().zip(legend_places(entries, layout)) {
        let y = layout.bottom + AXIS + (line + 0.5) * LEGEND_LINE;
        match icon {
            Icon::Band => canvas.put(format_args!(
                "<g transform=\"translate({},{})\" stroke=\"#2b4f76\">\
                 <path d=\"M0,-5L22,-5L36,5L14,5Z\" fill=\"#4477aa\" fill-opacity=\"0.4\" \
                 stroke-width=\"0.8\"/><path d=\"M0,-5h22M14,5h22\" stroke-width=\"3\"/></g>\n",
                Num(x),
                Num(y)
            )),
            Icon::Colour(fill) => canvas.put(format_args!(
                "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"10\" fill=\"{fill}\"/>\n",
                Num(x),
                Num(y - 5.0)
            )),
            Icon::Mark(kind) => canvas.put(format_args!(
                "<use href=\"#key-{kind}\" x=\"{}\" y=\"{}\"/>\n",
                Num(x + 5.0),
                Num(y)
            )),
        }
        canvas.text((x + width(*icon), y + 4.0), "start", text);
    }
    canvas.close();
}
