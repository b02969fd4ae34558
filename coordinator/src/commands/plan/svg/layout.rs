//! Positions in the picture: a row for each PE, time to the right; and the shapes and bars of bands. Nothing is drawn
//! here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use flitcast_proto::{PeId, Tree};

use super::canvas::{Num, text_width};
use super::{Axis, Band, Scene};
use flitcast_cluster::text::figures::shortened;
use flitcast_cluster::text::pe_names::called;

/// Maximum height of a row: beyond it the bands get steep without showing more.
const MAX_ROW: f64 = 52.0;
/// Height of a row with a readable name.
const NAMED_ROW: f64 = 16.0;
/// Total height of the rows while they may still shrink.
const GOOD_HEIGHT: f64 = 1000.0;
/// Maximum total height: about the resolution of a large printed page.
const MAX_HEIGHT: f64 = 1600.0;

/// Range of the height of a row in groups, which has few bands beside it.
const GROUPED_ROW: [f64; 2] = [12.5, 22.0];
const GROUPED_HEIGHT: f64 = 800.0;
/// Rows in a group, if there are no more than [`MOST_GROUPS`].
const GROUP: usize = 8;
const MOST_GROUPS: usize = 24;
const GROUP_GAP: f64 = 7.0;
/// Limit of characters of a PE's name.
const MAX_NAME: usize = 24;

/// The corresponding values for columns; a message of one flit is still visible in 6.
const MAX_COLUMN: f64 = 40.0;
const GOOD_COLUMN: f64 = 6.0;
const GOOD_WIDTH: f64 = 1100.0;
const MAX_WIDTH: f64 = 2000.0;

/// Room for the legend beside few steps.
const MIN_SHEET: f64 = 620.0;
/// Maximum width of the tree at the side.
const MAX_TREE_WIDTH: f64 = 110.0;
const TREE_LEVEL: f64 = 12.0;

/// The height of title, summary and the labels of the marker lines.
pub const HEAD: f64 = 98.0;
/// Margin of the sheet.
pub const MARGIN: f64 = 20.0;

/// The measures of a picture, in its own units (pixels at 100%).
pub struct Layout {
    /// The PEs from top to bottom.
    pub rows: Vec<PeId>,
    /// The row of each PE, by index.
    row_of: Vec<usize>,
    pub row_height: f64,
    /// The width of a step, or of a unit of time.
    pub step_width: f64,
    axis: Axis,
    /// The last step that is shown; the first is 0, in which the sources hold what
    /// they send in step 1. Or the time at which all is over.
    last: f64,
    /// The edges of the plot.
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
    pub width: f64,
    /// Horizontal distance of two levels of the tree at the side.
    pub level_width: f64,
    /// Font size of the PEs' names.
    pub name_size: f64,
    /// The number of rows that follow each other without a gap.
    group: usize,
    /// Distance in rows at which names fit.
    every: usize,
}

