//! Parsers for user input: numbers, and names that may be misspelt. The caller passes the valid
//! names and ranges.

/// Returns the number that a text of digits denotes; `parse` alone would also accept `+5`.
pub fn whole_number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Returns the number that a part of a name of this form denotes, or the fault.
pub fn number_in(
    form: &str,
    what: &str,
    given: &str,
    [low, high]: [u64; 2],
) -> Result<u64, String> {
    let number = whole_number(given).filter(|n| (low..=high).contains(n));
    number.ok_or_else(|| {
        format!("{form}: {what} must be a whole number from {low} to {high}, not `{given}`")
    })
}

/// Returns a question about the entry of `names` for which `given` may be a typing error; empty if
/// there is none.
pub fn did_you_mean(given: &str, names: impl Iterator<Item = &'static str>) -> String {
    let lower = given.to_lowercase();
    let nearest = names.min_by_key(|known| distance(&lower, known));
    // Half of the letters must be right for it to be a slip, not a guess.
    let likely = nearest.filter(|known| distance(&lower, known) * 2 <= known.len());
    likely.map_or(String::new(), |known| format!(" (did you mean `{known}`?)"))
}

/// Returns the Levenshtein distance. The names are short; only the beginning of a long `given` is
/// looked at.
fn distance(given: &str, known: &str) -> usize {
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (i, g) in given.chars().take(32).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, k) in known.chars().enumerate() {
            let swap = diagonal + usize::from(g != k);
            diagonal = row[j + 1];
            row[j + 1] = swap.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[known.len()]
}
