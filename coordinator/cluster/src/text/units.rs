//! Sizes, times and rates as users write and read them.
//!
//! Parsing is exact and uses no floating point, so a size is never one byte off. Most displays
//! round and are human-readable only: machine-readable output (CSV, JSON) has plain numbers in the
//! units that its names contain.

use std::fmt;

/// Maximum total bytes of all messages of a round: files and buffers count in signed 64-bit
/// numbers.
pub const MAX_TOTAL_BYTES: u64 = i64::MAX as u64;

/// The kind of a value with a unit.
struct Quantity {
    name: &'static str,
    example: &'static str,
    units: &'static str,
    counted: &'static str,
    /// Returns the number of base units in a unit, which may be empty for sizes.
    factor: fn(&str) -> Option<u128>,
}

const SIZE: Quantity = Quantity {
    name: "a size",
    example: "64KiB",
    units: "B, KiB, MiB, GiB, TiB, PiB, EiB and kB, MB, GB, TB, PB, EB",
    counted: "bytes",
    factor: |unit| match unit {
        "" => Some(1),
        _ => power(&BINARY, 1024, unit).or_else(|| power(&DECIMAL, 1000, unit)),
    },
};
/// Bits per second, with the units of `tc`. `bit` is not accepted: no link is that slow, and with a
/// typing error it would mean bytes.
const RATE: Quantity = Quantity {
    name: "a rate",
    example: "200mbit",
    units: "kbit, mbit, gbit",
    counted: "bits a second",
    factor: |unit| power(&BITS, 1000, unit).map(|power| power * 1000),
};
const TIME: Quantity = Quantity {
    name: "a time",
    example: "5ms",
    units: "ns, us, ms, s",
    counted: "nanoseconds",
    factor: |unit| power(&TIMES, 1000, unit),
};

/// Returns the power of `base` that is the place of `unit` among `names`.
fn power(names: &[&str], base: u128, unit: &str) -> Option<u128> {
    let mut names = names.iter();
    let exponent = names.position(|name| name.eq_ignore_ascii_case(unit));
    exponent.map(|exponent| base.pow(exponent as u32))
}

/// Maximum number of decimals: multiplied by any unit, the value still fits in 128 bits.
const MAX_DECIMALS: usize = 18;

/// Units of sizes by rising power of 1024.
const BINARY: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
/// Units of sizes by rising power of 1000.
const DECIMAL: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
/// Units of rates by rising power of 1000; the first is 1000 bits per second.
const BITS: [&str; 3] = ["kbit", "mbit", "gbit"];
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// Parses a size in bytes: `512`, `64KiB`, `1.5 MiB`, `10kB`. Case is ignored. A fraction is
/// allowed if the result is a whole number of bytes.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse(SIZE, text)
}

/// Parses a rate in bits per second: `200mbit`, `1.5gbit`.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    parse(RATE, text)
}

/// Parses a time in nanoseconds: `3ms`, `0.5us`.
pub fn parse_time(text: &str) -> Result<u64, String> {
    parse(TIME, text)
}

fn parse(quantity: Quantity, text: &str) -> Result<u64, String> {
    let wrong = |what: String| Err(format!("`{text}`{what}"));
    let trimmed = text.trim();
    let number_end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = trimmed.split_at(number_end.unwrap_or(trimmed.len()));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || decimals.is_empty() || decimals.contains('.') {
        let (kind, example) = (quantity.name, quantity.example);
        return wrong(format!(
            " is not {kind}: write a number and a unit, like {example}"
        ));
    }

    let unit = unit.trim_start();
    let Some(factor) = (quantity.factor)(unit) else {
        let units = quantity.units;
        return wrong(match unit {
            "" => format!(" has no unit; the units are {units}"),
            _ => format!(": unknown unit `{unit}`; the units are {units}"),
        });
    };

    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > MAX_DECIMALS {
        return wrong(format!(" has more than {MAX_DECIMALS} decimals"));
    }
    let denominator = 10u128.pow(decimals.len() as u32);
    // Both parts are digits, so a part that does not parse is too large (`whole`) or empty
    // (`decimals` after trimming, which means 0).
    let part = decimals.parse::<u128>().unwrap_or(0) * factor;
    if part % denominator != 0 {
        return wrong(format!(" is not a whole number of {}", quantity.counted));
    }
    let all = whole.parse::<u64>().ok().and_then(|whole| {
        let all = u128::from(whole) * factor + part / denominator;
        u64::try_from(all).ok()
    });
    match all {
        Some(all) => Ok(all),
        None => wrong(format!(" is more than 2^64-1 {}", quantity.counted)),
    }
}

