//! A plan of messages that do not wait on their way as a space-time diagram: each message is a band
//! that slants over the rows on its way.
//!
//! Column t shows row t of the papers' figures: an item that crosses in step t is in column t at its
//! receiver, and in column t-1 at its sender. All times are those of the [`Plan`].

use std::fmt::Write as _;

use flitcast_plan::algorithms::plan::{ControlPlan, MessagePlan, Plan};
use flitcast_proto::PeId;
use flitcast_proto::items::Control;
use flitcast_proto::ops::Direction;

use super::canvas::{Canvas, Num, Taken, bold_width, text_width};
use super::frame;
use super::layout::Layout;
use super::sheet::{Axis, Entry, Icon, Moment, Sheet};
use crate::render::colours::PALETTE;
use flitcast_cluster::text::words::counted;

/// Draws a plan on its sheet.
pub fn draw(canvas: &mut Canvas, layout: &Layout, sheet: &Sheet, plan: &Plan) {
    let mut taken = Taken::default();
    bands(canvas, layout, plan, &mut taken);
    frame::markers(canvas, layout, sheet);
    control(canvas, layout, plan, &mut taken);
    if layout.is_roomy() {
        band_names(canvas, layout, plan, &mut taken);
        control_numbers(canvas, layout, plan, &mut taken);
    }
}

/// Returns the sheet of a plan.
pub fn sheet(plan: &Plan, title: &str) -> Sheet {
    let flits = plan.messages.iter().map(|message| message.flits).sum();
    let pes = counted(plan.tree.len() as u64, "PE", "PEs");
    let mut summary = match plan.messages.len() {
        0 => format!("{pes}, nothing to send"),
        messages => format!(
            "{pes}, {}, {}",
            counted(messages as u64, "message", "messages"),
            counted(flits, "flit", "flits"),
        ),
    };
    if !plan.control.is_empty() {
        let items = counted(plan.control.len() as u64, "control item", "control items");
        summary = format!("{summary}, {items}");
    }
    let control = plan.control.iter().map(|item| item.step).max().unwrap_or(0);
    Sheet {
        title: title.to_owned(),
        summary,
        pes: plan.tree.len(),
        tree: Some((*plan.tree).clone()),
        axis: Axis::Steps,
        time: Moment::step(plan.time_steps),
        bound: Some(Moment::step(plan.lower_bound_steps)),
        shown: control as f64,
    }
}

const BAND_LEGEND: &str = "message Mi: bars at the PEs it passes, slanted where it crosses";

/// Returns the entries for the bands, then for the kinds of control items that the plan has.
pub fn legend(plan: &Plan) -> Vec<Entry> {
    let entry = |icon, text: &str| Entry {
        icon,
        text: text.to_owned(),
    };
    let bands = (!plan.messages.is_empty()).then(|| entry(Icon::Band, BAND_LEGEND));
    let kinds = frame::MARKS.into_iter().filter_map(|(kind, _, text)| {
        let has = |item: Control| mark(item) == Some(kind);
        let shown = plan.control.iter().any(|control| has(control.item));
        shown.then(|| entry(Icon::Mark(kind), text))
    });
    bands.into_iter().chain(kinds).collect()
}

/// Returns the PEs that a message passes, its source first.
fn way(plan: &Plan, message: &MessagePlan) -> Vec<PeId> {
    let mut way = vec![message.pe];
    while let Some(parent) = way.last().and_then(|&pe| plan.tree.parent(pe)) {
        way.push(parent);
    }
    if plan.operation.collective().direction() == Direction::Down {
        way.reverse();
    }
    way
}

/// Returns the first column in which a message is at its source.
fn departure(message: &MessagePlan) -> f64 {
    message.first_step as f64 - 1.0
}

