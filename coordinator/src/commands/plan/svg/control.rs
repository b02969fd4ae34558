//! The control items of a plan in its picture.

use std::fmt::Write as _;

use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::items::Control;

use super::canvas::{Canvas, Num, Taken, text_width};
use super::frame;
use super::layout::Layout;
use super::sheet::{Entry, Icon};
use flitcast_cluster::text::phrases::counted;

/// Returns the legend of the kinds of items that there are. A receipt is not an item of the papers' model and
/// has no mark.
pub fn legend(items: &[ControlPlan]) -> Vec<Entry> {
    let kinds = frame::MARKS.into_iter();
    let kinds = kinds.filter(|(kind, ..)| items.iter().any(|it| it.item.name() == *kind));
    let entry = |(kind, _, text): (_, _, &str)| Entry {
        icon: Icon::Mark(kind),
        text: text.to_owned(),
    };
    kinds.map(entry).collect()
}

/// Returns the positions of an item at its sender and at its receiver.
fn ends(layout: &Layout, item: &ControlPlan) -> [(f64, f64); 2] {
    let step = item.step as f64;
    [
        (layout.x(step - 0.5), layout.y(item.from)),
        (layout.x(step + 0.5), layout.y(item.to)),
    ]
}

/// Draws the items: a line over the edge, and a mark at the receiver.
pub fn marks(canvas: &mut Canvas, layout: &Layout, items: &[ControlPlan], taken: &mut Taken) {
    if items.is_empty() {
        return;
    }
    let size = frame::mark_size(layout);
    frame::define_marks(canvas, size);
    for (kind, ink, _) in frame::MARKS {
        let all = || items.iter().filter(|it| it.item.name() == kind);
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

/// Draws a certificate's lag or an order's s beside the mark.
pub fn numbers(canvas: &mut Canvas, layout: &Layout, items: &[ControlPlan], taken: &mut Taken) {
    let size = (layout.row_height * 0.5).clamp(8.0, 10.0);
    let off = frame::mark_size(layout);
    canvas.open(format_args!("font-size=\"{}\" {}", Num(size), frame::HALO));
    for item in items {
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
