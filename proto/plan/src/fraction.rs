//! Exact times: prices are fractions, so that times are.

use std::cmp::Ordering;
use std::fmt;

/// A fraction of whole numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: u128,
    denominator: u128,
}

impl Fraction {
    /// Returns the fraction; the denominator is at least 1.
    pub fn new(numerator: u128, denominator: u128) -> Fraction {
        let divisor = greatest_common_divisor(numerator, denominator).max(1);
        Fraction {
            numerator: numerator / divisor,
            denominator: (denominator / divisor).max(1),
        }
    }

    /// Returns the number, if it is whole.
    pub fn whole(self) -> Option<u128> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Returns an approximation of the number.
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// Returns the greatest common divisor of two numbers; 0 if both are 0.
pub fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    /// Compares whole parts and then remainders, so that no product overflows.
    fn cmp(&self, other: &Fraction) -> Ordering {
        let whole = |it: &Fraction| it.numerator / it.denominator;
        let [rest, other_rest] = [self, other].map(|it| it.numerator % it.denominator);
        let turned = |it: &Fraction, rest| Fraction {
            numerator: it.denominator,
            denominator: rest,
        };
        let wholes = whole(self).cmp(&whole(other));
        wholes.then_with(|| match (rest, other_rest) {
            (0, _) | (_, 0) => rest.cmp(&other_rest),
            // p / a against q / b is b / q against a / p.
            _ => turned(other, other_rest).cmp(&turned(self, rest)),
        })
    }
}

/// `27` or `27/2`.
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.whole() {
            Some(number) => f.pad(&number.to_string()),
            None => f.pad(&format!("{}/{}", self.numerator, self.denominator)),
        }
    }
}
