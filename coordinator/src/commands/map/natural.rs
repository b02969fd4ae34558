//! The order of names with numbers: by the values of the numbers, as in `1, 2, 10`.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Compares two names: numbers in them by their values, everything else by its bytes.
pub fn compare(one: &OsStr, other: &OsStr) -> Ordering {
    let (mut left, mut right) = (one.as_bytes(), other.as_bytes());
    while let ([first, after_first @ ..], [second, after_second @ ..]) = (left, right) {
        let ordering = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, rest) = split_number(left);
            let (other_number, other_rest) = split_number(right);
            (left, right) = (rest, other_rest);
            let lengths = number.len().cmp(&other_number.len());
            lengths.then_with(|| number.cmp(other_number))
        } else {
            (left, right) = (after_first, after_second);
            first.cmp(second)
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    // Names that differ in leading zeros alone have an order, too.
    let lengths = left.len().cmp(&right.len());
    lengths.then_with(|| one.cmp(other))
}

/// Splits the digits at the beginning of a text from the rest, and removes their leading zeros.
fn split_number(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = text.split_at(digits.count());
    let zeros = number.iter().take_while(|byte| **byte == b'0').count();
    (&number[zeros..], rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_values() {
        let sorted = [
            "",
            "0",
            "00",
            "01",
            "1",
            "1a",
            "2",
            "10",
            "11",
            "a",
            "a1",
            "a1b2",
            "a1b10",
            "a02",
            "a2",
            "a10",
            "a99999999999999999999998",
            "a99999999999999999999999",
            "b",
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (beside, other) in sorted.iter().enumerate() {
                let found = compare(OsStr::new(one), OsStr::new(other));
                assert_eq!(found, at.cmp(&beside), "{one} {other}");
            }
        }
    }
}
