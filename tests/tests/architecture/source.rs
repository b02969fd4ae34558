//! A simple parser of Rust: the code of each file without comments, string literals and tests, and
//! the items around a position. It is sufficient for code formatted by rustfmt and does not expand
//! macros.

use std::path::{Path, PathBuf};

use flitcast_tests::files::{Kind, Node, snapshot};

/// The crates that the program is made of.
pub const ALL: [&str; 5] = [
    "proto",
    "proto/plan",
    "node",
    "coordinator/cluster",
    "coordinator",
];

/// The attribute of items that only tests have.
const FOR_TESTS: &str = "#[cfg(test)]";

/// A file's code. Everything else is replaced by spaces, so that positions and lines are the file's.
pub struct Source {
    pub file: String,
    pub code: String,
    pub text: String,
}

/// Returns the text of each Rust file below a folder of the workspace, by the path from its root.
#[track_caller]
pub fn rust_files(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let all = snapshot(&root.join(folder)).into_iter();
    let text = |(path, node): (PathBuf, Node)| match node.kind {
        Kind::File(content) if path.extension().is_some_and(|ending| ending == "rs") => {
            let text = String::from_utf8(content).expect("it is text");
            Some((Path::new(folder).join(path), text))
        }
        _ => None,
    };
    all.filter_map(text).collect()
}

/// Returns the code of these crates' `src`, in the order of their paths.
#[track_caller]
pub fn sources(crates: &[&str]) -> Vec<Source> {
    let all = crates
        .iter()
        .flat_map(|name| rust_files(&format!("{name}/src")));
    let code = all.filter(|(path, _)| !path.ends_with("tests.rs"));
    let code = code.map(|(path, text)| Source::new(&path.display().to_string(), &text));
    let mut found: Vec<Source> = code.collect();
    assert!(!found.is_empty(), "{crates:?}");
    found.sort_by(|a, b| a.file.cmp(&b.file));
    found
}

impl Source {
    /// Extracts the code of a file's text.
    pub fn new(file: &str, text: &str) -> Source {
        let mut code = blanked(text);
        while let Some(begin) = code.find(FOR_TESTS) {
            let end = begin + end_of_item(&code[begin..]);
            let blank = |char| if char == '\n' { '\n' } else { ' ' };
            let blanks: String = code[begin..end].chars().map(blank).collect();
            code.replace_range(begin..end, &blanks);
        }
        Source {
            file: file.to_owned(),
            code,
            text: text.to_owned(),
        }
    }

    pub fn line(&self, at: usize) -> usize {
        1 + self.code[..at].matches('\n').count()
    }

    /// Returns whether the identifier at this position is the name of a function that is defined here.
    pub fn is_defined(&self, at: usize) -> bool {
        self.code[..at].ends_with("fn ")
    }

    /// Returns the function that contains a position, closures and tasks in it included.
    pub fn function(&self, at: usize) -> &str {
        identifier_at(&self.code, self.begin_of_function(at))
    }

    /// Returns the position of that function's name.
    pub fn begin_of_function(&self, at: usize) -> usize {
        let before = &self.code[..at];
        before.rfind("fn ").map_or(at, |fun| fun + "fn ".len())
    }

    /// Returns all positions of `name::`, with the identifier that follows.
    pub fn below(&self, name: &str) -> impl Iterator<Item = (usize, &str)> {
        let places = self.places(name).into_iter();
        let below = move |at: usize| {
            let rest = self.code[at + name.len()..].strip_prefix("::")?;
            Some((at, identifier_at(rest, 0)))
        };
        places.filter_map(below)
    }

    /// Returns the names before the parentheses and braces around a position, such as `timeout` or
    /// `select!`, from the inside out.
    pub fn surroundings(&self, at: usize) -> Vec<&str> {
        let open = self.open(at).into_iter();
        open.map(|place| identifier_before(&self.code, place))
            .collect()
    }

    /// Returns the names that `let` gives to the blocks around a position, which run later.
    pub fn names_of_blocks(&self, at: usize) -> Vec<&str> {
        let name = |place: usize| {
            let ahead = self.code[..place].trim_end();
            let ahead = ahead.strip_suffix(" move").unwrap_or(ahead);
            let ahead = ahead.strip_suffix("async")?.trim_end().strip_suffix('=')?;
            Some(identifier_before(&self.code, ahead.len()))
        };
        self.open(at).into_iter().filter_map(name).collect()
    }

    /// Returns the positions of the open parentheses and braces of the function, from the inside out.
    fn open(&self, at: usize) -> Vec<usize> {
        let begin = self.begin_of_function(at);
        let mut open = Vec::new();
        for (place, char) in self.code[begin..at].char_indices() {
            match char {
                '(' | '[' | '{' => open.push(begin + place),
                ')' | ']' | '}' => drop(open.pop()),
                _ => {}
            }
        }
        open.reverse();
        open
    }

