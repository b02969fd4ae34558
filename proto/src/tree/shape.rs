//! Trees by name: `path:9`, `kary:2:15`, `parents:0,0,1`.
//!
//! Users type the name and reports print it, so it denotes the same tree on every machine. A tree
//! in a file is only named here: this crate does not read files.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::PeId;
use crate::names::{did_you_mean, number_in, whole_number};
use crate::seeded::SplitMix64;

use super::{MAX_PES, Tree, TreeError, TreeErrors};

/// A tree by name. N counts every PE, including P0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeSpec {
    /// `path:N`: P0 - P1 - P2 and so on.
    Path(usize),
    /// `star:N`: all are children of P0.
    Star(usize),
    /// `kary:K:N`: K children each, filled level by level; those of P_i are P_{K*i+1} to P_{K*i+K}.
    Kary { arity: usize, pes: usize },
    /// `binomial:N`: the parent of P_i is i with its lowest set bit cleared. For N = 2^k it is the
    /// binomial tree; for any other N, the part of the next larger one with the first N indices.
    Binomial(usize),
    /// `random:N:SEED`: P1, P2 and so on each draw a parent, uniformly from the PEs before, with
    /// [`SplitMix64`]. The same seed always gives the same tree.
    Random { pes: usize, seed: u64 },
    /// `parents:p1,p2,...`: the parents of P1, P2 and so on, as indices; `P0` may be written for 0.
    /// An empty list is an error, since it is more likely an empty variable in a script than a
    /// request for `path:1`.
    Parents(Vec<PeId>),
    /// `file:PATH`: a tree file, which the caller reads.
    File(PathBuf),
}

/// A text that does not name a tree, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TreeSpecError(String);

/// Names and forms of the shapes; messages print the forms.
const FORMS: [(&str, &str); 7] = [
    ("path", "path:N"),
    ("star", "star:N"),
    ("kary", "kary:K:N"),
    ("binomial", "binomial:N"),
    ("random", "random:N:SEED"),
    ("parents", "parents:p1,p2,..."),
    ("file", "file:PATH"),
];

impl FromStr for TreeSpec {
    type Err = TreeSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let split = text.split_once(':');
        let (name, rest) = split.map_or((text, None), |(name, rest)| (name, Some(rest)));
        let Some(&(_, form)) = FORMS.iter().find(|(known, _)| *known == name) else {
            return Err(TreeSpecError(format!(
                "no tree shape is called `{name}`{}; the shapes are {}",
                hint(text, name),
                FORMS.map(|(_, form)| form).join(", ")
            )));
        };
        let wrong_form = || TreeSpecError(format!("`{text}` does not have the form {form}"));
        let rest = rest.ok_or_else(wrong_form)?;
        let number =
            |what, given, range| number_in(form, what, given, range).map_err(TreeSpecError);
        // The numbers are 64-bit: MAX_PES fits in 21 bits.
        let pes = |given| number("N", given, [1, MAX_PES as u64]).map(|n| n as usize);
        let pair = || rest.split_once(':').ok_or_else(wrong_form);

        match name {
            "parents" => parents(rest).map(TreeSpec::Parents),
            "file" if rest.is_empty() => Err(wrong_form()),
            "file" => Ok(TreeSpec::File(PathBuf::from(rest))),
            _ if rest.split(':').count() != form.split(':').count() - 1 => Err(wrong_form()),
            "path" => pes(rest).map(TreeSpec::Path),
            "star" => pes(rest).map(TreeSpec::Star),
            "binomial" => pes(rest).map(TreeSpec::Binomial),
            "kary" => {
                let (k, n) = pair()?;
                Ok(TreeSpec::Kary {
                    arity: number("K", k, [1, MAX_PES as u64])? as usize,
                    pes: pes(n)?,
                })
            }
            _ => {
                let (n, seed) = pair()?;
                Ok(TreeSpec::Random {
                    pes: pes(n)?,
                    seed: number("SEED", seed, [0, u64::MAX])?,
                })
            }
        }
    }
}

