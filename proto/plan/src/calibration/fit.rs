//! A fit of a link's latency, rate and burst to timed bursts with outliers.
//!
//! The curve is max(latency + pace * bytes, intercept + slope * bytes): up to the burst, bytes move
//! at the pace of the software, which is close to zero on most links, and beyond it at the rate of
//! the link. The fit has two stages, both robust against outliers:
//!
//! 1. **Within a size**, it uses the densest half of the times, and the mean of those that agree
//!    with it. A disturbance makes some times longer by any amount; the others stay together. (The
//!    minimum is robust, too, but it depends on the number of repeats, and a single low outlier
//!    spoils it.)
//! 2. **Across sizes**, it minimises the absolute deviations, relative to the time: a size that was
//!    disturbed as a whole counts like one vote. An optimal curve passes through as many sizes as
//!    it has parameters, so the best one is found by trying each of these curves.
//!
//! The uncertainty is estimated by bootstrap: the points of each size are resampled with
//! replacement and fitted again.

use std::collections::BTreeMap;

use flitcast_proto::seeded::SplitMix64;
use thiserror::Error;

use crate::cost::Link;

/// A timed burst in one direction of an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Length of the burst.
    pub bytes: u64,
    /// Time from the departure of its first byte to the arrival of its last.
    pub ns: f64,
}

/// A value with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Best value.
    pub value: f64,
    /// Lower end of the interval, at most `value`.
    pub low: f64,
    /// Upper end of the interval, at least `value`.
    pub high: f64,
}

impl Estimate {
    /// Returns a value without uncertainty.
    pub fn exact(value: f64) -> Estimate {
        Estimate {
            value,
            low: value,
            high: value,
        }
    }
}

/// One direction of an edge as measured from outside: wire and software.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeasuredLink {
    /// Time of the shortest message.
    pub latency_ns: Estimate,
    /// Time of a flit besides its bytes, in a stream of flits.
    pub setup_ns: Estimate,
    /// Time of each further byte after the burst.
    pub ns_per_byte: Estimate,
    /// Bytes that an idle link transfers before its rate applies.
    pub burst_bytes: Estimate,
}

impl MeasuredLink {
    /// Returns the best values.
    pub fn value(&self) -> Link {
        Link {
            latency_ns: self.latency_ns.value,
            setup_ns: self.setup_ns.value,
            ns_per_byte: self.ns_per_byte.value,
            burst_bytes: self.burst_bytes.value,
        }
    }
}

/// The fit of one direction of an edge.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFit {
    /// The parameters.
    pub link: MeasuredLink,
    /// Whether each point is part of the fit: whether it agrees with the densest half of its size.
    pub used: Vec<bool>,
}

/// The reason why there is no fit, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FitError(String);

/// Maximum number of sizes: the cost of the search grows with their fourth power.
const MAX_SIZES: usize = 24;
const RESAMPLES: usize = 200;
/// Number of resampled fits outside of the interval at each end: 2.5 %.
const OUTSIDE: usize = RESAMPLES / 40;
/// A bend is accepted if it reduces the deviations to this fraction or less, because one more
/// parameter always helps a little.
const BURST_HELPS: f64 = 0.7;

