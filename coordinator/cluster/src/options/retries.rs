//! `--retry N`: how often a round continues without a PE that fails.

use anyhow::{anyhow, ensure};

/// Limit of retries: a user who loses more PEs has another problem to solve.
pub const MOST: u32 = 16;

/// Reads `--retry` beside this number of rounds; without it, there are none.
///
/// # Errors
///
/// Returns an error if the text is not an integer in its range, or if several rounds are to be compared.
pub fn of(text: Option<&str>, rounds: u64) -> anyhow::Result<u32> {
    let retries = text.map_or(Ok(0), parse)?;
    ensure!(
        rounds <= 1 || retries == 0,
        "--retry: it cannot be combined with --rounds {rounds}: a round that lost a PE runs on another \
         tree and cannot be compared with the others"
    );
    Ok(retries)
}

fn parse(text: &str) -> anyhow::Result<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|&number| digits && number <= MOST);
    number.ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        anyhow!("--retry: `{text}` is not an integer from 0 to {MOST}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_retries_is_one_of_few() {
        assert_eq!(parse("0").unwrap(), 0);
        assert_eq!(parse("16").unwrap(), 16);
        for wrong in ["17", "-1", "+1", "", "two", "1.5", "99999999999999999999"] {
            let fault = parse(wrong).expect_err(wrong);
            let expected = format!("--retry: `{wrong}` is not an integer from 0 to 16");
            assert_eq!(fault.to_string(), expected);
        }
    }
}