fn parents(list: &str) -> Result<Vec<PeId>, TreeSpecError> {
    if list.trim().is_empty() {
        let why = "`parents:` needs the parent of P1 at least (for P0 alone, use path:1)";
        return Err(TreeSpecError(why.to_owned()));
    }
    let count = list.split(',').count();
    if count >= MAX_PES {
        return Err(TreeSpecError(format!(
            "parents: {count} parents make more PEs than the {MAX_PES} that are allowed"
        )));
    }
    let parent = |(pe, given): (usize, &str)| {
        let text = given.trim();
        let digits = text.strip_prefix(['P', 'p']).unwrap_or(text);
        let index = whole_number(digits).and_then(|i| u32::try_from(i).ok());
        index.map(PeId).ok_or_else(|| {
            TreeSpecError(format!(
                "parents: the parent of P{pe} must be an index like 0 or P0, not `{given}`"
            ))
        })
    };
    (1..).zip(list.split(',')).map(parent).collect()
}

/// Returns a suggestion for an unknown shape.
fn hint(text: &str, name: &str) -> String {
    if text.ends_with(".toml") {
        return format!(" (for a tree file, write file:{text})");
    }
    did_you_mean(name, FORMS.iter().map(|(known, _)| *known))
}

impl fmt::Display for TreeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TreeSpec::Path(pes) => write!(f, "path:{pes}"),
            TreeSpec::Star(pes) => write!(f, "star:{pes}"),
            TreeSpec::Kary { arity, pes } => write!(f, "kary:{arity}:{pes}"),
            TreeSpec::Binomial(pes) => write!(f, "binomial:{pes}"),
            TreeSpec::Random { pes, seed } => write!(f, "random:{pes}:{seed}"),
            // The only form that parses back to this tree.
            TreeSpec::Parents(parents) if parents.is_empty() => f.write_str("path:1"),
            TreeSpec::Parents(parents) => {
                let parents: Vec<String> = parents.iter().map(|pe| pe.0.to_string()).collect();
                write!(f, "parents:{}", parents.join(","))
            }
            TreeSpec::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl TreeSpec {
    /// Builds the tree. Returns all faults of a [`TreeSpec::Parents`]; an error for a size that parsing
    /// would have rejected; and an error for any [`TreeSpec::File`], which the caller must read.
    pub fn build(&self) -> Result<Tree, TreeErrors> {
        match self {
            TreeSpec::Path(pes) => grow(*pes, |i| i - 1),
            TreeSpec::Star(pes) => grow(*pes, |_| 0),
            // Parsing rejects an arity of 0; if created by other code, it is a path.
            TreeSpec::Kary { arity, pes } => grow(*pes, |i| (i - 1) / (*arity).max(1) as u64),
            TreeSpec::Binomial(pes) => grow(*pes, |i| i & (i - 1)),
            TreeSpec::Random { pes, seed } => {
                let mut rng = SplitMix64::new(*seed);
                grow(*pes, |i| rng.below(i))
            }
            TreeSpec::Parents(parents) => {
                let parents = parents.iter().copied().map(Some);
                Tree::from_parents(std::iter::once(None).chain(parents).collect())
            }
            TreeSpec::File(path) => Err(TreeError::InFile(path.display().to_string()).into()),
        }
    }
}

/// Builds the tree of `pes` PEs in which `parent(i)`, less than i, is P_i's parent.
fn grow(pes: usize, mut parent: impl FnMut(u64) -> u64) -> Result<Tree, TreeErrors> {
    if pes > MAX_PES {
        // Checked before memory is reserved.
        return Err(TreeError::TooManyPes(pes).into());
    }
    let parents = (0..pes as u64).map(|i| (i > 0).then(|| PeId(parent(i) as u32)));
    Tree::from_parents(parents.collect())
}
