//! The places of bands in the picture: their shapes and their bars.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use flitcast_proto::{PeId, Tree};

use super::bands::{Band, Crossings};
use super::canvas::Num;
use super::layout::Layout;

/// The positions of the ends of bands: with many ports each port has its own lane in the row.
pub struct Places<'a> {
    pub layout: &'a Layout,
    /// The senders of each receiver; for a PE that receives nothing, its receivers.
    lanes: BTreeMap<PeId, Vec<PeId>>,
    /// The PEs that receive nothing.
    idle: BTreeSet<PeId>,
    is_multi_port: bool,
    has_sources: bool,
    /// The tree over whose edges bands go.
    pub tree: Option<&'a Tree>,
    /// Tolerance of a corner: it grows with the number of hops, because less of each is visible.
    near: f64,
    /// The height of a lane.
    lane: f64,
    /// The thickness of a bar.
    pub bar: f64,
}

impl<'a> Places<'a> {
    pub fn of(scene: &Crossings, layout: &'a Layout, tree: Option<&'a Tree>) -> Places<'a> {
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
