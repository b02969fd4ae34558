//! The algorithms, and their names.

use std::fmt;
use std::str::FromStr;

use flitcast_proto::names::whole_number;

use super::complete::{COMPLETE_FORMS, CompleteGossip};
use super::gossip_network::MAX_PES;
use super::moves::LineParameters;
use super::stage::Diagonal;

/// A gossip algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GossipAlgorithm {
    /// Every block goes around, along one axis after the other.
    Approach1,
    /// Concentration in this number of heads, and its reverse, along one axis after the other.
    Approach2(usize),
    /// CIRCGOS, on one line.
    Circgos(LineParameters),
    /// TORGOS, on tori and meshes of equal sides.
    Torgos(Diagonal),
    /// TORGOS with A = 3, all b = 3 and all x = 1, where sides are powers of 3.
    Cubgos,
    /// CIRCGOS along one axis after the other.
    Phases(Vec<LineParameters>),
    /// One half of each block goes around a ring to the right, the other to the left.
    Halves,
    /// The algorithms of complete networks; approach 1 is available there, too.
    Among(CompleteGossip),
}

/// An error in the name of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another word.
    #[error("`{0}` is not a gossip algorithm; use one of {ALL}, {COMPLETE_FORMS}")]
    Unknown(String),
    /// A name without its numbers, or with invalid ones.
    #[error("`{given}` does not have the form {form}, with whole numbers up to {MAX_NUMBER}")]
    Form {
        /// The name as typed.
        given: String,
        /// The expected form.
        form: &'static str,
    },
}

const ALL: &str = "auto, approach1, approach2[:A], circgos:A,a,b, torgos:A;b0,b1,..;x0,x1,.., cubgos, \
                   phases:A,a,b/A,a,b/.., halves";

/// The greatest number in a name: all useful parameters are smaller.
const MAX_NUMBER: usize = 4 * MAX_PES;

fn number(text: &str) -> Option<usize> {
    let number = usize::try_from(whole_number(text)?).ok()?;
    (number <= MAX_NUMBER).then_some(number)
}

fn numbers(text: &str) -> Option<Vec<usize>> {
    match text {
        "" => Some(Vec::new()),
        _ => text.split(',').map(number).collect(),
    }
}

fn line_parameters(text: &str) -> Option<LineParameters> {
    let [heads, division, steps] = numbers(text)?.try_into().ok()?;
    Some(LineParameters::new(heads, division, steps))
}

fn diagonal(text: &str) -> Option<Diagonal> {
    let mut parts = text.split(';');
    let points = number(parts.next()?)?;
    let divisions = numbers(parts.next().unwrap_or_default())?;
    let steps = numbers(parts.next().unwrap_or_default())?;
    let rounds = divisions.iter().copied().zip(steps.iter().copied());
    (divisions.len() == steps.len() && parts.next().is_none()).then(|| Diagonal {
        points,
        rounds: rounds.collect(),
    })
}

impl FromStr for GossipAlgorithm {
    type Err = NameError;

    fn from_str(text: &str) -> Result<GossipAlgorithm, NameError> {
        let split = text.split_once(':');
        let (name, rest) = split.map_or((text, None), |(name, rest)| (name, Some(rest)));
        let numbers = rest.unwrap_or_default();
        let (form, read) = match (name, rest) {
            ("approach1", None) => ("", Some(GossipAlgorithm::Approach1)),
            ("approach2", None) => ("", Some(GossipAlgorithm::Approach2(1))),
            ("cubgos", None) => ("", Some(GossipAlgorithm::Cubgos)),
            ("halves", None) => ("", Some(GossipAlgorithm::Halves)),
            ("approach2", _) => (
                "approach2:A",
                number(numbers).map(GossipAlgorithm::Approach2),
            ),
            ("circgos", _) => {
                let read = line_parameters(numbers);
                ("circgos:A,a,b", read.map(GossipAlgorithm::Circgos))
            }
            ("torgos", _) => {
                let read = diagonal(numbers).map(GossipAlgorithm::Torgos);
                ("torgos:A;b0,b1,..;x0,x1,..", read)
            }
            ("phases", _) => {
                let phases: Option<Vec<_>> = numbers.split('/').map(line_parameters).collect();
                ("phases:A,a,b/A,a,b/..", phases.map(GossipAlgorithm::Phases))
            }
            _ => match CompleteGossip::named(name, rest.map(number)) {
                Some((form, one)) => (form, one.map(GossipAlgorithm::Among)),
                None => return Err(NameError::Unknown(text.to_owned())),
            },
        };
        read.ok_or_else(|| NameError::Form {
            given: text.to_owned(),
            form,
        })
    }
}

impl fmt::Display for GossipAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |one: &LineParameters| format!("{},{},{}", one.heads, one.division, one.steps);
        let list = |all: &mut dyn Iterator<Item = usize>| {
            let all: Vec<String> = all.map(|number| number.to_string()).collect();
            all.join(",")
        };
        match self {
            GossipAlgorithm::Approach1 => f.write_str("approach1"),
            GossipAlgorithm::Approach2(heads) => write!(f, "approach2:{heads}"),
            GossipAlgorithm::Circgos(parameters) => write!(f, "circgos:{}", line(parameters)),
            GossipAlgorithm::Torgos(Diagonal { points, rounds }) => {
                let divisions = list(&mut rounds.iter().map(|round| round.0));
                let steps = list(&mut rounds.iter().map(|round| round.1));
                write!(f, "torgos:{points};{divisions};{steps}")
            }
            GossipAlgorithm::Cubgos => f.write_str("cubgos"),
            GossipAlgorithm::Phases(phases) => {
                let phases: Vec<String> = phases.iter().map(line).collect();
                write!(f, "phases:{}", phases.join("/"))
            }
            GossipAlgorithm::Halves => f.write_str("halves"),
            GossipAlgorithm::Among(among) => among.fmt(f),
        }
    }
}
