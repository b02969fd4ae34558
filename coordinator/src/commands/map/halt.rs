//! `--halt WHEN`: the failures after which no further command begins.

/// When a map stops to run commands because commands have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Never: all others are run.
    Never,
    /// After this number of failures; the running commands end by themselves.
    Soon(u32),
    /// After this number of failures; the running commands are killed.
    Now(u32),
}

/// Parses the value of `--halt`.
///
/// # Errors
///
/// Returns an error if the text has none of the forms.
pub fn parse(text: &str) -> Result<Halt, String> {
    let wrong = || format!("`{text}` is not never, soon,fail=N or now,fail=N");
    if text == "never" {
        return Ok(Halt::Never);
    }
    let (when, failures) = text.split_once(",fail=").ok_or_else(wrong)?;
    let digits = failures.bytes().all(|byte| byte.is_ascii_digit());
    let failures = failures.parse().ok().filter(|&n| digits && n > 0);
    match (when, failures) {
        ("soon", Some(failures)) => Ok(Halt::Soon(failures)),
        ("now", Some(failures)) => Ok(Halt::Now(failures)),
        _ => Err(wrong()),
    }
}