fn bands(canvas: &mut Canvas, layout: &Layout, plan: &Plan, taken: &mut Taken) {
    let mut by_arrival: Vec<&MessagePlan> = plan.messages.iter().collect();
    by_arrival.sort_by_key(|message| (message.arrival_step, message.pe));
    let thin = layout.row_height.min(layout.step_width) < 4.0;
    let (opacity, stroke) = if thin { (0.6, 0.15) } else { (0.4, 0.8) };
    // Tolerance of a corner: it grows with the number of hops, because less of each is visible.
    let hops: f64 = plan
        .messages
        .iter()
        .map(|m| f64::from(plan.tree.depth(m.pe)))
        .sum();
    let near = (hops / 20_000.0).clamp(0.2, 3.0);
    let bar = (layout.row_height * 0.22).clamp(2.0, 9.0);
    canvas.open(format_args!(
        "fill-opacity=\"{opacity}\" stroke-width=\"{stroke}\" stroke-linejoin=\"round\""
    ));
    for (message, [fill, ink, _]) in by_arrival.into_iter().zip(PALETTE.into_iter().cycle()) {
        let way = way(plan, message);
        let width = message.flits as f64 * layout.step_width;
        let edge: Vec<(f64, f64)> = (0u32..)
            .zip(&way)
            .map(|(hop, &pe)| (layout.x(departure(message) + f64::from(hop)), layout.y(pe)))
            .collect();
        let shape = outline(&thinned(&edge, near), width);
        canvas.put(format_args!(
            "<g class=\"band\" fill=\"{fill}\" stroke=\"{ink}\">\
             <title>M{}: {}, steps {} to {}</title><path d=\"{shape}\"/>",
            message.pe.0,
            counted(message.flits, "flit", "flits"),
            message.first_step,
            message.arrival_step
        ));
        // With thinner rows the bars would hide the bands.
        if layout.row_height >= 10.0 {
            let mut stops = String::new();
            for &(x, y) in &edge {
                let _ = write!(stops, "M{},{}h{}", Num(x), Num(y), Num(width));
                taken.take((x + width / 2.0, y), width, bar);
            }
            canvas.put(format_args!(
                "<path d=\"{stops}\" stroke-width=\"{}\" stroke-opacity=\"0.85\"/>",
                Num(bar)
            ));
        }
        canvas.put(format_args!("</g>\n"));
    }
    canvas.close();
}

/// Returns the outline of the band that has this left edge.
fn outline(edge: &[(f64, f64)], width: f64) -> String {
    let mut shape = String::new();
    let right = edge.iter().rev().map(|&(x, y)| (x + width, y));
    let mut pen = 'M';
    for (x, y) in edge.iter().copied().chain(right) {
        let _ = write!(shape, "{pen}{},{}", Num(x), Num(y));
        pen = 'L';
    }
    shape.push('Z');
    shape
}

/// Removes corners that are not visible, lest the bands of a deep tree fill megabytes. The points are
/// one step apart; a straight piece continues as long as some line from its beginning passes all its
/// points within `near`.
fn thinned(points: &[(f64, f64)], near: f64) -> Vec<(f64, f64)> {
    let mut kept = vec![points[0]];
    let mut begin = 0;
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for (index, &(_, y)) in points.iter().enumerate().skip(1) {
        let rise = |begin: usize, off: f64| (y + off - points[begin].1) / (index - begin) as f64;
        if !(low..=high).contains(&rise(begin, 0.0)) {
            begin = index - 1;
            kept.push(points[begin]);
            (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        }
        low = low.max(rise(begin, -near));
        high = high.min(rise(begin, near));
    }
    if points.len() > 1 {
        kept.push(points[points.len() - 1]);
    }
    kept
}

/// Returns the mark of a kind of control item, by its name among the definitions.
fn mark(item: Control) -> Option<&'static str> {
    match item {
        Control::Token => Some("token"),
        Control::Certificate(_) => Some("certificate"),
        Control::Order { .. } => Some("order"),
        Control::Wakeup { .. } => Some("wakeup"),
        // Not an item of the papers' model.
        Control::Receipt => None,
    }
}

/// Returns the positions of an item at its sender and at its receiver.
fn ends(layout: &Layout, item: &ControlPlan) -> [(f64, f64); 2] {
    let step = item.step as f64;
    [
        (layout.x(step - 0.5), layout.y(item.from)),
        (layout.x(step + 0.5), layout.y(item.to)),
    ]
}

fn control(canvas: &mut Canvas, layout: &Layout, plan: &Plan, taken: &mut Taken) {
    let size = frame::mark_size(layout);
    frame::define_marks(canvas, size);
    for (kind, ink, _) in frame::MARKS {
        let all = || plan.control.iter().filter(|i| mark(i.item) == Some(kind));
        let mut lines = String::new();
        for item in all() {
            let [from, to] = ends(layout, item);
            let [x, y, to_x, to_y] = [from.0, from.1, to.0, to.1].map(Num);
            let _ = write!(lines, "M{x},{y}L{to_x},{to_y}");
        }
        if lines.is_empty() {
            continue;
        }
        let width = (size * 0.3).clamp(0.2, 0.9);
        canvas.put(format_args!(
            "<path d=\"{lines}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"{}\" \
             stroke-opacity=\"0.6\"/>\n",
            Num(width)
        ));
        canvas.open(format_args!("class=\"{kind}\""));
        for item in all() {
            let [_, (x, y)] = ends(layout, item);
            taken.take((x, y), 2.0 * size, 2.0 * size);
            canvas.put(format_args!(
                "<use href=\"#{kind}\" x=\"{}\" y=\"{}\"><title>{}</title></use>\n",
                Num(x),
                Num(y),
                described(item)
            ));
        }
        canvas.close();
    }
}