    /// Returns all identifiers, each with its position.
    pub fn identifiers(&self) -> impl Iterator<Item = (usize, &str)> {
        let begins = self.code.char_indices();
        let begins = begins.filter(|(at, char)| {
            is_identifier_char(*char) && !self.code[..*at].ends_with(is_identifier_char)
        });
        begins.map(|(at, _)| (at, identifier_at(&self.code, at)))
    }

    /// Returns all positions of `name` as a whole identifier.
    pub fn places(&self, name: &str) -> Vec<usize> {
        let is_whole = |at: &usize| {
            !self.code[..*at].ends_with(is_identifier_char)
                && !self.code[*at + name.len()..].starts_with(is_identifier_char)
        };
        let places = self.code.match_indices(name).map(|(at, _)| at);
        places.filter(is_whole).collect()
    }

    /// Returns the operand of `.await` at this position: the called function, or the value.
    pub fn awaited(&self, at: usize) -> (&str, usize) {
        let ahead = self.code[..at].trim_end();
        let end = match ahead.ends_with(')') {
            false => ahead.len(),
            true => {
                let mut depth = 0;
                let opens = |(place, char): (usize, char)| {
                    depth += i32::from(char == ')') - i32::from(char == '(');
                    (depth == 0).then_some(place)
                };
                ahead.char_indices().rev().find_map(opens).unwrap_or(0)
            }
        };
        let name = identifier_before(&self.code, end);
        (name, self.code[..end].trim_end().len() - name.len())
    }
}

fn is_identifier_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn identifier_at(code: &str, begin: usize) -> &str {
    let rest = &code[begin..];
    &rest[..rest
        .find(|char| !is_identifier_char(char))
        .unwrap_or(rest.len())]
}

/// Returns the identifier before a position, with the `!` of a macro.
fn identifier_before(code: &str, end: usize) -> &str {
    let ahead = code[..end].trim_end();
    let begin = ahead
        .trim_end_matches('!')
        .trim_end_matches(is_identifier_char)
        .len();
    &ahead[begin..]
}

/// Returns the end of the item at the beginning of some code: its semicolon, or its closing brace.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0;
    for (at, char) in code.char_indices() {
        depth += i32::from(char == '{') - i32::from(char == '}');
        if depth == 0 && (char == '}' || char == ';') {
            return at + 1;
        }
    }
    code.len()
}

/// Replaces comments, strings and characters by spaces.
fn blanked(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match no_code(rest, code.ends_with(is_identifier_char)) {
            0 => {
                code.push(first);
                first.len_utf8()
            }
            length => {
                let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
                code.extend(rest.bytes().take(length).map(blank));
                length
            }
        };
        rest = &rest[length..];
    }
    code
}

/// Returns the length of the comment, string or character at the beginning of `rest`; 0 if it is code.
fn no_code(rest: &str, in_identifier: bool) -> usize {
    let through = |end: &str, from: usize| {
        let found = rest.get(from..).and_then(|rest| rest.find(end));
        found.map_or(rest.len(), |at| from + at + end.len())
    };
    let raw = rest.strip_prefix('b').unwrap_or(rest);
    let raw = raw.strip_prefix('r').filter(|_| !in_identifier);
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return through("*/", 2);
    }
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return through(&end, rest.len() - raw.len() + hashes + 1);
        }
    }
    match rest.chars().next() {
        Some('"') => closed(rest, '"'),
        // A lifetime has no second quote.
        Some('\'') if rest[1..].starts_with('\\') => closed(rest, '\''),
        Some('\'') => {
            let mut chars = rest.char_indices().skip(2);
            let quoted = chars.next().filter(|(_, char)| *char == '\'');
            quoted.map_or(0, |(at, _)| at + 1)
        }
        _ => 0,
    }
}

/// Returns the length up to and with the quote that closes the one at the beginning of `rest`.
fn closed(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

#[test]
fn comments_strings_and_tests_are_not_code() {
    let text = "#[cfg(test)]\nuse c; fn a() { b('\"', \"fn c(\"); } // fn d(\nfn e<'x>() { r#\"f(\"# ; g!{h(i)} }";
    let source = Source::new("one.rs", text);
    for name in ["c", "d", "f"] {
        assert_eq!(source.places(name), [0; 0], "{name}: {}", source.code);
    }
    let i = source.places("i")[0];
    assert_eq!(source.function(i), "e");
    assert_eq!(source.surroundings(i), ["h", "g!", ""]);
    assert_eq!(source.line(i), 3);
    assert_eq!(source.function(source.places("b")[0]), "a");
}
