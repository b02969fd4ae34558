//! A link's latency, rate and burst from timed bursts, most of which are good.
//!
//! The curve is max(latency + pace * bytes, intercept + slope * bytes): up to the burst
//! bytes go at the software's pace, which on most links is next to nothing, and beyond
//! it at the link's rate. It is fitted in two stages, each of which withstands
//! outliers:
//!
//! 1. **Within a size**, by the densest half of its times, and the mean of those that
//!    agree with it. A disturbance makes some times longer by any amount; the others
//!    stay together. (The least time withstands that too, but it drifts with the
//!    number of repeats and is lost to a single low outlier.)
//! 2. **Across sizes**, by least absolute deviations, relative to the time: a size
//!    that was disturbed as a whole counts like one vote. Such a curve goes through as
//!    many sizes as it has parameters, so the best is found by looking at each of them.
//!
//! How sure this is, is found out by drawing the points of each size anew, with
//! replacement, and fitting again.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::cost::Link;
use crate::seeded::SplitMix64;

/// A burst of one direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How long it was.
    pub bytes: u64,
    /// What it took, from its first byte's departure to its last byte's arrival.
    pub ns: f64,
}

/// A value and where the truth lies in 95 of 100 cases.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The best value.
    pub value: f64,
    /// At most `value`.
    pub low: f64,
    /// At least `value`.
    pub high: f64,
}

impl Estimate {
    /// A value without a doubt.
    pub fn exact(value: f64) -> Estimate {
        Estimate {
            value,
            low: value,
            high: value,
        }
    }
}

/// One direction of an edge as it looks from outside: wire and software.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredLink {
    /// What the shortest message takes.
    pub latency_ns: Estimate,
    /// What a flit takes beside its bytes, one behind the other.
    pub setup_ns: Estimate,
    /// What each further byte takes, once the burst is used up.
    pub ns_per_byte: Estimate,
    /// What an idle link lets through before its rate holds.
    pub burst_bytes: Estimate,
}

impl MeasuredLink {
    /// The best values.
    pub fn value(&self) -> Link {
        Link {
            latency_ns: self.latency_ns.value,
            setup_ns: self.setup_ns.value,
            ns_per_byte: self.ns_per_byte.value,
            burst_bytes: self.burst_bytes.value,
        }
    }
}

/// A fitted direction of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFit {
    /// The parameters.
    pub link: MeasuredLink,
    /// For each point whether the fit rests on it: whether it agrees with the
    /// densest half of its size.
    pub used: Vec<bool>,
}

/// Points to which no link can be fitted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FitError {
    /// A line needs two.
    #[error("bursts of {found} sizes: at least two are needed")]
    TooFewSizes {
        /// How many there are.
        found: usize,
    },
    /// More than the search across sizes is made for.
    #[error("bursts of {found} sizes: at most {MAX_SIZES} are looked at")]
    TooManySizes {
        /// How many there are.
        found: usize,
    },
}

/// Sizes that are looked at: the search takes their fourth power.
pub const MAX_SIZES: usize = 24;
/// Fits of points drawn anew.
const RESAMPLES: usize = 200;
/// Of those, how many may lie outside of the interval at each end: 2.5 %.
const OUTSIDE: usize = RESAMPLES / 40;
/// A bend is believed if with it the deviations are at most this part of what they are
/// without: one more parameter always helps a little.
const BURST_HELPS: f64 = 0.7;

/// Fits a link. `seed` draws the points anew for the intervals: the same points and
/// seed give the same fit.
///
/// # Errors
///
/// Too few sizes, or too many.
pub fn fit_link(points: &[Point], seed: u64) -> Result<LinkFit, FitError> {
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.ns.is_finite()) {
        by_size.entry(point.bytes).or_default().push(point.ns);
    }
    let found = by_size.len();
    if found < 2 {
        return Err(FitError::TooFewSizes { found });
    }
    if found > MAX_SIZES {
        return Err(FitError::TooManySizes { found });
    }
    for times in by_size.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    let groups: Vec<Group> = by_size.iter().filter_map(|(&b, t)| group(b, t)).collect();
    let best = curve(&groups);
    let link = intervals(&by_size, &groups, best, SplitMix64::new(seed));
    let used = points.iter().map(|point| {
        let times = by_size.get(&point.bytes);
        let centre = times.and_then(|times| centre(times));
        centre.is_some_and(|centre| centre.holds(point.ns))
    });
    Ok(LinkFit {
        link,
        used: used.collect(),
    })
}