/// A rate in bits per second, displayed exactly in the form that is parsed: `200mbit`, `1.5gbit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRate(pub u64);

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&exactly(self.0, 1000, &BITS))
    }
}

/// A time in nanoseconds, displayed exactly in the form that is parsed: `3ms`, `0.5us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactTime(pub u64);

impl fmt::Display for ExactTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&exactly(self.0, 1, &TIMES))
    }
}

/// Formats `value` in the largest unit that is not greater; the first unit is `first`, each of the
/// others a thousand times the one before.
fn exactly(value: u64, first: u64, units: &[&str]) -> String {
    let reached = |place: &usize| value >= first * 1000u64.pow(*place as u32);
    let place = (0..units.len()).rev().find(reached).unwrap_or(0);
    let one = first * 1000u64.pow(place as u32);
    let width = one.ilog10() as usize;
    let (whole, part) = (value / one, value % one);
    let text = match part {
        0 => whole.to_string(),
        _ => format!("{whole}.{part:0width$}")
            .trim_end_matches('0')
            .to_owned(),
    };
    format!("{text}{}", units[place])
}

/// A number of bytes, displayed like `1.5 MiB`, with at most 4 significant digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0.into(), 1, (1024, &BINARY, 4), Zeros::Drop))
    }
}

/// Minimum time that is displayed like [`Seconds`] rather than with a fraction, in seconds.
const LONG_SECONDS: u64 = 600;

/// A time in nanoseconds, displayed like `1.34 ms`, with 3 significant digits, and from 10 minutes on
/// like [`Seconds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nanos(pub u64);

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.saturating_add(500_000_000) / 1_000_000_000;
        if seconds >= LONG_SECONDS {
            return Seconds(seconds).fmt(f);
        }
        f.pad(&scaled(self.0.into(), 1, (1000, &TIMES, 3), Zeros::Keep))
    }
}

/// A time in seconds, displayed like `2m 5s`, with its two largest units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seconds(pub u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
        let (mut left, mut parts) = (self.0, Vec::new());
        for (seconds, unit) in UNITS {
            let count = left / seconds;
            left %= seconds;
            if count > 0 {
                parts.push(format!("{count}{unit}"));
            }
        }
        parts.truncate(2);
        match parts.is_empty() {
            true => f.pad("0s"),
            false => f.pad(&parts.join(" ")),
        }
    }
}

/// A rate, displayed like `1.21 GB/s` with 3 significant digits and powers of 1000, as is usual for
/// rates; `-` if the time is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub bytes: u64,
    pub nanos: u64,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.pad("-");
        }
        let units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
        let per_second = u128::from(self.bytes) * 1_000_000_000;
        let rate = scaled(
            per_second,
            self.nanos.into(),
            (1000, &units, 3),
            Zeros::Keep,
        );
        f.pad(&rate)
    }
}

/// The rule for trailing zeros such as in `2.10`. In the smallest unit they are never printed: `5 ns`
/// was not measured to picoseconds.
#[derive(PartialEq)]
enum Zeros {
    Keep,
    Drop,
}

/// Formats `numerator / denominator`, rounded half up to a number of significant digits, in the unit that fits
/// best: each is `base` times the one before.
fn scaled(
    numerator: u128,
    denominator: u128,
    (base, units, digits): (u128, &[&str], u32),
    zeros: Zeros,
) -> String {
    let mut exponent = 0;
    let mut divisor = denominator;
    loop {
        let integer = numerator / divisor;
        let digits_before = integer.checked_ilog10().unwrap_or(0) + 1;
        let mut decimals = digits.saturating_sub(digits_before);
        let round = |decimals| (numerator * 10u128.pow(decimals) + divisor / 2) / divisor;
        if decimals > 0 && round(decimals) >= 10u128.pow(digits) {
            decimals -= 1; // 9.999 has become 10.00.
        }
        let rounded = round(decimals);
        let one = 10u128.pow(decimals);
        if rounded >= base * one && exponent + 1 < units.len() {
            exponent += 1;
            divisor *= base;
            continue;
        }

        let (whole, part) = (rounded / one, rounded % one);
        let mut text = match decimals {
            0 => format!("{whole}"),
            width => format!("{whole}.{part:0width$}", width = width as usize),
        };
        if decimals > 0 && (zeros == Zeros::Drop || exponent == 0) {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        return format!("{text} {}", units[exponent]);
    }
}

#[cfg(test)]
mod tests;
