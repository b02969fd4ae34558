//! The algorithms by name, and which of them suit which network.

use std::fmt;
use std::str::FromStr;

use super::arena::{Arena, Grid, MAX_PES};
use super::complete::Among;
use super::line::LineParameters;
use super::stage::{Diagonal, Stage};
use crate::names::whole_number;

/// A way to gossip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Everybody's block goes around, along one axis after the other.
    Approach1,
    /// Concentrate in so many heads, and undo that, along one axis after the other.
    Approach2(usize),
    /// CIRCGOS, on one line.
    Circgos(LineParameters),
    /// TORGOS, on tori of equal sides.
    Torgos(Diagonal),
    /// TORGOS with A = 3, all b = 3 and all x = 1, where sides are powers of 3.
    Cubgos,
    /// CIRCGOS along one axis after the other.
    Phases(Vec<LineParameters>),
    /// One half of each block goes around a ring to the right, the other to the left.
    Halves,
    /// Those of complete networks; approach 1 is there, too.
    Among(Among),
}

/// What an algorithm does on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a grid, stage by stage.
    Stages(Vec<Stage>),
    /// Halves, on a ring.
    Halves,
    /// On a complete network.
    Among(Among),
}

/// Why a text names no way to gossip.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another word.
    #[error("`{0}` is no way to gossip: there are {ALL}")]
    Unknown(String),
    /// A word without its numbers, or with wrong ones.
    #[error("`{given}` does not have the form {form}, with whole numbers up to {MAX_NUMBER}")]
    Form {
        /// As typed.
        given: String,
        /// What it should be like.
        form: &'static str,
    },
}

/// Why an algorithm does not suit a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is for other networks.
    #[error("it is not for a {arena}: there are {}", .fit)]
    Network {
        /// The network.
        arena: String,
        /// What there is.
        fit: &'static str,
    },
    /// A.
    #[error("A is {given}, and has to be 1 to {most}, the PEs of a line")]
    Heads {
        /// As given.
        given: usize,
        /// The longest line.
        most: usize,
    },
    /// a.
    #[error("a is {0}, and has to be at least 2")]
    Division(usize),
    /// b or x.
    #[error("{name} is {given}, and has to be at least {least}, half of {of} rounded down")]
    Steps {
        /// b or x_j.
        name: String,
        /// As given.
        given: usize,
        /// What would do.
        least: usize,
        /// a or b_j.
        of: usize,
    },
    /// A * prod(b_j).
    #[error("A times all b is {given}, and has to be the side, {side}")]
    Product {
        /// As given.
        given: u128,
        /// n.
        side: usize,
    },
    /// Not one for each axis.
    #[error("{given} phases are given, and a {arena} has {needed}")]
    Phases {
        /// As given.
        given: usize,
        /// The network.
        arena: String,
        /// Its dimensions.
        needed: usize,
    },
    /// Tori whose sides differ.
    #[error("the sides of a {arena} differ: approach1, approach2[:A] and phases:.. do not mind")]
    Sides {
        /// The network.
        arena: String,
    },
    /// The side is no power of 3.
    #[error("the side, {0}, is no power of 3: take torgos:..")]
    NoPowerOf3(usize),
    /// Neighbours without a partner.
    #[error("{0} PEs do not come in pairs: take circulate, or dissemination")]
    Odd(usize),
    /// So many packets at a time are never sent.
    #[error("K is {given}, and has to be 1 to {most}, the other PEs")]
    Ports {
        /// As given.
        given: usize,
        /// The other PEs.
        most: usize,
    },
}

const ALL: &str = "auto, approach1, approach2[:A], circgos:A,a,b, torgos:A;b0,b1,..;x0,x1,.., cubgos, \
                   phases:A,a,b/A,a,b/.., halves, dissemination[:K], circulate, neighbour, direct";

/// The greatest number in a name: any parameter of use is below it.
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
    Some(LineParameters {
        heads,
        division,
        steps,
    })
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

