//! `--retry N`: how often a round continues without a PE that fails.

use thiserror::Error;

/// Limit of retries: a user who loses more PEs has another problem to solve.
pub const MOST: u32 = 16;

/// An error in `--retry`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RetryError {
    /// Not a number in its range.
    #[error("`{0}` is not an integer from 0 to {MOST}")]
    Number(String),
    /// A retry combined with repeated rounds, which are timed.
    #[error(
        "it cannot be combined with --rounds {0}: a round that lost a PE runs on another tree and cannot be compared with the others"
    )]
    Rounds(u64),
}

/// Reads `--retry`.
pub fn parse(text: &str) -> Result<u32, RetryError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|&number| digits && number <= MOST);
    number.ok_or_else(|| RetryError::Number(text.chars().take(40).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_retries_is_one_of_few() {
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("16"), Ok(16));
        for wrong in ["17", "-1", "+1", "", "two", "1.5", "99999999999999999999"] {
            let fault = parse(wrong).expect_err(wrong);
            let expected = format!("`{wrong}` is not an integer from 0 to 16");
            assert_eq!(fault.to_string(), expected);
        }
    }
}