/// Fits a link. `seed` determines the resampling: the same points and seed give the same fit.
///
/// # Errors
///
/// Returns an error if there are too few sizes, or too many.
pub fn fit_link(points: &[Point], seed: u64) -> Result<LinkFit, FitError> {
    let mut by_size: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for point in points.iter().filter(|point| point.ns.is_finite()) {
        by_size.entry(point.bytes).or_default().push(point.ns);
    }
    let found = by_size.len();
    let fault = match found {
        0..2 => Some(": at least two are needed".to_owned()),
        2..=MAX_SIZES => None,
        _ => Some(format!("; the limit is {MAX_SIZES}")),
    };
    if let Some(fault) = fault {
        return Err(FitError(format!("bursts of {found} sizes{fault}")));
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

/// Returns times in order.
pub(super) fn sorted(times: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    times
}

/// The centre of the times of one size.
pub(super) struct Centre {
    /// Mean of the times that agree.
    pub value: f64,
    /// Minimum of the times that agree.
    pub low: f64,
    /// Maximum of the times that agree.
    pub high: f64,
    agreeing: usize,
}

impl Centre {
    fn holds(&self, time: f64) -> bool {
        (self.low..=self.high).contains(&time)
    }
}

/// Returns the densest place of sorted times; `None` if there are none.
pub(super) fn centre(times: &[f64]) -> Option<Centre> {
    let n = times.len();
    let half = n / 2 + 1;
    // Two times have no denser half; noise only lengthens times.
    let half = if n == 2 { 1 } else { half };
    let windows = times.windows(half);
    let densest = windows.min_by(|a, b| (a[half - 1] - a[0]).total_cmp(&(b[half - 1] - b[0])))?;
    let middle = median(densest);
    // Half of a normal distribution is within 0.6745 standard deviations; with few times the
    // densest half is narrower than that.
    let deviation = (densest[half - 1] - densest[0]) / 2.0 / 0.6745 * (1.0 + 5.0 / n as f64);
    let (low, high) = (middle - 2.5 * deviation, middle + 2.5 * deviation);
    let agreeing = times.iter().copied().filter(|t| (low..=high).contains(t));
    let agreeing: Vec<f64> = agreeing.collect();
    Some(Centre {
        value: agreeing.iter().sum::<f64>() / agreeing.len() as f64,
        low,
        high,
        agreeing: agreeing.len(),
    })
}

/// Returns the median of sorted values, of which there must be at least one.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// The times of one size.
#[derive(Clone, Copy)]
struct Group {
    bytes: f64,
    ns: f64,
    weight: f64,
}

fn group(bytes: u64, sorted: &[f64]) -> Option<Group> {
    let centre = centre(sorted)?;
    // Deviations are relative; times below a microsecond count as one microsecond.
    let weight = (centre.agreeing as f64).sqrt() / centre.value.max(1_000.0);
    Some(Group {
        bytes: bytes as f64,
        ns: centre.value,
        weight,
    })
}

/// The curve max(latency + pace * bytes, intercept + slope * bytes).
#[derive(Clone, Copy)]
struct Curve {
    latency: f64,
    pace: f64,
    intercept: f64,
    slope: f64,
}

impl Curve {
    /// Returns a line without a burst.
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

/// Returns the curve with the smallest deviations. Each further parameter must reduce them clearly:
/// a line; a bend with a constant time below it; a bend with a separate pace below it.
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
            // Larger sizes that were disturbed must not hide the time of the smallest.
            let latency = match intercept > 0.0 {
                true => intercept,
                false => (groups[0].ns - slope * groups[0].bytes).max(0.0),
            };
            better(&mut straight, Curve::line(latency, slope));
            let bent = |latency, pace| Curve {
                latency,
                pace,
                intercept,
                slope,
            };
            // A bend needs at least two sizes on either side.
            let bends = groups[1..groups.len().saturating_sub(2).max(1)].iter();
            for below in bends.filter(|below| below.ns > intercept) {
                better(&mut flat, bent(below.ns, 0.0));
            }
            // The curve with most parameters needs at least three sizes beyond the bend: two, one
            // of them an outlier, would always lie on some line.
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
    // All sizes differ, so a line exists, unless every pair has a negative slope.
    let level = Curve::line(groups[0].ns, 0.0);
    let mut best = straight.unwrap_or((f64::INFINITY, level));
    for further in [flat, paced].into_iter().flatten() {
        if further.0 < BURST_HELPS * best.0 {
            best = further;
        }
    }
    best.1
}

/// Returns latency and pace of the lines through pairs of sizes.
fn paces(groups: &[Group]) -> impl Iterator<Item = (f64, f64)> {
    let pairs = groups.iter().enumerate();
    let pairs = pairs.flat_map(|(place, a)| groups[place + 1..].iter().map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| {
        let pace = slope(a, b)?;
        Some(((a.ns - pace * a.bytes).max(0.0), pace))
    })
}

/// Returns the slope of the line through two sizes; `None` if it is negative.
fn slope(a: &Group, b: &Group) -> Option<f64> {
    let slope = (b.ns - a.ns) / (b.bytes - a.bytes);
    (slope.is_finite() && slope >= 0.0).then_some(slope)
}

/// Returns the parameters of `best` with the intervals of resampling.
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
            group(bytes, &sorted(times.iter().map(draw)))
        });
        let drawn: Vec<Group> = drawn.collect();
        drawn_curves.push(curve(&drawn));
    }
    // Sizes with one or two points show no variation themselves; their deviation from the curve is
    // used instead.
    let off = |g: &Group| (g.ns / best.at(g.bytes).max(1.0) - 1.0).abs();
    let off = median(&sorted(groups.iter().map(off)));
    let least = 2.0 * 1.4826 * off / (groups.len() as f64).sqrt();
    let estimate = |pick: fn(&Curve) -> f64| {
        let value = pick(&best);
        let all = sorted(drawn_curves.iter().map(pick));
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
        // Bursts with flits of one size do not determine the set-up time.
        setup_ns: Estimate::default(),
        ns_per_byte: estimate(|curve| curve.slope),
        burst_bytes: estimate(Curve::burst),
    }
}

#[cfg(test)]
mod tests;
