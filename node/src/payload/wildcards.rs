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
        } else if let Some((behind, [_, rest @ ..])) = last_star {
            // The star takes a byte more.
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
        b'?' => Some((rest, &name[character(name)..])),
        b'\\' if !rest.is_empty() => (rest[0] == *byte).then_some((&rest[1..], tail)),
        b'[' => match set_of(rest) {
            Some((wanted, rest)) => wanted(*byte).then_some((rest, tail)),
            None => (*byte == b'[').then_some((rest, tail)),
        },
        first => (first == byte).then_some((rest, tail)),
    }
}

/// Returns the bytes of the first character of a name.
fn character(name: &[u8]) -> usize {
    let more = name[1..].iter().take_while(|byte| (**byte & 0xc0) == 0x80);
    1 + if name[0] < 0xc0 { 0 } else { more.count() }
}

/// Parses a set of characters behind its bracket; returns it, and the pattern behind it. A set without an
/// end stands for itself.
fn set_of(text: &[u8]) -> Option<(impl Fn(u8) -> bool + '_, &[u8])> {
    let (is_other, text) = match text {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // A bracket at the beginning is one of the characters.
    let end = 1 + text.get(1..)?.iter().position(|byte| *byte == b']')?;
    let set = &text[..end];
    let is_in = move |byte: u8| {
        let mut rest = set;
        loop {
            rest = match rest {
                [from, b'-', to, rest @ ..] if (*from..=*to).contains(&byte) => return true,
                [_, b'-', _, rest @ ..] => rest,
                [one, ..] if *one == byte => return true,
                [_, rest @ ..] => rest,
                [] => return false,
            };
        }
    };
    Some((move |byte| is_in(byte) != is_other, &text[end + 1..]))
}
