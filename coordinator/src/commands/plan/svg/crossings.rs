//! Draws any list of crossings: flits that wait on their way or use many ports, packets with a set-up cost, steps of
//! packets, and the control items of a plan.
//!
//! A band leaves its sender's row and ends in a bar at its receiver's; a PE that receives nothing has
//! bars where it sends. A band over several edges of the tree at the side has a bar at each PE on its way.
//! The creator of the [`Scene`] computes all times; nothing is scheduled here.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::items::Control;

use super::canvas::{Canvas, Escaped, Num, Taken, bold_width, text_width};
use super::layout::{Layout, Places};
use super::{Entry, Icon, Scene, frame};
use crate::render::colours::PALETTE;
use flitcast_cluster::text::phrases::counted;

/// Limit of bands with names: with more, names are too small to be read.
const MAX_NAMED: usize = 3_000;
/// Limit of PEs, and of crossings between PEs of a tree, of which all crossings are drawn: more of them
/// would cover each other.
const MAX_ROWS: usize = 24;
const MAX_CROSSINGS: usize = 1_500;
/// Names that the legend lists for a colour.
const MAX_IN_LEGEND: usize = 3;
/// Colours of a set-up, which is not a message.
const SETUP: [&str; 3] = ["#b8b8b8", "#9a9a9a", "#6b7684"];

impl Scene {
    /// Returns whether crossings of one class alone are drawn, and rows are in groups.
    pub(super) fn is_crowded(&self) -> bool {
        let is_crowded = self.tree.is_none() || self.bands.len() > MAX_CROSSINGS;
        self.pes > MAX_ROWS && !self.has_sources && is_crowded
    }

    /// Returns the class whose crossings are drawn if those of all would cover each other.
    fn example(&self) -> Option<usize> {
        self.bands.iter().filter_map(|band| band.class).min()
    }

    /// Draws the bands and the control items.
    pub(super) fn draw(&self, canvas: &mut Canvas, layout: &Layout) {
        self.phases(canvas, layout);
        let places = Places::of(self, layout);
        self.bands(canvas, layout, &places);
        frame::markers(canvas, layout, self);
        self.phase_names(canvas, layout);
        let mut taken = Taken::default();
        self.marks(canvas, layout, &mut taken);
        if places.bar >= 7.0 && self.bands.len() <= MAX_NAMED {
            self.names(canvas, &places, &mut taken);
        }
        // There is room for texts between two rows.
        if layout.row_height >= 13.0 && !self.control.is_empty() {
            for ([begin, end], y) in self.bands.iter().flat_map(|band| places.bars(band)) {
                taken.take(((begin + end) / 2.0, y), end - begin, places.bar);
            }
            self.numbers(canvas, layout, &mut taken);
        }
    }

    /// Merges bands that follow each other without a gap.
    pub(super) fn merge(&mut self) {
        self.bands.sort_by(|a, b| {
            let (a_key, b_key) = ((a.class, a.from, a.to), (b.class, b.from, b.to));
            a_key.cmp(&b_key).then(a.out[0].total_cmp(&b.out[0]))
        });
        self.bands.dedup_by(|next, band| {
            let is_same = (band.class, &band.name, band.from, band.to)
                == (next.class, &next.name, next.from, next.to);
            let follows = [next.out[0], next.into[0]] == [band.out[1], band.into[1]];
            let is_merged = band.class.is_some() && is_same && follows;
            if is_merged {
                [band.out[1], band.into[1]] = [next.out[1], next.into[1]];
            }
            is_merged
        });
    }

