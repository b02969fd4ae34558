//! The prices of a step, a hop and a flit: exact numbers in any common unit.

use anyhow::anyhow;
use clap::Args;
use flitcast_plan::fraction::greatest_common_divisor;
use flitcast_plan::gossip::Prices;

use crate::text::faults::Faults;

/// Prices of steps of wormhole packets.
#[derive(Clone, Debug, Default, Args)]
pub struct PriceArgs {
    /// t_s, the fixed cost of a step: a number like 10, 0.25 or 3/2, in any unit, the same for all
    /// three prices [default: 1].
    #[arg(long, value_name = "TIME")]
    pub ts: Option<String>,
    /// t_d, the cost of each hop [default: 0].
    #[arg(long, value_name = "TIME")]
    pub td: Option<String>,
    /// t_l, the cost of each flit [default: 1].
    #[arg(long, value_name = "TIME")]
    pub tl: Option<String>,
    /// Take all three from a profile of `flitcast calibrate`, in microseconds, each the largest that
    /// was measured.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ts", "td", "tl"])]
    pub profile: Option<String>,
    /// Size of a flit with --profile [default: 64KiB].
    #[arg(long, value_name = "SIZE", requires = "profile")]
    pub flit_size: Option<String>,
}

/// The greatest price, in the user's unit.
const MOST: u64 = 1_000_000_000;
/// The greatest common denominator of three prices.
const MOST_UNIT: u64 = 1_000_000_000;

/// A price as a fraction.
type Fraction = (u64, u64);

impl PriceArgs {
    /// Parses the prices, or returns all errors in them.
    pub fn prices(&self) -> Result<Prices, Faults> {
        let options = [
            ("--ts", &self.ts, 1),
            ("--td", &self.td, 0),
            ("--tl", &self.tl, 1),
        ];
        let read = options.map(|(option, given, default)| match given {
            None => Ok((default, 1)),
            Some(given) => fraction(given).ok_or_else(|| {
                anyhow!("{option} {given}: write a number from 0 to {MOST}, like 10, 0.25 or 3/2")
            }),
        });
        match read {
            [Ok(startup), Ok(hop), Ok(flit)] => {
                in_one_unit([startup, hop, flit]).ok_or_else(|| {
                    anyhow!(
                        "--ts, --td and --tl have no common denominator up to {MOST_UNIT}, with \
                         numerators up to {}: take a smaller unit, or fewer decimals",
                        Prices::MAX
                    )
                    .into()
                })
            }
            read => Err(Faults::all(read.into_iter().filter_map(Result::err))),
        }
    }

    /// Returns an error for each price that is given where none has an effect.
    pub fn check_absent(&self) -> Result<(), Faults> {
        let given = [
            ("--ts", &self.ts),
            ("--td", &self.td),
            ("--tl", &self.tl),
            ("--profile", &self.profile),
        ];
        let given = given.iter().filter(|(_, given)| given.is_some());
        let fault = |option| anyhow!("{option} is for a gossip on a --network");
        Faults::all(given.map(|(option, _)| fault(option))).check()
    }
}

/// Parses `10`, `0.25` or `3/2`.
fn fraction(text: &str) -> Option<Fraction> {
    let whole = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let (numerator, denominator) = match (text.split_once('/'), text.split_once('.')) {
        (Some((over, under)), _) => (whole(over)?, whole(under)?),
        (None, Some((units, decimals))) => {
            let places = u32::try_from(decimals.len()).ok()?;
            let denominator = 10u64.checked_pow(places)?;
            let units = whole(units)?.checked_mul(denominator)?;
            (units.checked_add(whole(decimals)?)?, denominator)
        }
        (None, None) => (whole(text)?, 1),
    };
    if denominator == 0 || numerator / denominator > MOST {
        return None;
    }
    let divisor = common_divisor(numerator, denominator);
    Some((numerator / divisor, denominator / divisor))
}

fn in_one_unit(all: [Fraction; 3]) -> Option<Prices> {
    let unit = all.iter().try_fold(1u64, |unit, (_, denominator)| {
        let more = denominator / common_divisor(unit, *denominator);
        unit.checked_mul(more).filter(|unit| *unit <= MOST_UNIT)
    })?;
    let in_units = |(numerator, denominator): Fraction| {
        let price = numerator.checked_mul(unit / denominator)?;
        (price <= Prices::MAX).then_some(price)
    };
    let [startup, hop, flit] = all.map(in_units);
    Some(Prices {
        startup: startup?,
        hop: hop?,
        flit: flit?,
        unit,
    })
}

/// Returns the greatest common divisor of two numbers that are not both 0; it is not greater than
/// either.
fn common_divisor(a: u64, b: u64) -> u64 {
    greatest_common_divisor(a.into(), b.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prices(ts: &str, td: &str, tl: &str) -> Result<[u64; 4], Vec<String>> {
        let [ts, td, tl] = [ts, td, tl].map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let args = PriceArgs {
            ts,
            td,
            tl,
            ..PriceArgs::default()
        };
        let prices = args.prices();
        let prices = prices.map(|all| [all.startup, all.hop, all.flit, all.unit]);
        prices.map_err(|faults| faults.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn prices_are_exact_in_one_unit() {
        assert_eq!(prices("", "", ""), Ok([1, 0, 1, 1]));
        assert_eq!(prices("0.25", "1/6", "3"), Ok([3, 2, 36, 12]));
        assert_eq!(prices("1.50", "10/20", "0"), Ok([3, 1, 0, 2]));
        let unit = prices("1000000000", "", "0.000001").map(|prices| prices[3]);
        assert_eq!(unit, Ok(1_000_000));
    }

    #[test]
    fn all_invalid_prices_are_reported_at_once() {
        let faults = prices("-1", "1/0", "fast").unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        for wrong in ["1e3", ".5", "5.", "1000000001", "1/2/3", "0.1/2", " 1"] {
            assert!(prices(wrong, "", "").is_err(), "{wrong}");
        }
        assert_eq!(fraction(""), None);
        for (ts, td) in [("1/999999937", "1/3"), ("1000000000", "0.0000001")] {
            let faults = prices(ts, td, "").unwrap_err();
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].contains("no common denominator"), "{faults:?}");
        }
    }
}