fn described(item: &ControlPlan) -> String {
    let ControlPlan { step, from, to, .. } = item;
    let what = match item.item {
        Control::Token => "token".to_owned(),
        Control::Certificate(certificate) => format!(
            "certificate: lag {}, {}",
            certificate.lag,
            counted(certificate.stream, "flit", "flits")
        ),
        Control::Order { after } => format!("order: after {after}"),
        Control::Wakeup { after } => format!("wakeup call: after {after}"),
        Control::Receipt => "receipt".to_owned(),
    };
    format!("step {step}, {from} to {to}, {what}")
}

/// Distance from a band's name beyond which the band is named again.
const FAR_ROWS: f64 = 2.5;

/// Draws `M5` on the band, between the rows, near the message's own PE and again near P0 if that is
/// far, where it fits the band and covers no other text.
fn band_names(canvas: &mut Canvas, layout: &Layout, plan: &Plan, taken: &mut Taken) {
    let size = (layout.row_height * 0.55).clamp(8.0, 12.0);
    canvas.open(format_args!(
        "font-size=\"{}\" font-weight=\"bold\" {}",
        Num(size),
        frame::HALO
    ));
    for message in &plan.messages {
        let name = format!("M{}", message.pe.0);
        let (width, height) = (bold_width(&name, size) + 2.0, size * 0.9);
        let mut spots = name_spots(layout, message, &way(plan, message));
        if plan.operation.collective().direction() == Direction::Down {
            spots.reverse();
        }
        let mut put = |&(x, y, slant): &(f64, f64, f64)| {
            let fits = message.flits as f64 * layout.step_width >= width + height * slant;
            let put = fits && taken.try_take((x, y), width, height);
            if put {
                canvas.text((x, y + size * 0.36), "middle", &name);
            }
            put
        };
        let Some(own) = spots.iter().position(&mut put) else {
            continue;
        };
        let far =
            |spot: &&(f64, f64, f64)| (spot.1 - spots[own].1).abs() > FAR_ROWS * layout.row_height;
        spots.iter().rev().take(4).filter(far).any(put);
    }
    canvas.close();
}

/// Returns the possible positions of a band's name, from its source on: the middle of the band beside
/// each row on its way, and the slant of the band there.
fn name_spots(layout: &Layout, message: &MessagePlan, way: &[PeId]) -> Vec<(f64, f64, f64)> {
    let mut spots = Vec::new();
    for (hop, ends) in way.windows(2).enumerate() {
        let (from, to) = (layout.y(ends[0]), layout.y(ends[1]));
        let rows = layout.row(ends[0]).abs_diff(layout.row(ends[1])) as f64;
        let slant = layout.step_width / (rows * layout.row_height);
        for part in [0.5 / rows, 1.0 - 0.5 / rows] {
            let begins = departure(message) + hop as f64 + part;
            let x = layout.x(begins + message.flits as f64 / 2.0);
            spots.push((x, from + (to - from) * part, slant));
        }
    }
    spots
}

/// Draws a certificate's lag or an order's s beside the mark.
fn control_numbers(canvas: &mut Canvas, layout: &Layout, plan: &Plan, taken: &mut Taken) {
    let size = (layout.row_height * 0.5).clamp(8.0, 10.0);
    let off = frame::mark_size(layout);
    canvas.open(format_args!("font-size=\"{}\" {}", Num(size), frame::HALO));
    for item in &plan.control {
        let number = match item.item {
            Control::Certificate(certificate) => certificate.lag,
            Control::Order { after } | Control::Wakeup { after } => after,
            Control::Token | Control::Receipt => continue,
        };
        let number = number.to_string();
        let (width, height) = (text_width(&number, size) + 2.0, size * 0.85);
        let [_, (x, y)] = ends(layout, item);
        let (aside, above) = (off + width / 2.0, off + height / 2.0 + 0.5);
        let places = [(aside, 0.0), (0.0, -above), (0.0, above), (-aside, 0.0)];
        for (dx, dy) in places {
            let at = (x + dx, y + dy);
            let inside = at.0 - width / 2.0 > layout.left && at.0 + width / 2.0 < layout.right;
            if inside && taken.try_take(at, width, height) {
                canvas.text((at.0, at.1 + size * 0.36), "middle", &number);
                break;
            }
        }
    }
    canvas.close();
}

#[cfg(test)]
pub mod tests;
