//! The space-time diagram of any list of crossings: flits that wait on their way or use many ports,
//! packets with a set-up cost, steps of packets.
//!
//! A band leaves its sender's row and ends in a bar at its receiver's; a PE that receives nothing has
//! bars where it sends. A band over several edges of the tree at the side has a bar at each PE on its way.
//! The creator of the [`Crossings`] computes all times; nothing is scheduled here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::ensure;
use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::{PeId, Tree};

use super::canvas::{Canvas, Escaped, Num, Taken, bold_width, text_width};
use super::layout::Layout;
use super::sheet::{Entry, Icon, Moment, Sheet};
use super::{control, frame};
use crate::render::colours::PALETTE;

/// Limit of bands in a readable picture: 2 MB.
pub const MAX_BANDS: usize = 20_000;
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

/// Bands over the edges of a tree or network, and what they mean.
#[derive(Default)]
pub struct Crossings {
    /// The successive phases, each by its end.
    pub phases: Vec<Moment>,
    /// Whether a PE receives from several neighbours at once.
    pub is_multi_port: bool,
    pub classes: Vec<String>,
    /// The legend of a band.
    pub what: &'static str,
    pub bands: Vec<Band>,
    /// Whether a band also has a bar where it is sent first.
    pub has_sources: bool,
    /// Control items that cross in steps.
    pub control: Vec<ControlPlan>,
}

/// Something that crosses an edge, or several edges of a tree without a stop.
pub struct Band {
    /// The colour; `None` for the set-up of a packet.
    pub class: Option<usize>,
    pub name: String,
    pub from: PeId,
    pub to: PeId,
    /// Begin and end at the sender,
    pub out: [f64; 2],
    /// and at the receiver.
    pub into: [f64; 2],
}

impl Crossings {
    /// Adds a band from one PE to another, with its begin and end at both.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture would be too crowded to see anything.
    pub fn add(
        &mut self,
        (class, name): (usize, String),
        [from, to]: [PeId; 2],
        [out, into]: [[f64; 2]; 2],
    ) -> anyhow::Result<()> {
        let class = Some(class);
        self.push(Band {
            class,
            name,
            from,
            to,
            out,
            into,
        })
    }

    /// Adds the band of a set-up: the sender is busy, and nothing arrives yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture would be too crowded to see anything.
    pub fn add_setup(&mut self, [from, to]: [PeId; 2], out: [f64; 2]) -> anyhow::Result<()> {
        let (class, name, into) = (None, String::new(), [out[1]; 2]);
        self.push(Band {
            class,
            name,
            from,
            to,
            out,
            into,
        })
    }

    fn push(&mut self, band: Band) -> anyhow::Result<()> {
        ensure!(
            self.bands.len() < MAX_BANDS,
            "a drawing of more than {MAX_BANDS} crossings shows nothing: use --summary or \
             --format json"
        );
        self.bands.push(band);
        Ok(())
    }

    /// Returns the room for the names of phases above the rows.
    pub fn head(&self) -> f64 {
        match self.phases.is_empty() {
            true => 0.0,
            false => 14.0,
        }
    }

    /// Returns whether crossings of one class alone are drawn, and rows are in groups.
    pub fn is_crowded(&self, sheet: &Sheet) -> bool {
        let is_crowded = sheet.tree.is_none() || self.bands.len() > MAX_CROSSINGS;
        sheet.pes > MAX_ROWS && !self.has_sources && is_crowded
    }

    /// Returns the class whose crossings are drawn if those of all would cover each other.
    fn example(&self) -> Option<usize> {
        self.bands.iter().filter_map(|band| band.class).min()
    }

    /// Draws the bands on their sheet.
    pub fn draw(&self, canvas: &mut Canvas, layout: &Layout, sheet: &Sheet) {
        self.phases(canvas, layout);
        let places = Places::of(self, layout, sheet.tree.as_ref());
        self.bands(canvas, layout, &places);
        frame::markers(canvas, layout, sheet);
        self.phase_names(canvas, layout);
        let mut taken = Taken::default();
        control::marks(canvas, layout, &self.control, &mut taken);
        if places.bar >= 7.0 && self.bands.len() <= MAX_NAMED {
            self.names(canvas, &places, &mut taken);
        }
        if layout.is_roomy() {
            control::numbers(canvas, layout, &self.control, &mut taken);
        }
    }