/// Where the times of one size are.
pub(super) struct Centre {
    /// The mean of those that agree.
    pub value: f64,
    /// All that agree are at least this.
    pub low: f64,
    /// And at most this.
    pub high: f64,
    agreeing: usize,
}

impl Centre {
    fn holds(&self, time: f64) -> bool {
        (self.low..=self.high).contains(&time)
    }
}

/// Where sorted times are densest; `None` of none.
pub(super) fn centre(times: &[f64]) -> Option<Centre> {
    let n = times.len();
    let half = n / 2 + 1;
    // Of two times there is no denser half; noise adds.
    let half = if n == 2 { 1 } else { half };
    let windows = times.windows(half);
    let densest = windows.min_by(|a, b| (a[half - 1] - a[0]).total_cmp(&(b[half - 1] - b[0])))?;
    let middle = median(densest);
    // Half of a normal distribution lies within 0.6745 standard deviations; of few
    // times the densest half is narrower than that.
    let deviation = (densest[half - 1] - densest[0]) / 2.0 / 0.6745 * (1.0 + 5.0 / n as f64);
    let (low, high) = (middle - 2.5 * deviation, middle + 2.5 * deviation);
    let agreeing: Vec<f64> = times
        .iter()
        .copied()
        .filter(|t| (low..=high).contains(t))
        .collect();
    Some(Centre {
        value: agreeing.iter().sum::<f64>() / agreeing.len() as f64,
        low,
        high,
        agreeing: agreeing.len(),
    })
}

/// Of sorted values, at least one.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// One size.
#[derive(Clone, Copy)]
struct Group {
    bytes: f64,
    ns: f64,
    weight: f64,
}

fn group(bytes: u64, sorted: &[f64]) -> Option<Group> {
    let centre = centre(sorted)?;
    // Deviations are relative; a time below a microsecond is not told from one.
    let weight = (centre.agreeing as f64).sqrt() / centre.value.max(1_000.0);
    Some(Group {
        bytes: bytes as f64,
        ns: centre.value,
        weight,
    })
}

/// max(latency + pace * bytes, intercept + slope * bytes).
#[derive(Clone, Copy)]
struct Curve {
    latency: f64,
    pace: f64,
    intercept: f64,
    slope: f64,
}

impl Curve {
    /// One line, without a burst.
    fn line(latency: f64, slope: f64) -> Curve {
        Curve {
            latency,
            pace: slope,
            intercept: latency,
            slope,
        }
    }

    fn at(&self, bytes: f64) -> f64 {
        (self.latency + self.pace * bytes).max(self.intercept + self.slope * bytes)
    }

    fn deviations(&self, groups: &[Group]) -> f64 {
        let deviation = |g: &Group| g.weight * (g.ns - self.at(g.bytes)).abs();
        groups.iter().map(deviation).sum()
    }

    fn burst(&self) -> f64 {
        match self.slope > 0.0 && self.latency > self.intercept {
            true => (self.latency - self.intercept) / self.slope,
            false => 0.0,
        }
    }
}

/// A curve and its deviations.
type Candidate = Option<(f64, Curve)>;

