//! Fits of links with known parameters, measured with noise and outliers.

use super::*;
use crate::tests::link;

/// A link and the conditions of its measurement.
#[derive(Clone, Copy, Debug)]
struct Weather {
    link: Link,
    repeats: usize,
    /// Maximum noise of every time, relative to it.
    noise: f64,
    /// Maximum noise of every time in nanoseconds.
    jitter_ns: f64,
    /// Number of outliers among 100 times.
    wild_pct: u64,
}

fn uniform(random: &mut SplitMix64) -> f64 {
    random.below(1 << 53) as f64 / (1u64 << 53) as f64
}

/// Measures a link. Noise is the sum of three uniform numbers: bell-shaped without long tails. An
/// outlier is 1.2 to 20 times too long; one in ten outliers is too short.
fn measure(weather: Weather, random: &mut SplitMix64) -> Vec<Point> {
    let Weather { link, .. } = weather;
    let sizes = std::iter::once(24).chain((0..11).map(|k| 1024u64 << k));
    let mut points = Vec::new();
    for bytes in sizes {
        for _ in 0..weather.repeats {
            let mut bell = || (0..3).map(|_| uniform(random)).sum::<f64>() / 1.5 - 1.0;
            let beyond = (bytes as f64 - link.burst_bytes).max(0.0);
            let clean = link.latency_ns + link.ns_per_byte * beyond;
            let noisy = clean * (1.0 + weather.noise * bell()) + weather.jitter_ns * bell();
            let factor = match random.below(100) < weather.wild_pct {
                true if random.below(10) == 0 => 0.2 + 0.6 * uniform(random),
                true => 1.2 * (20f64 / 1.2).powf(uniform(random)),
                false => 1.0,
            };
            points.push(Point {
                bytes,
                ns: (noisy * factor).max(0.0),
            });
        }
    }
    points
}

/// Latency, rate and burst of links from loopback to a slow line, without and with a token bucket.
const LINKS: [(f64, f64, f64); 6] = [
    (15_000.0, 0.3, 0.0),
    (60_000.0, 8.0, 0.0),
    (1_000_000.0, 40.0, 0.0),
    (1_000_000.0, 80.0, 65_536.0),
    (200_000.0, 8.0, 100_000.0),
    (20_000_000.0, 8_000.0, 0.0),
];

fn weathers(wild_pct: u64) -> impl Iterator<Item = Weather> {
    LINKS
        .into_iter()
        .map(move |(latency, rate, burst_bytes)| Weather {
            link: Link {
                burst_bytes,
                ..link(latency, 0.0, rate)
            },
            repeats: 9,
            noise: 0.03,
            jitter_ns: 1_500.0,
            wild_pct,
        })
}

/// Returns the fitted values with the true ones.
fn against_truth(fit: MeasuredLink, link: Link) -> [(Estimate, f64); 3] {
    [
        (fit.latency_ns, link.latency_ns),
        (fit.ns_per_byte, link.ns_per_byte),
        (fit.burst_bytes, link.burst_bytes),
    ]
}

#[test]
fn without_noise_the_fit_is_exact() {
    for weather in weathers(0) {
        let still = Weather {
            noise: 0.0,
            jitter_ns: 0.0,
            ..weather
        };
        let points = measure(still, &mut SplitMix64::new(1));
        let fit = fit_link(&points, 1).unwrap();
        for (found, truth) in against_truth(fit.link, weather.link) {
            let near = (found.value - truth).abs() <= 1e-6 * truth.max(1.0);
            assert!(near, "{weather:?}: {fit:?}");
        }
        assert!(fit.used.iter().all(|&used| used));
    }
}

/// A fast line behind a token bucket: until the bucket is empty, bytes move at the pace of the
/// software.
#[test]
fn a_burst_at_the_softwares_pace_is_no_rate() {
    let points = (0..11).map(|k| 1024u64 << k).map(|bytes| {
        let b = bytes as f64;
        let ns = (12_000.0 + 0.3 * b).max(12_000.0 + 8.0 * (b - 60_000.0));
        Point { bytes, ns }
    });
    let found = fit_link(&points.collect::<Vec<_>>(), 0)
        .unwrap()
        .link
        .value();
    assert!((found.ns_per_byte - 8.0).abs() < 0.01, "{found:?}");
    assert!((found.burst_bytes - 60_000.0).abs() < 100.0, "{found:?}");
    assert!((found.latency_ns - 12_000.0).abs() < 100.0, "{found:?}");
}

/// A slow link whose bucket holds two frames, as a short measurement sees it: a few times of five sizes,
/// the short ones of which wait longer for a processor than for the link.
#[test]
fn few_sizes_give_the_rate_behind_a_shallow_bucket() {
    let mut random = SplitMix64::new(7);
    for _ in 0..200 {
        let mut points = Vec::new();
        for (bytes, repeats) in [(24, 6), (1_073, 3), (4_145, 3), (10_289, 2), (16_435, 3)] {
            for _ in 0..repeats {
                let beyond = (bytes as f64 - 2_800.0).max(0.0);
                let waits = 200_000.0 * uniform(&mut random).powi(3);
                let ns = 8_000.0 + 840.0 * beyond + waits;
                points.push(Point { bytes, ns });
            }
        }
        let rate = fit_link(&points, 1).unwrap().link.ns_per_byte.value;
        assert!((800.0..880.0).contains(&rate), "{rate}: {points:?}");
    }
}

