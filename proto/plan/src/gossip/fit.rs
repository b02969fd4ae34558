//! The requirements of algorithms on networks, and their stages there.

use super::algorithm::GossipAlgorithm;
use super::complete::{COMPLETE_FORMS, CompleteGossip, FORMS_OF_ODD};
use super::gossip_network::GossipNetwork;
use super::moves::LineParameters;
use super::stage::{Diagonal, Stage};
use crate::network::Grid;

/// The execution of an algorithm on one network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// On a grid, stage by stage.
    Stages(Vec<Stage>),
    /// Halves, on a ring.
    Halves,
    /// On a complete network.
    Among(CompleteGossip),
}

/// A reason why an algorithm does not support a network, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(String);

impl Unfit {
    /// Returns the error for an algorithm of other networks.
    pub fn other_network(arena: &GossipNetwork) -> Unfit {
        let fit = fitting(arena);
        Unfit(format!("it does not run on a {arena}; use one of {fit}"))
    }

    /// Returns the error for a parameter a or b below 2.
    fn division(given: usize) -> Unfit {
        Unfit(format!("a is {given}; it must be at least 2"))
    }
}

impl GossipAlgorithm {
    /// Returns the execution of the algorithm on a network.
    pub fn on(&self, arena: &GossipNetwork) -> Result<Way, Vec<Unfit>> {
        let unfit = || Err(vec![Unfit::other_network(arena)]);
        match (self, arena) {
            (GossipAlgorithm::Approach1, GossipNetwork::Complete(_)) => {
                Ok(Way::Among(CompleteGossip::CirculateBothWays))
            }
            (GossipAlgorithm::Among(among), GossipNetwork::Complete(pes)) => {
                check_among(*among, *pes)
            }
            (_, GossipNetwork::Complete(_)) | (GossipAlgorithm::Among(_), _) => unfit(),
            (_, GossipNetwork::Grid(grid)) => match (self, &grid.sides[..]) {
                (GossipAlgorithm::Approach1, _) => {
                    Ok(in_phases(grid, |_| LineParameters::APPROACH_1))
                }
                (GossipAlgorithm::Approach2(heads), _) => {
                    let parameters = LineParameters::approach_2(*heads);
                    check_line(parameters, grid)?;
                    Ok(in_phases(grid, |_| parameters))
                }
                (GossipAlgorithm::Circgos(parameters), [_]) => {
                    check_line(*parameters, grid)?;
                    Ok(in_phases(grid, |_| *parameters))
                }
                (GossipAlgorithm::Phases(phases), _) => check_phases(phases, grid, arena),
                (GossipAlgorithm::Halves, [_]) if grid.closed => Ok(Way::Halves),
                (GossipAlgorithm::Torgos(diagonal), _) => {
                    let side = equal_side(grid, arena)?;
                    check_diagonal(diagonal, side)?;
                    Ok(Way::Stages(diagonal.stages(side, grid.sides.len())))
                }
                (GossipAlgorithm::Cubgos, _) => {
                    let side = equal_side(grid, arena)?;
                    let fault = || format!("the side, {side}, is not a power of 3; use torgos:..");
                    let power = power_of_3(side).ok_or_else(|| vec![Unfit(fault())])?;
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

/// Returns one stage for each axis.
fn in_phases(grid: &Grid, parameters: impl Fn(usize) -> LineParameters) -> Way {
    let stage = |axis| Stage::Line {
        axis,
        parameters: parameters(axis),
    };
    Way::Stages((0..grid.sides.len()).map(stage).collect())
}

/// Returns the algorithms of a network, as errors list them.
fn fitting(arena: &GossipNetwork) -> String {
    let (circgos, last) = match arena {
        GossipNetwork::Complete(_) => return format!("auto, {COMPLETE_FORMS}, approach1"),
        GossipNetwork::Grid(Grid { sides, closed }) => match (sides.len(), closed) {
            (1, true) => (" circgos:A,a,b,", ", halves"),
            (1, false) => (" circgos:A,a,b,", ""),
            (_, _) => ("", "/A,a,b/.."),
        },
    };
    format!(
        "auto, approach1, approach2[:A],{circgos} torgos:A;b0,b1,..;x0,x1,.., cubgos, \
         phases:A,a,b{last}"
    )
}

fn check_among(among: CompleteGossip, pes: usize) -> Result<Way, Vec<Unfit>> {
    let most = pes - 1;
    let fault = match (among, among.chosen_ports()) {
        (CompleteGossip::Neighbour, _) if pes % 2 == 1 => {
            format!("{pes} PEs are an odd number; use {FORMS_OF_ODD}")
        }
        (_, Some(given)) if given == 0 || given > most => {
            format!("K is {given}; it must be from 1 to {most}, the number of other PEs")
        }
        _ => return Ok(Way::Among(among)),
    };
    Err(vec![Unfit(fault)])
}

fn least_steps(name: &str, given: usize, of: usize) -> Option<Unfit> {
    let least = of / 2;
    let fault =
        || format!("{name} is {given}; it must be at least {least}, half of {of} rounded down");
    (given < least).then(|| Unfit(fault()))
}

fn check_line(parameters: LineParameters, grid: &Grid) -> Result<(), Vec<Unfit>> {
    let most = grid.sides.iter().copied().max().unwrap_or(1);
    let (heads, division) = (parameters.heads, parameters.division);
    let wrong_heads =
        || format!("A is {heads}; it must be from 1 to {most}, the number of PEs of a line");
    let faults = [
        (heads == 0 || heads > most).then(|| Unfit(wrong_heads())),
        (division < 2).then(|| Unfit::division(division)),
        least_steps("b", parameters.steps, division),
    ];
    all_well(faults.into_iter().flatten().collect())
}

fn check_phases(
    phases: &[LineParameters],
    grid: &Grid,
    arena: &GossipNetwork,
) -> Result<Way, Vec<Unfit>> {
    let (given, needed) = (phases.len(), grid.sides.len());
    let checks = phases.iter().map(|phase| check_line(*phase, grid));
    let mut faults: Vec<Unfit> = checks.filter_map(Result::err).flatten().collect();
    let fault = || format!("{given} phases are given, and a {arena} has {needed}");
    faults.extend((given != needed).then(|| Unfit(fault())));
    all_well(faults)?;
    Ok(in_phases(grid, |axis| phases[axis]))
}

fn check_diagonal(diagonal: &Diagonal, side: usize) -> Result<(), Vec<Unfit>> {
    let divisions = diagonal.rounds.iter().map(|round| round.0);
    let product = divisions.fold(diagonal.points as u128, |product, division| {
        product.saturating_mul(division as u128)
    });
    let rounds = diagonal.rounds.iter().enumerate();
    let steps = rounds.filter_map(|(j, (of, steps))| least_steps(&format!("x{j}"), *steps, *of));
    let wrong = (product != side as u128).then(|| {
        Unfit(format!(
            "the product of A and all b is {product}; it must be the side, {side}"
        ))
    });
    // A b of 1 divides nothing.
    let is_one = diagonal.rounds.iter().any(|round| round.0 == 1);
    all_well(
        steps
            .chain(wrong)
            .chain(is_one.then(|| Unfit::division(1)))
            .collect(),
    )
}

fn equal_side(grid: &Grid, arena: &GossipNetwork) -> Result<usize, Vec<Unfit>> {
    let side = grid.sides[0];
    let fault =
        || format!("the sides of a {arena} differ; use approach1, approach2[:A] or phases:..");
    match grid.sides.iter().all(|other| *other == side) {
        true => Ok(side),
        false => Err(vec![Unfit(fault())]),
    }
}

fn all_well(faults: Vec<Unfit>) -> Result<(), Vec<Unfit>> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
}

/// Returns k if a number is 3^k.
fn power_of_3(number: usize) -> Option<usize> {
    let power = number.checked_ilog(3)?;
    (3usize.pow(power) == number).then_some(power as usize)
}