/// The curve with the least deviations. A further parameter has to earn its place: a
/// line; a bend, below which all sizes take the same; one, below which they have a
/// pace of their own.
fn curve(groups: &[Group]) -> Curve {
    let [mut straight, mut flat, mut paced]: [Candidate; 3] = [None; 3];
    let better = |best: &mut Candidate, curve: Curve| {
        let deviations = curve.deviations(groups);
        if best.is_none_or(|(least, _)| deviations < least) {
            *best = Some((deviations, curve));
        }
    };
    for (place, a) in groups.iter().enumerate() {
        for b in &groups[place + 1..] {
            let Some(slope) = slope(a, b) else { continue };
            let intercept = a.ns - slope * a.bytes;
            better(&mut straight, Curve::line(intercept.max(0.0), slope));
            let bent = |latency, pace| Curve {
                latency,
                pace,
                intercept,
                slope,
            };
            // At least two sizes on either side of the bend, or it is no bend.
            let bends = groups[1..groups.len().saturating_sub(2).max(1)].iter();
            for below in bends.filter(|below| below.ns > intercept) {
                better(&mut flat, bent(below.ns, 0.0));
            }
            // And three beyond the one that has most freedom: two of which one is wild
            // would lie on some line, too.
            if place + 3 > groups.len() {
                continue;
            }
            for (latency, pace) in paces(&groups[..place]) {
                if latency > intercept && latency + pace * a.bytes <= a.ns {
                    better(&mut paced, bent(latency, pace));
                }
            }
        }
    }
    // No two sizes are the same, so there is a line, unless all of them fall.
    let level = Curve::line(groups[0].ns, 0.0);
    let mut best = straight.unwrap_or((f64::INFINITY, level));
    for further in [flat, paced].into_iter().flatten() {
        if further.0 < BURST_HELPS * best.0 {
            best = further;
        }
    }
    best.1
}

/// Latency and pace of the lines through pairs of sizes.
fn paces(groups: &[Group]) -> impl Iterator<Item = (f64, f64)> {
    let pairs = groups.iter().enumerate();
    let pairs = pairs.flat_map(|(place, a)| groups[place + 1..].iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| {
        let pace = slope(a, b)?;
        Some(((a.ns - pace * a.bytes).max(0.0), pace))
    })
}

/// Of the line through two sizes; `None` if it falls.
fn slope(a: &Group, b: &Group) -> Option<f64> {
    let slope = (b.ns - a.ns) / (b.bytes - a.bytes);
    (slope.is_finite() && slope >= 0.0).then_some(slope)
}

/// The parameters of `best` with the spread that drawing anew gives them.
fn intervals(
    by_size: &BTreeMap<u64, Vec<f64>>,
    groups: &[Group],
    best: Curve,
    mut random: SplitMix64,
) -> MeasuredLink {
    let mut drawn_curves = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        let drawn = by_size.iter().filter_map(|(&bytes, times)| {
            let draw = |_: &f64| times[random.below(times.len() as u64) as usize];
            let mut drawn: Vec<f64> = times.iter().map(draw).collect();
            drawn.sort_by(f64::total_cmp);
            group(bytes, &drawn)
        });
        let drawn: Vec<Group> = drawn.collect();
        drawn_curves.push(curve(&drawn));
    }
    // Sizes with a point or two show no spread of their own; how far they are off the
    // curve does.
    let mut off: Vec<f64> = groups
        .iter()
        .map(|g| (g.ns / best.at(g.bytes).max(1.0) - 1.0).abs())
        .collect();
    off.sort_by(f64::total_cmp);
    let least = 2.0 * 1.4826 * median(&off) / (groups.len() as f64).sqrt();
    let estimate = |pick: fn(&Curve) -> f64| {
        let value = pick(&best);
        let mut all: Vec<f64> = drawn_curves.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        let below = (value - all[OUTSIDE]).max(0.0);
        let above = (all[RESAMPLES - 1 - OUTSIDE] - value).max(0.0);
        Estimate {
            value,
            low: (value - below.max(least * value)).max(0.0),
            high: value + above.max(least * value),
        }
    };
    MeasuredLink {
        latency_ns: estimate(|curve| curve.latency),
        // Of bursts in flits of one size nobody can tell.
        setup_ns: Estimate::default(),
        ns_per_byte: estimate(|curve| curve.slope),
        burst_bytes: estimate(Curve::burst),
    }
}

#[cfg(test)]
mod tests;