    /// Returns the legend: the meaning of a band, and of each colour.
    pub(super) fn legend(&self, is_crowded: bool) -> Vec<Entry> {
        let entry = |icon, text| Entry { icon, text };
        let band = (!self.bands.is_empty()).then(|| entry(Icon::Band, self.what.to_owned()));
        let only = self.example().filter(|_| is_crowded).map(|class| {
            let [fill, ..] = PALETTE[class % PALETTE.len()];
            let text = format!("crossings of {} alone are drawn", self.classes[class]);
            entry(Icon::Colour(fill), text)
        });
        let has_setup = !is_crowded && self.bands.iter().any(|band| band.class.is_none());
        let setup = has_setup.then(|| entry(Icon::Colour(SETUP[0]), "set-up".to_owned()));
        let used = self.bands.iter().filter_map(|band| band.class);
        let used: BTreeSet<usize> = used.collect();
        let of_colour = |first: usize| {
            let all = used.iter().filter(|class| *class % PALETTE.len() == first);
            let names = all.filter_map(|class| self.classes[*class].split(':').next());
            let mut names: Vec<&str> = names.collect();
            if names.len() > MAX_IN_LEGEND {
                names.truncate(MAX_IN_LEGEND - 1);
                names.push("…");
            }
            names.join(" ")
        };
        let colours = (0..)
            .zip(PALETTE)
            .map(|(first, [fill, ..])| entry(Icon::Colour(fill), of_colour(first)))
            .filter(|entry| used.len() > 1 && !entry.text.is_empty());
        // A receipt is not an item of the papers' model and has no mark.
        let marks = frame::MARKS.into_iter();
        let marks =
            marks.filter(|(kind, ..)| self.control.iter().any(|it| it.item.name() == *kind));
        let marks = marks.map(|(kind, _, text)| entry(Icon::Mark(kind), text.to_owned()));
        let icons = band.into_iter().chain(only).chain(setup);
        icons.chain(colours).chain(marks).collect()
    }

    /// Returns the begin and the end of each phase.
    fn spans(&self, layout: &Layout) -> Vec<[f64; 2]> {
        let begins = self.phases.iter().map(|phase| phase.at);
        let begins = [0.0].into_iter().chain(begins);
        let spans = begins.zip(&self.phases);
        let spans = spans.map(|(begin, phase)| [layout.x(begin), layout.x(phase.at)]);
        spans.collect()
    }

    /// Draws every other phase in grey.
    fn phases(&self, canvas: &mut Canvas, layout: &Layout) {
        canvas.open(format_args!("fill-opacity=\"0.05\""));
        for [begin, end] in self.spans(layout).into_iter().skip(1).step_by(2) {
            let height = layout.bottom - layout.top;
            canvas.rect((begin, layout.top), end - begin, height);
        }
        canvas.close();
    }

    /// Draws the name of each phase, or its number, if there is room.
    fn phase_names(&self, canvas: &mut Canvas, layout: &Layout) {
        canvas.open(format_args!("font-size=\"10\" {}", frame::HALO));
        for ([begin, end], phase) in self.spans(layout).into_iter().zip(&self.phases) {
            let at = ((begin + end) / 2.0, layout.top - 4.0);
            let number = phase.name.rsplit(' ').next();
            let names = [&*phase.name].into_iter().chain(number);
            let fits = |name: &&str| text_width(name, 10.0) < end - begin;
            if let Some(name) = names.into_iter().find(fits) {
                canvas.text(at, "middle", name);
            }
        }
        canvas.close();
    }

    /// Draws the bands of each class, and the bars above them.
    fn bands(&self, canvas: &mut Canvas, layout: &Layout, places: &Places<'_>) {
        let thin = layout.row_height.min(layout.step_width) < 4.0;
        let stroke = if thin { 0.15 } else { 0.6 };
        // Many bands, or bands over the edges of a network, overlap.
        let few = (400.0 / self.bands.len() as f64).min(1.0);
        let (opacity, rim) = match &self.tree {
            _ if layout.is_crowded() => (0.25, 1.0),
            None => (0.12 * few, 0.4 * few),
            Some(_) => (0.4 * few.max(0.5), few.max(0.5)),
        };
        canvas.open(format_args!(
            "fill-opacity=\"{opacity}\" stroke-width=\"{stroke}\" stroke-opacity=\"{rim}\" \
             stroke-linejoin=\"round\""
        ));
        let classes = || self.bands.chunk_by(|a, b| a.class == b.class);
        let colour = |class: Option<usize>| match class {
            Some(class) => PALETTE[class % PALETTE.len()],
            None => SETUP,
        };
        let example = self.example();
        for bands in classes() {
            let class = bands[0].class;
            if layout.is_crowded() && class != example {
                continue;
            }
            let [fill, ink, _] = colour(class);
            let name = class.map_or("set-up", |class| &self.classes[class]);
            let shapes: String = bands.iter().map(|band| places.shape(band)).collect();
            canvas.put(format_args!(
                "<g class=\"band\" fill=\"{fill}\" stroke=\"{ink}\"><title>{}</title>\
                 <path d=\"{shapes}\"/></g>\n",
                Escaped(name)
            ));
        }
        canvas.close();
        // With thinner rows the bars would hide the bands.
        if layout.row_height < 10.0 && !layout.is_crowded() {
            return;
        }
        canvas.open(format_args!("stroke-width=\"{}\"", Num(places.bar)));
        for bands in classes().filter(|bands| bands[0].class.is_some()) {
            let mut bars = String::new();
            for ([x, end], y) in bands.iter().flat_map(|band| places.bars(band)) {
                // Writing to a String cannot fail.
                let _ = write!(bars, "M{},{}h{}", Num(x), Num(y), Num(end - x));
            }
            let [fill, ..] = colour(bands[0].class);
            canvas.put(format_args!("<path d=\"{bars}\" stroke=\"{fill}\"/>\n"));
        }
        canvas.close();
    }