    /// Merges bands that follow each other without a gap.
    pub fn merge(&mut self) {
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
    pub fn legend(&self, is_crowded: bool) -> Vec<Entry> {
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
            let all = used
                .iter()
                .filter(move |class| *class % PALETTE.len() == first);
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
        let marks = control::legend(&self.control);
        band.into_iter()
            .chain(only)
            .chain(setup)
            .chain(colours)
            .chain(marks)
            .collect()
    }

    /// Returns the begin and the end of each phase.
    fn spans(&self, layout: &Layout) -> Vec<[f64; 2]> {
        let begins = self.phases.iter().map(|phase| phase.at);
        let begins = [0.0].into_iter().chain(begins);
        let spans = begins.zip(&self.phases);
        spans
            .map(|(begin, phase)| [layout.x(begin), layout.x(phase.at)])
            .collect()
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
        let (opacity, rim) = match places.tree {
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
            let end = if is_short {
                source(&band.name)
            } else {
                band.name.len()
            };
            let name = &band.name[..end];
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
}

/// The positions of the ends of bands: with many ports each port has its own lane in the row.
struct Places<'a> {
    layout: &'a Layout,
    /// The senders of each receiver; for a PE that receives nothing, its receivers.
    lanes: BTreeMap<PeId, Vec<PeId>>,
    /// The PEs that receive nothing.
    idle: BTreeSet<PeId>,
    is_multi_port: bool,
    has_sources: bool,
    /// The tree over whose edges bands go.
    tree: Option<&'a Tree>,
    /// Tolerance of a corner: it grows with the number of hops, because less of each is visible.
    near: f64,
    /// The height of a lane.
    lane: f64,
    /// The thickness of a bar.
    bar: f64,
}

impl<'a> Places<'a> {
    fn of(scene: &Crossings, layout: &'a Layout, tree: Option<&'a Tree>) -> Places<'a> {
        let bands = || scene.bands.iter();
        let receivers: BTreeSet<PeId> = bands().map(|band| band.to).collect();
        let senders = bands().map(|band| band.from);
        let idle: BTreeSet<PeId> = senders.filter(|pe| !receivers.contains(pe)).collect();
        let mut lanes: BTreeMap<PeId, BTreeSet<PeId>> = BTreeMap::new();
        for band in bands() {
            lanes.entry(band.to).or_default().insert(band.from);
            if idle.contains(&band.from) {
                lanes.entry(band.from).or_default().insert(band.to);
            }
        }
        let lanes = lanes.into_iter().map(|(pe, others)| {
            let mut others: Vec<PeId> = others.into_iter().collect();
            others.sort_by_key(|other| layout.row(*other));
            (pe, others)
        });
        let lanes: BTreeMap<PeId, Vec<PeId>> = lanes.collect();
        let most = match scene.is_multi_port {
            true => lanes.values().map(Vec::len).max().unwrap_or(1),
            false => 1,
        };
        let lane = layout.row_height * 0.6 / most as f64;
        let hops = bands().filter_map(|band| {
            let [from, to] = [band.from, band.to].map(|pe| tree.map(|tree| tree.depth(pe)));
            Some(f64::from(from?.abs_diff(to?)))
        });
        Places {
            layout,
            lanes,
            idle,
            is_multi_port: scene.is_multi_port,
            has_sources: scene.has_sources,
            tree,
            near: (hops.sum::<f64>() / 20_000.0).clamp(0.2, 3.0),
            lane,
            bar: (lane * 0.8).min(13.0),
        }
    }

    /// Returns the middle of the lane of a PE's row that leads to another PE.
    fn y(&self, pe: PeId, other: PeId) -> f64 {
        let middle = self.layout.y(pe);
        match self.lanes.get(&pe).filter(|_| self.is_multi_port) {
            Some(lanes) => {
                let place = lanes.iter().position(|one| *one == other).unwrap_or(0);
                let off = place as f64 - (lanes.len() - 1) as f64 / 2.0;
                middle + off * self.lane
            }
            None => middle,
        }
    }

    /// Returns the heights of the begin and the end of a band.
    fn ends(&self, band: &Band) -> [f64; 2] {
        let from = match self.idle.contains(&band.from) {
            true => self.y(band.from, band.to),
            false => self.layout.y(band.from),
        };
        [from, self.y(band.to, band.from)]
    }

    /// Returns the PEs on the way of a band, its ends included.
    fn way(&self, band: &Band) -> Vec<PeId> {
        let [from, to] = [band.from, band.to];
        let Some(tree) = self.tree else {
            return vec![from, to];
        };
        let is_up = tree.depth(from) > tree.depth(to);
        let [top, bottom] = if is_up { [to, from] } else { [from, to] };
        let mut way = vec![bottom];
        way.extend(
            std::iter::successors(tree.parent(bottom), |pe| tree.parent(*pe))
                .take(tree.depth(bottom).saturating_sub(tree.depth(top)) as usize),
        );
        if !is_up {
            way.reverse();
        }
        way
    }

    /// Returns where a band is at each PE on its way: begin and end, and the height.
    fn stops(&self, band: &Band) -> Vec<([f64; 2], f64)> {
        let way = self.way(band);
        let last = way.len() - 1;
        let stop = |(hop, pe): (usize, &PeId)| {
            let y = match self.ends(band) {
                [y, _] if hop == 0 => y,
                [_, y] if hop == last => y,
                _ => self.layout.y(*pe),
            };
            let part = hop as f64 / last as f64;
            let span = [0, 1].map(|end| band.out[end] + (band.into[end] - band.out[end]) * part);
            (span.map(|at| self.layout.x(at)), y)
        };
        way.iter().enumerate().map(stop).collect()
    }

    fn shape(&self, band: &Band) -> String {
        let stops = self.stops(band);
        let left: Vec<(f64, f64)> = stops.iter().map(|([x, _], y)| (*x, *y)).collect();
        let corners = corners(&left, self.near);
        let right = corners.iter().rev().map(|corner| stops[*corner]);
        let right = right.map(|([_, x], y)| (x, y));
        let mut shape = String::new();
        let mut pen = 'M';
        for (x, y) in corners.iter().map(|corner| left[*corner]).chain(right) {
            // Writing to a String cannot fail.
            let _ = write!(shape, "{pen}{},{}", Num(x), Num(y));
            pen = 'L';
        }
        shape.push('Z');
        shape
    }

    /// Returns the bars at the receivers, and that at a sender that receives nothing.
    fn bars(&self, band: &Band) -> impl Iterator<Item = ([f64; 2], f64)> {
        let own = self.has_sources || self.idle.contains(&band.from);
        let stops = self.stops(band).into_iter().skip(usize::from(!own));
        stops.rev()
    }
}

/// Returns the points that are visible as corners, lest the bands of a deep tree fill megabytes. The points
/// are one step apart; a straight piece continues as long as some line from its beginning passes all its
/// points within `near`.
fn corners(points: &[(f64, f64)], near: f64) -> Vec<usize> {
    let mut kept = vec![0];
    let mut begin = 0;
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for (index, &(_, y)) in points.iter().enumerate().skip(1) {
        let rise = |begin: usize, off: f64| (y + off - points[begin].1) / (index - begin) as f64;
        if !(low..=high).contains(&rise(begin, 0.0)) {
            begin = index - 1;
            kept.push(begin);
            (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
        }
        low = low.max(rise(begin, -near));
        high = high.min(rise(begin, near));
    }
    if points.len() > 1 {
        kept.push(points.len() - 1);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::corners;

    #[test]
    fn straight_ways_are_straight_lines() {
        let straight: Vec<(f64, f64)> = (0..999)
            .map(|i| (f64::from(i), 2.0 * f64::from(i)))
            .collect();
        assert_eq!(corners(&straight, 0.2), [0, 998]);
        let bent = [(0.0, 0.0), (1.0, 16.0), (2.0, 64.0)];
        assert_eq!(corners(&bent, 0.2), [0, 1, 2]);
    }
}
