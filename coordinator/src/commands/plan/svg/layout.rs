//! Positions in the picture: a row for each PE, time to the right. Nothing is drawn here.

use flitcast_proto::{PeId, Tree};

use super::canvas::text_width;
use super::sheet::{Axis, Sheet};
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
    /// Measures a sheet; `top` is the height of its head. The rows of a crowded one are in groups.
    pub fn new(sheet: &Sheet, top: f64, is_crowded: bool) -> Self {
        let rows = match &sheet.tree {
            Some(tree) => depth_first(tree),
            None => (0..sheet.pes as u32).map(PeId).collect(),
        };
        let mut row_of = vec![0; sheet.pes];
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
        let steps = match sheet.axis.behind(sheet.last()) {
            // Nothing happens, and takes no time.
            0.0 => 1.0,
            steps => steps,
        };
        let step_width = match sheet.axis {
            Axis::Steps => (GOOD_WIDTH / steps).clamp(GOOD_COLUMN, MAX_COLUMN),
            // The number of events in a unit of time is unknown.
            Axis::Time => GOOD_WIDTH / steps,
        };
        let step_width = step_width.min(MAX_WIDTH / steps);

        let depths = sheet.tree.iter().flat_map(|tree| {
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
        let widths = rows
            .iter()
            .step_by(every)
            .map(|pe| text_width(&name(*pe), name_size));
        let longest = widths.fold(text_width(sheet.axis.name(), 11.0), f64::max);
        let left = MARGIN + levels * level_width + 10.0 + longest + 8.0;
        let right = left + steps * step_width;
        Layout {
            row_of,
            row_height,
            step_width,
            axis: sheet.axis,
            last: sheet.last(),
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

    /// Returns the position of a PE of this depth in the tree at the side.
    pub fn tree_x(&self, depth: u32) -> f64 {
        MARGIN + f64::from(depth) * self.level_width
    }

    /// Returns whether there is room for texts between two rows.
    pub fn is_roomy(&self) -> bool {
        self.row_height >= 13.0
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
            let short = number.trim_end_matches('0').trim_end_matches('.');
            (
                tick,
                if is_fraction {
                    short.to_owned()
                } else {
                    number
                },
            )
        })
    }

    /// Returns the position of the number of a step or a time.
    pub fn tick_x(&self, tick: f64) -> f64 {
        match self.axis {
            Axis::Steps => self.x(tick + 0.5),
            Axis::Time => self.x(tick),
        }
    }

    /// Returns the position of the end of a step, or of a time.
    pub fn end_x(&self, last: f64) -> f64 {
        self.x(self.axis.behind(last))
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
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * decade >= least);
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
}
