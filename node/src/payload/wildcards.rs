//! Names with wildcards: `*`, `?`, `[a-z]`, `[!a-z]`, and a backslash, which takes the meaning of the
//! character behind it. `pattern.rs` tests them.

/// Matches a whole name. Behind a `*` it is enough to go back to the last one, so that no pattern takes
/// more than the product of the two lengths.
pub(super) fn fits(mut pattern: &[u8], mut name: &[u8]) -> bool {
    let mut last_star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            last_star = Some((rest, name));
        } else if let Some(rests) = fits_once(pattern, name) {
            (pattern, name) = rests;
        } else if pattern.is_empty() && name.is_empty() {
            return true;
        } else if let Some((behind, name_left)) = last_star
            && let Some((_, rest)) = split_character(name_left)
        {
            // The star takes a character more.
            last_star = Some((behind, rest));
            (pattern, name) = (behind, rest);
        } else {
            return false;
        }
    }
}

/// Matches the first character of a pattern that does not begin with `*`; returns the rests of both.
fn fits_once<'p, 'n>(pattern: &'p [u8], name: &'n [u8]) -> Option<(&'p [u8], &'n [u8])> {
    let ([first, rest @ ..], [byte, tail @ ..]) = (pattern, name) else {
        return None;
    };
    match first {
        b'?' => split_character(name).map(|(_, tail)| (rest, tail)),
        b'\\' if !rest.is_empty() => (rest[0] == *byte).then_some((&rest[1..], tail)),
        b'[' => match set_of(rest) {
            Some((set, rest)) => {
                let (first, tail) = split_character(name)?;
                set.contains(first).then_some((rest, tail))
            }
            None => (*byte == b'[').then_some((rest, tail)),
        },
        first => (first == byte).then_some((rest, tail)),
    }
}

/// Splits off the first character, or a byte that begins none.
fn split_character(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = text.split_first()?;
    let more = rest.iter().take_while(|byte| (**byte & 0xc0) == 0x80);
    Some(text.split_at(1 + if *first < 0xc0 { 0 } else { more.count() }))
}

/// Parses a set of characters behind its bracket; returns it, and the pattern behind it. A set without an
/// end stands for itself.
fn set_of(text: &[u8]) -> Option<(Set<'_>, &[u8])> {
    let (is_other, text) = match text {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // A bracket at the beginning is one of the characters.
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b']')?;
    let characters = &text[..end];
    let set = Set {
        characters,
        is_other,
    };
    Some((set, &text[end + 1..]))
}

/// Characters and ranges of them, like `a-z_`, or all others.
struct Set<'a> {
    characters: &'a [u8],
    is_other: bool,
}

impl Set<'_> {
    fn contains(&self, character: &[u8]) -> bool {
        let mut rest = self.characters;
        while let Some((from, behind)) = split_character(rest) {
            let range = behind.strip_prefix(b"-").and_then(split_character);
            let (to, next) = range.unwrap_or((from, behind));
            // Encoded characters have the order of the characters.
            if (from..=to).contains(&character) {
                return !self.is_other;
            }
            rest = next;
        }
        self.is_other
    }
}