impl FromStr for Algorithm {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Algorithm, NameError> {
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word, Some(rest)),
            None => (text, None),
        };
        let (form, read) = match (word, rest) {
            ("approach1", None) => ("", Some(Algorithm::Approach1)),
            ("approach2", None) => ("", Some(Algorithm::Approach2(1))),
            ("cubgos", None) => ("", Some(Algorithm::Cubgos)),
            ("halves", None) => ("", Some(Algorithm::Halves)),
            ("circulate", None) => ("", Some(Algorithm::Among(Among::Circulate))),
            ("neighbour", None) => ("", Some(Algorithm::Among(Among::Neighbour))),
            ("direct", None) => ("", Some(Algorithm::Among(Among::Direct))),
            ("dissemination", None) => {
                let one = Among::Dissemination { ports: 1 };
                ("", Some(Algorithm::Among(one)))
            }
            ("approach2", Some(rest)) => ("approach2:A", number(rest).map(Algorithm::Approach2)),
            ("dissemination", Some(rest)) => {
                let among = number(rest).map(|ports| Among::Dissemination { ports });
                ("dissemination:K", among.map(Algorithm::Among))
            }
            ("circgos", rest) => {
                let read = line_parameters(rest.unwrap_or_default());
                ("circgos:A,a,b", read.map(Algorithm::Circgos))
            }
            ("torgos", rest) => {
                let read = diagonal(rest.unwrap_or_default());
                ("torgos:A;b0,b1,..;x0,x1,..", read.map(Algorithm::Torgos))
            }
            ("phases", rest) => {
                let phases = rest.unwrap_or_default().split('/').map(line_parameters);
                let phases: Option<Vec<LineParameters>> = phases.collect();
                ("phases:A,a,b/A,a,b/..", phases.map(Algorithm::Phases))
            }
            _ => return Err(NameError::Unknown(text.to_owned())),
        };
        read.ok_or_else(|| NameError::Form {
            given: text.to_owned(),
            form,
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |one: &LineParameters| format!("{},{},{}", one.heads, one.division, one.steps);
        let list = |all: &mut dyn Iterator<Item = usize>| {
            let all: Vec<String> = all.map(|number| number.to_string()).collect();
            all.join(",")
        };
        match self {
            Algorithm::Approach1 | Algorithm::Among(Among::CirculateBothWays) => {
                f.write_str("approach1")
            }
            Algorithm::Approach2(heads) => write!(f, "approach2:{heads}"),
            Algorithm::Circgos(parameters) => write!(f, "circgos:{}", line(parameters)),
            Algorithm::Torgos(Diagonal { points, rounds }) => {
                let divisions = list(&mut rounds.iter().map(|round| round.0));
                let steps = list(&mut rounds.iter().map(|round| round.1));
                write!(f, "torgos:{points};{divisions};{steps}")
            }
            Algorithm::Cubgos => f.write_str("cubgos"),
            Algorithm::Phases(phases) => {
                let phases: Vec<String> = phases.iter().map(line).collect();
                write!(f, "phases:{}", phases.join("/"))
            }
            Algorithm::Halves => f.write_str("halves"),
            Algorithm::Among(Among::Dissemination { ports }) => {
                write!(f, "dissemination:{ports}")
            }
            Algorithm::Among(Among::Circulate) => f.write_str("circulate"),
            Algorithm::Among(Among::Neighbour) => f.write_str("neighbour"),
            Algorithm::Among(Among::Direct) => f.write_str("direct"),
        }
    }
}

impl Unfit {
    /// That an algorithm is not one of this network's.
    pub fn other_network(arena: &Arena) -> Unfit {
        let (arena, fit) = (arena.to_string(), fitting(arena));
        Unfit::Network { arena, fit }
    }
}

impl Algorithm {
    /// What it does on a network.
    ///
    /// # Errors
    ///
    /// All that does not suit.
    pub fn on(&self, arena: &Arena) -> Result<Way, Vec<Unfit>> {
        let unfit = || Err(vec![Unfit::other_network(arena)]);
        match (self, arena) {
            (Algorithm::Approach1, Arena::Complete(_)) => Ok(Way::Among(Among::CirculateBothWays)),
            (Algorithm::Among(among), Arena::Complete(pes)) => check_among(*among, *pes),
            (_, Arena::Complete(_)) | (Algorithm::Among(_), _) => unfit(),
            (_, Arena::Grid(grid)) => match (self, &grid.sides[..]) {
                (Algorithm::Approach1, _) => Ok(in_phases(grid, |_| LineParameters::APPROACH_1)),
                (Algorithm::Approach2(heads), _) => {
                    let parameters = LineParameters::approach_2(*heads);
                    check_line(parameters, grid)?;
                    Ok(in_phases(grid, |_| parameters))
                }
                (Algorithm::Circgos(parameters), [_]) => {
                    check_line(*parameters, grid)?;
                    Ok(in_phases(grid, |_| *parameters))
                }
                (Algorithm::Phases(phases), _) => check_phases(phases, grid, arena),
                (Algorithm::Halves, [_]) if grid.closed => Ok(Way::Halves),
                (Algorithm::Torgos(diagonal), _) if grid.closed => {
                    let side = equal_side(grid, arena)?;
                    check_diagonal(diagonal, side)?;
                    Ok(Way::Stages(diagonal.stages(side, grid.sides.len())))
                }
                (Algorithm::Cubgos, _) if grid.closed => {
                    let side = equal_side(grid, arena)?;
                    let Some(power) = power_of_3(side) else {
                        return Err(vec![Unfit::NoPowerOf3(side)]);
                    };
                    let diagonal = Diagonal {
                        points: 3,
                        rounds: vec![(3, 1); power - 1],
                    };
                    Ok(Way::Stages(diagonal.stages(side, grid.sides.len())))
                }
                _ => unfit(),
            },
        }
    }
}

