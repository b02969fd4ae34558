//! Checks that comments are in plain words: a doc comment starts with what the item is or does, and
//! programs are not described as people.

use super::source::{ALL, sources};

/// First words of doc comments that say neither what an item is nor what it does.
const OPENINGS: &str = "And Anybody Everybody It Its Nobody Of Somebody That Their Them They Those \
    What Whatever Where Who Whoever Whom Whose";

/// Words that comments do without.
const WORDS: &str = "anew anybody everybody nobody somebody whoever whom whomever";

fn is_among(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// Returns the faults of a file, each with its line.
fn faults(text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut is_doc = false;
    for (number, line) in (1..).zip(text.lines().map(str::trim_start)) {
        let was_doc = std::mem::replace(&mut is_doc, false);
        let Some(comment) = line.strip_prefix("//") else {
            continue;
        };
        is_doc = comment.starts_with(['/', '!']);
        let words: Vec<&str> = comment
            .split(|char: char| !char.is_alphabetic())
            .filter(|word| !word.is_empty())
            .collect();
        if let (true, false, Some(first)) = (is_doc, was_doc, words.first())
            && is_among(first, OPENINGS)
        {
            faults.push((number, format!("starts with `{first}`")));
        }
        let odd = words.iter().map(|word| word.to_lowercase());
        let odd = odd.filter(|word| is_among(word, WORDS));
        faults.extend(odd.map(|word| (number, format!("contains `{word}`"))));
    }
    faults
}

#[test]
fn comments_are_in_plain_words() {
    let all = sources(&[&ALL[..], &["tests"]].concat());
    let all = all.iter();
    // Generated comments are those of the protobuf file.
    let written = all.filter(|source| !source.file.ends_with("generated.rs"));
    let found = written.flat_map(|source| {
        let faults = faults(&source.text).into_iter();
        faults.map(|(line, fault)| format!("{}:{line}: {fault}\n", source.file))
    });
    let found: String = found.collect();
    let rules = "CONTRIBUTING.md has the rules of comments";
    assert!(found.is_empty(), "{rules}\n{found}");
}

#[test]
fn odd_comments_are_found() {
    let text = "/// Of a message.\n/// What it is.\nfn one() {}\n// Nobody reads this.\nlet x = 1;";
    let expected = [
        (1, "starts with `Of`".to_owned()),
        (4, "contains `nobody`".to_owned()),
    ];
    assert_eq!(faults(text), expected);
}