impl Layout {
    /// Measures a picture. The rows of a crowded one are in groups.
    pub fn new(scene: &Scene, is_crowded: bool) -> Self {
        // Names of phases are above the rows.
        let top = HEAD + if scene.phases.is_empty() { 0.0 } else { 14.0 };
        let rows = match &scene.tree {
            Some(tree) => depth_first(tree),
            None => (0..scene.pes as u32).map(PeId).collect(),
        };
        let mut row_of = vec![0; scene.pes];
        for (row, pe) in rows.iter().enumerate() {
            row_of[pe.index()] = row;
        }
        let count = rows.len() as f64;
        let (good, [least, most]) = match is_crowded {
            true => (GROUPED_HEIGHT, GROUPED_ROW),
            false => (GOOD_HEIGHT, [NAMED_ROW, MAX_ROW]),
        };
        let group = match is_crowded {
            true => GROUP.max(rows.len().div_ceil(MOST_GROUPS)),
            false => rows.len(),
        };
        let row_height = (good / count).clamp(least, most);
        let row_height = row_height.min(MAX_HEIGHT / count);
        let steps = match scene.axis.behind(scene.last()) {
            // Nothing happens, and takes no time.
            0.0 => 1.0,
            steps => steps,
        };
        let step_width = match scene.axis {
            Axis::Steps => (GOOD_WIDTH / steps).clamp(GOOD_COLUMN, MAX_COLUMN),
            // The number of events in a unit of time is unknown.
            Axis::Time => GOOD_WIDTH / steps,
        };
        let step_width = step_width.min(MAX_WIDTH / steps);

        let depths = scene.tree.iter().flat_map(|tree| {
            let depths = tree.pes().map(|pe| tree.depth(pe).max(1));
            depths.max()
        });
        let levels = f64::from(depths.max().unwrap_or(0));
        let level_width = (MAX_TREE_WIDTH / levels.max(1.0)).min(TREE_LEVEL);
        let name_size = (row_height - 4.0).clamp(8.0, 12.0);
        let every = match nice((name_size + 1.0) / row_height).max(1.0) as usize {
            2.. if is_crowded => group,
            every => every,
        };
        let named = rows.iter().step_by(every);
        let widths = named.map(|pe| text_width(&name(*pe), name_size));
        let longest = widths.fold(text_width(scene.axis.name(), 11.0), f64::max);
        let left = MARGIN + levels * level_width + 10.0 + longest + 8.0;
        let right = left + steps * step_width;
        Layout {
            row_of,
            row_height,
            step_width,
            axis: scene.axis,
            last: scene.last(),
            left,
            right,
            top,
            bottom: top + middle_of(rows.len() - 1, row_height, group) + row_height / 2.0,
            width: (right + MARGIN + 8.0).max(MIN_SHEET),
            level_width,
            name_size,
            every,
            group,
            rows,
        }
    }

    /// Returns the left edge of a step's column, or the position of a time.
    pub fn x(&self, step: f64) -> f64 {
        self.left + step * self.step_width
    }

    /// Returns the middle of a PE's row.
    pub fn y(&self, pe: PeId) -> f64 {
        self.top + middle_of(self.row(pe), self.row_height, self.group)
    }

    /// Returns the PE's row, counted from the top.
    pub fn row(&self, pe: PeId) -> usize {
        self.row_of[pe.index()]
    }

    /// Returns the steps or times that get a number, every 1st, 2nd, 5th, 10th and so on, and the
    /// number.
    pub fn ticks(&self, size: f64) -> impl Iterator<Item = (f64, String)> + use<> {
        let least = match self.axis {
            Axis::Steps => 1.0,
            Axis::Time => 0.0,
        };
        let apart = |digits: usize| {
            let label = format!("{:.*}", digits, self.last);
            nice((text_width(&label, size) + 10.0) / self.step_width).max(least)
        };
        // Numbers with more digits have to be further apart, and then need no more digits.
        let apart = apart(decimals(apart(0)));
        let digits = decimals(apart);
        (0..=(self.last / apart) as u64).map(move |k| {
            let tick = k as f64 * apart;
            let number = format!("{tick:.digits$}");
            let is_fraction = number.contains('.');
            let short = || number.trim_end_matches('0').trim_end_matches('.');
            match is_fraction {
                true => (tick, short().to_owned()),
                false => (tick, number),
            }
        })
    }

    /// Returns the position of the number of a step or a time.
    pub fn tick_x(&self, tick: f64) -> f64 {
        match self.axis {
            Axis::Steps => self.x(tick + 0.5),
            Axis::Time => self.x(tick),
        }
    }

    /// Returns the PEs whose names are beside their rows, and the names.
    pub fn named(&self) -> impl Iterator<Item = (PeId, String)> {
        let named = self.rows.iter().step_by(self.every);
        named.map(|pe| (*pe, name(*pe)))
    }

    /// Returns whether the rows are in groups, because there are too many crossings to draw.
    pub fn is_crowded(&self) -> bool {
        self.group < self.rows.len()
    }
}

/// Returns the height of the middle of a row.
fn middle_of(row: usize, row_height: f64, group: usize) -> f64 {
    (row as f64 + 0.5) * row_height + (row / group) as f64 * GROUP_GAP
}

/// Returns a PE with its name, which may be shortened.
fn name(pe: PeId) -> String {
    shortened(&called(pe), MAX_NAME)
}