/// One stage for each axis.
fn in_phases(grid: &Grid, parameters: impl Fn(usize) -> LineParameters) -> Way {
    let stage = |axis| Stage::Line {
        axis,
        parameters: parameters(axis),
    };
    Way::Stages((0..grid.sides.len()).map(stage).collect())
}

/// The algorithms of a network, as errors list them.
fn fitting(arena: &Arena) -> &'static str {
    match arena {
        Arena::Complete(_) => "auto, dissemination[:K], circulate, neighbour, direct, approach1",
        Arena::Grid(Grid { sides, closed }) => match (sides.len(), closed) {
            (1, true) => {
                "auto, approach1, approach2[:A], circgos:A,a,b, torgos:A;b0,b1,..;x0,x1,.., cubgos, \
                 phases:A,a,b, halves"
            }
            (1, false) => "auto, approach1, approach2[:A], circgos:A,a,b, phases:A,a,b",
            (_, true) => {
                "auto, approach1, approach2[:A], torgos:A;b0,b1,..;x0,x1,.., cubgos, \
                 phases:A,a,b/A,a,b/.."
            }
            (_, false) => "auto, approach1, approach2[:A], phases:A,a,b/A,a,b/..",
        },
    }
}

fn check_among(among: Among, pes: usize) -> Result<Way, Vec<Unfit>> {
    match among {
        Among::Neighbour if pes % 2 == 1 => Err(vec![Unfit::Odd(pes)]),
        Among::Dissemination { ports } if ports == 0 || ports >= pes => Err(vec![Unfit::Ports {
            given: ports,
            most: pes - 1,
        }]),
        _ => Ok(Way::Among(among)),
    }
}

fn least_steps(name: &str, given: usize, of: usize) -> Option<Unfit> {
    (given < of / 2).then(|| Unfit::Steps {
        name: name.to_owned(),
        given,
        least: of / 2,
        of,
    })
}

fn check_line(parameters: LineParameters, grid: &Grid) -> Result<(), Vec<Unfit>> {
    let most = grid.sides.iter().copied().max().unwrap_or(1);
    let LineParameters {
        heads,
        division,
        steps,
    } = parameters;
    let faults = [
        (heads == 0 || heads > most).then_some(Unfit::Heads { given: heads, most }),
        (division < 2).then_some(Unfit::Division(division)),
        least_steps("b", steps, division),
    ];
    all_well(faults.into_iter().flatten().collect())
}

fn check_phases(phases: &[LineParameters], grid: &Grid, arena: &Arena) -> Result<Way, Vec<Unfit>> {
    let (given, needed) = (phases.len(), grid.sides.len());
    let checks = phases.iter().map(|phase| check_line(*phase, grid));
    let mut faults: Vec<Unfit> = checks.filter_map(Result::err).flatten().collect();
    if given != needed {
        let arena = arena.to_string();
        faults.push(Unfit::Phases {
            given,
            arena,
            needed,
        });
    }
    all_well(faults)?;
    Ok(in_phases(grid, |axis| phases[axis]))
}

fn check_diagonal(diagonal: &Diagonal, side: usize) -> Result<(), Vec<Unfit>> {
    let divisions = diagonal.rounds.iter().map(|round| round.0);
    let product = divisions.fold(diagonal.points as u128, |product, division| {
        product.saturating_mul(division as u128)
    });
    let steps = diagonal.rounds.iter().enumerate();
    let steps =
        steps.filter_map(|(j, &(division, steps))| least_steps(&format!("x{j}"), steps, division));
    let mut faults: Vec<Unfit> = steps.collect();
    if product != side as u128 {
        faults.push(Unfit::Product {
            given: product,
            side,
        });
    }
    // A b of 1 divides nothing.
    if diagonal.rounds.iter().any(|round| round.0 == 1) {
        faults.push(Unfit::Division(1));
    }
    all_well(faults)
}

fn equal_side(grid: &Grid, arena: &Arena) -> Result<usize, Vec<Unfit>> {
    let side = grid.sides[0];
    let arena = arena.to_string();
    match grid.sides.iter().all(|other| *other == side) {
        true => Ok(side),
        false => Err(vec![Unfit::Sides { arena }]),
    }
}

fn all_well(faults: Vec<Unfit>) -> Result<(), Vec<Unfit>> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
}

/// The k of 3^k, if a number is such a power.
pub fn power_of_3(number: usize) -> Option<usize> {
    let powers = std::iter::successors(Some(1usize), |power| power.checked_mul(3));
    let mut powers = powers.take_while(|power| *power <= number);
    powers.position(|power| power == number)
}
