//! Exact times: prices are fractions, so that times are.

use std::cmp::Ordering;
use std::fmt;

/// A fraction of whole numbers.
#[derive(Clone, Copy, Debug)]
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
pub fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl PartialEq for Fraction {
    fn eq(&self, other: &Fraction) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Fraction {}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fraction {
    /// Compares whole parts and remainders in turn, so that no product overflows.
    fn cmp(&self, other: &Fraction) -> Ordering {
        let (mut one, mut other) = (*self, *other);
        let mut swapped = false;
        loop {
            let wholes = |fraction: Fraction| fraction.numerator / fraction.denominator;
            let rests = [one, other].map(|fraction| fraction.numerator % fraction.denominator);
            let order = match (wholes(one).cmp(&wholes(other)), rests) {
                (Ordering::Equal, [0, 0]) => return Ordering::Equal,
                (Ordering::Equal, [0, _]) => Ordering::Less,
                (Ordering::Equal, [_, 0]) => Ordering::Greater,
                (Ordering::Equal, [a, b]) => {
                    // p / a against q / b is b / q against a / p, the other way round.
                    one = Fraction {
                        numerator: one.denominator,
                        denominator: a,
                    };
                    other = Fraction {
                        numerator: other.denominator,
                        denominator: b,
                    };
                    swapped = !swapped;
                    continue;
                }
                (order, _) => order,
            };
            return if swapped { order.reverse() } else { order };
        }
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