/// Returns the least of .. 0.5, 1, 2, 5, 10, 20, 50 .. that is not below `least`, which is above 0.
fn nice(least: f64) -> f64 {
    let decade = 10f64.powi(least.log10().floor() as i32);
    let mut factors = [1.0, 2.0, 5.0].into_iter();
    let factor = factors.find(|factor| factor * decade >= least);
    factor.unwrap_or(10.0) * decade
}

/// Returns the number of decimals of a `nice` number.
fn decimals(nice: f64) -> usize {
    (-nice.log10()).ceil().max(0.0) as usize
}

/// Returns all PEs, every subtree in one piece. Smaller subtrees are nearer to their root: between a PE
/// and its parent is then no subtree larger than its own, so that most hops lead to a near row.
fn depth_first(tree: &Tree) -> Vec<PeId> {
    let sizes = tree.subtree_sums(|_| 1);
    let mut rows = Vec::with_capacity(tree.len());
    let mut open = vec![tree.root()];
    while let Some(pe) = open.pop() {
        rows.push(pe);
        let first = open.len();
        open.extend_from_slice(tree.children(pe));
        let children = &mut open[first..];
        children.sort_by_key(|child| (sizes[child.index()], child.0));
        children.reverse();
    }
    rows
}

/// The positions of the ends of bands: with many ports each port has its own lane in the row.
pub struct Places<'a> {
    pub layout: &'a Layout,
    /// The senders of each receiver; for a PE that receives nothing, its receivers.
    lanes: BTreeMap<PeId, Vec<PeId>>,
    /// The PEs that receive nothing.
    idle: BTreeSet<PeId>,
    scene: &'a Scene,
    /// Tolerance of a corner: it grows with the number of hops, because less of each is visible.
    near: f64,
    /// The height of a lane.
    lane: f64,
    /// The thickness of a bar.
    pub bar: f64,
}

impl<'a> Places<'a> {
    pub fn of(scene: &'a Scene, layout: &'a Layout) -> Places<'a> {
        let tree = scene.tree.as_ref();
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
            scene,
            near: (hops.sum::<f64>() / 20_000.0).clamp(0.2, 3.0),
            lane,
            bar: (lane * 0.8).min(13.0),
        }
    }

    /// Returns the middle of the lane of a PE's row that leads to another PE.
    fn y(&self, pe: PeId, other: PeId) -> f64 {
        let middle = self.layout.y(pe);
        match self.lanes.get(&pe).filter(|_| self.scene.is_multi_port) {
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
        let Some(tree) = &self.scene.tree else {
            return vec![from, to];
        };
        let is_up = tree.depth(from) > tree.depth(to);
        let [top, bottom] = if is_up { [to, from] } else { [from, to] };
        let mut way = vec![bottom];
        let above = std::iter::successors(tree.parent(bottom), |pe| tree.parent(*pe));
        way.extend(above.take(tree.depth(bottom).saturating_sub(tree.depth(top)) as usize));
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

    pub fn shape(&self, band: &Band) -> String {
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
    pub fn bars(&self, band: &Band) -> impl Iterator<Item = ([f64; 2], f64)> {
        let own = self.scene.has_sources || self.idle.contains(&band.from);
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
    use flitcast_proto::tree::TreeSpec;

    use super::*;

    #[test]
    fn subtrees_are_contiguous_and_sorted_by_size() {
        let tree: TreeSpec = "parents:0,0,1,3,2,0".parse().unwrap();
        let rows = depth_first(&tree.build().unwrap());
        let rows: Vec<u32> = rows.into_iter().map(|pe| pe.0).collect();
        assert_eq!(rows, [0, 6, 2, 5, 1, 3, 4]);
    }

    #[test]
    fn ticks_are_round() {
        let cases = [
            (0.03, 0.05),
            (1.0, 1.0),
            (1.2, 2.0),
            (3.0, 5.0),
            (6.0, 10.0),
            (51.0, 100.0),
        ];
        for (least, expected) in cases {
            assert_eq!(nice(least), expected);
        }
    }

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