/// With up to three of ten times outliers, the latency is within 5 %, the rate within 2 %, and the
/// burst within 4 KiB in at least 95 of 100 cases.
#[test]
fn parameters_are_recovered_from_noise_and_outliers() {
    const CASES: u64 = 20;
    for wild_pct in [0, 10, 30] {
        let mut missed = [0; 3];
        for weather in weathers(wild_pct) {
            for seed in 0..CASES {
                let points = measure(weather, &mut SplitMix64::new(seed));
                let fit = fit_link(&points, seed).unwrap();
                let found = against_truth(fit.link, weather.link);
                let tolerances = [0.05 * found[0].1, 0.02 * found[1].1, 4096.0];
                for (k, (found, truth)) in found.into_iter().enumerate() {
                    missed[k] += u64::from((found.value - truth).abs() > tolerances[k]);
                }
            }
        }
        let cases = CASES * LINKS.len() as u64;
        let are_few = missed.iter().all(|m| m * 20 <= cases);
        assert!(are_few, "{missed:?} of {cases}, {wild_pct} % wild");
    }
}

/// Load that lasts makes all larger sizes slower, and the line through them has no positive time for
/// an empty message.
#[test]
fn disturbed_large_sizes_do_not_hide_the_latency() {
    let times = (0..11).map(|k| 1024u64 << k).map(|bytes| {
        let ns = 20_000.0 + 1e-4 * (bytes as f64).powf(1.4);
        Point {
            bytes,
            ns: if bytes > 4_096 {
                3.0 * ns - 50_000.0
            } else {
                ns
            },
        }
    });
    let points: Vec<Point> = times.collect();
    for less in 0..points.len() - 2 {
        let latency = fit_link(&points[less..], 0).unwrap().link.latency_ns;
        assert!(latency.value > 0.0, "{less} sizes less: {latency:?}");
    }
}

/// The intervals are also narrow: a rate is known to 3 % from nine times of each size, one in ten
/// of them an outlier.
#[test]
fn the_intervals_hold_the_truth_in_nine_of_ten_cases() {
    const CASES: u64 = 20;
    for (wild_pct, repeats) in [(0, 5), (10, 9), (30, 9), (30, 21)] {
        let mut held = [0; 3];
        let mut widths = 0.0;
        for weather in weathers(wild_pct) {
            let weather = Weather { repeats, ..weather };
            for seed in 0..CASES {
                let points = measure(weather, &mut SplitMix64::new(1_000 + seed));
                let fit = fit_link(&points, seed).unwrap().link;
                for (k, (found, truth)) in (0..).zip(against_truth(fit, weather.link)) {
                    assert!((found.low..=found.high).contains(&found.value), "{fit:?}");
                    held[k] += u64::from((found.low..=found.high).contains(&truth));
                }
                widths += (fit.ns_per_byte.high - fit.ns_per_byte.low) / fit.ns_per_byte.value;
            }
        }
        let cases = CASES * LINKS.len() as u64;
        let case = format!("{held:?} of {cases}, {wild_pct} % wild, {repeats} times");
        assert!(held.iter().all(|h| h * 10 >= cases * 9), "{case}");
        let wide = widths / cases as f64;
        assert!(wild_pct > 10 || wide < 0.03, "{wide}, {wild_pct} % wild");
    }
}

#[test]
fn wild_points_are_not_used_and_good_ones_are() {
    let weather = weathers(0).nth(1).unwrap();
    let mut points = measure(weather, &mut SplitMix64::new(3));
    for (place, point) in points.iter_mut().enumerate() {
        point.ns *= if place % 4 == 0 { 3.0 } else { 1.0 };
    }
    let fit = fit_link(&points, 3).unwrap();
    assert!(fit.used.iter().step_by(4).all(|used| !used));
    let good = fit.used.iter().filter(|&&used| used).count();
    assert!(good * 10 >= points.len() * 6, "{good} of {}", points.len());
}

/// A size that was timed once shows no variation, but its deviation from the line is known.
#[test]
fn single_times_still_give_an_interval() {
    let times = [100.0, 210.0, 290.0, 420.0, 805.0];
    let points = [0, 1_000, 2_000, 3_000, 7_000].into_iter().zip(times);
    let points: Vec<Point> = points.map(|(bytes, ns)| Point { bytes, ns }).collect();
    let rate = fit_link(&points, 0).unwrap().link.ns_per_byte;
    assert!((0.09..0.11).contains(&rate.value), "{rate:?}");
    assert!(rate.low < rate.value && rate.value < rate.high, "{rate:?}");
}

#[test]
fn too_few_or_too_many_sizes_are_refused() {
    let points = |sizes: u64| (0..sizes).map(|bytes| Point { bytes, ns: 5.0 });
    let not_a_time = Point {
        bytes: 9,
        ns: f64::NAN,
    };
    let few = ": at least two are needed";
    for (points, sizes, fault) in [
        (vec![], 0, few),
        (points(1).collect(), 1, few),
        (points(25).collect(), 25, "; the limit is 24"),
        (points(1).chain([not_a_time]).collect(), 1, few),
    ] {
        let fault = format!("bursts of {sizes} sizes{fault}");
        assert_eq!(fit_link(&points, 0).unwrap_err().to_string(), fault);
    }
}

#[test]
fn the_same_points_and_seed_give_the_same_fit() {
    let points = measure(weathers(30).next().unwrap(), &mut SplitMix64::new(9));
    assert_eq!(fit_link(&points, 4), fit_link(&points, 4));
}