    /// Draws the text of each band on its bar, if that is long enough; in a picture where it is too long
    /// for some, the source alone.
    fn names(&self, canvas: &mut Canvas, places: &Places<'_>, taken: &mut Taken) {
        let size = (places.bar * 0.9).clamp(7.0, 10.0);
        canvas.open(format_args!(
            "font-size=\"{}\" font-weight=\"bold\" {}",
            Num(size),
            frame::HALO
        ));
        let bands = || self.bands.iter().filter(|band| band.class.is_some());
        let source = |name: &str| name.split('→').next().unwrap_or_default().len();
        let fits = |name: &str, width: f64| bold_width(name, size) + 6.0 <= width;
        let is_short = bands().any(|band| {
            let width = (band.into[1] - band.into[0]) * places.layout.step_width;
            fits(&band.name[..source(&band.name)], width) && !fits(&band.name, width)
        });
        for band in bands() {
            let name = match is_short {
                true => &band.name[..source(&band.name)],
                false => &band.name,
            };
            for ([begin, end], y) in places.bars(band) {
                let at = (begin + end) / 2.0;
                let width = bold_width(name, size);
                if fits(name, end - begin) && taken.try_take((at, y), width, size * 0.9) {
                    canvas.text((at, y + size * 0.36), "middle", name);
                }
            }
        }
        canvas.close();
    }

    /// Draws the control items: a line over the edge, and a mark at the receiver.
    fn marks(&self, canvas: &mut Canvas, layout: &Layout, taken: &mut Taken) {
        if self.control.is_empty() {
            return;
        }
        let size = frame::mark_size(layout);
        canvas.put(format_args!("{}", frame::marks(size, "")));
        for (kind, ink, _) in frame::MARKS {
            let all = || self.control.iter().filter(|it| it.item.name() == kind);
            let mut lines = String::new();
            for item in all() {
                let [from, to] = ends(layout, item);
                let [x, y, to_x, to_y] = [from.0, from.1, to.0, to.1].map(Num);
                let _ = write!(lines, "M{x},{y}L{to_x},{to_y}");
            }
            if lines.is_empty() {
                continue;
            }
            let width = Num((size * 0.3).clamp(0.2, 0.9));
            canvas.put(format_args!(
                "<path d=\"{lines}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"{width}\" \
                 stroke-opacity=\"0.6\"/>\n"
            ));
            canvas.open(format_args!("class=\"{kind}\""));
            for item in all() {
                let [_, (x, y)] = ends(layout, item);
                taken.take((x, y), 2.0 * size, 2.0 * size);
                let ([x, y], title) = ([x, y].map(Num), described(item));
                canvas.put(format_args!(
                    "<use href=\"#{kind}\" x=\"{x}\" y=\"{y}\"><title>{title}</title></use>\n"
                ));
            }
            canvas.close();
        }
    }

    /// Draws a certificate's lag or an order's s beside the mark.
    fn numbers(&self, canvas: &mut Canvas, layout: &Layout, taken: &mut Taken) {
        let size = (layout.row_height * 0.5).clamp(8.0, 10.0);
        let off = frame::mark_size(layout);
        canvas.open(format_args!("font-size=\"{}\" {}", Num(size), frame::HALO));
        for item in &self.control {
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
}

/// Returns the positions of a control item at its sender and at its receiver.
fn ends(layout: &Layout, item: &ControlPlan) -> [(f64, f64); 2] {
    let step = item.step as f64;
    [
        (layout.x(step - 0.5), layout.y(item.from)),
        (layout.x(step + 0.5), layout.y(item.to)),
    ]
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
