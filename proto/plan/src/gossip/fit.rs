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
                    check(faults_of_line(parameters, grid))?;
                    Ok(in_phases(grid, |_| parameters))
                }
                (GossipAlgorithm::Circgos(parameters), [_]) => {
                    check(faults_of_line(*parameters, grid))?;
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

/// Returns a reason if something is wrong.
fn unfit(is_wrong: bool, fault: impl FnOnce() -> String) -> Option<Unfit> {
    is_wrong.then(|| Unfit(fault()))
}

fn check(faults: impl IntoIterator<Item = Option<Unfit>>) -> Result<(), Vec<Unfit>> {
    let faults: Vec<Unfit> = faults.into_iter().flatten().collect();
    match faults.is_empty() {
        true => Ok(()),
        false => Err(faults),
    }
}

fn check_among(among: CompleteGossip, pes: usize) -> Result<Way, Vec<Unfit>> {
    let most = pes - 1;
    let ports = match among {
        CompleteGossip::Dissemination { ports } => ports,
        _ => 1,
    };
    check([
        unfit(among == CompleteGossip::Neighbour && pes % 2 == 1, || {
            format!("{pes} PEs are an odd number; use {FORMS_OF_ODD}")
        }),
        unfit(ports == 0 || ports > most, || {
            format!("K is {ports}; it must be from 1 to {most}, the number of other PEs")
        }),
    ])?;
    Ok(Way::Among(among))
}

fn least_steps(name: &str, given: usize, of: usize) -> Option<Unfit> {
    let least = of / 2;
    unfit(given < least, || {
        format!("{name} is {given}; it must be at least {least}, half of {of} rounded down")
    })
}

/// Returns the faults of parameters on lines of `grid`.
fn faults_of_line(parameters: LineParameters, grid: &Grid) -> [Option<Unfit>; 3] {
    let most = grid.sides.iter().copied().max().unwrap_or(1);
    let (heads, division) = (parameters.heads, parameters.division);
    [
        unfit(heads == 0 || heads > most, || {
            format!("A is {heads}; it must be from 1 to {most}, the number of PEs of a line")
        }),
        unfit(division < 2, || at_least_2(division)),
        least_steps("b", parameters.steps, division),
    ]
}

fn at_least_2(division: usize) -> String {
    format!("a is {division}; it must be at least 2")
}

fn check_phases(
    phases: &[LineParameters],
    grid: &Grid,
    arena: &GossipNetwork,
) -> Result<Way, Vec<Unfit>> {
    let (given, needed) = (phases.len(), grid.sides.len());
    let of_lines = phases.iter().flat_map(|phase| faults_of_line(*phase, grid));
    check(of_lines.chain([unfit(given != needed, || {
        format!("{given} phases are given, and a {arena} has {needed}")
    })]))?;
    Ok(in_phases(grid, |axis| phases[axis]))
}

fn check_diagonal(diagonal: &Diagonal, side: usize) -> Result<(), Vec<Unfit>> {
    let divisions = diagonal.rounds.iter().map(|round| round.0);
    let product = divisions.fold(diagonal.points as u128, |product, division| {
        product.saturating_mul(division as u128)
    });
    let rounds = diagonal.rounds.iter().enumerate();
    let steps = rounds.map(|(j, (of, steps))| least_steps(&format!("x{j}"), *steps, *of));
    // A b of 1 divides nothing.
    let is_one = diagonal.rounds.iter().any(|round| round.0 == 1);
    check(steps.chain([
        unfit(product != side as u128, || {
            format!("the product of A and all b is {product}; it must be the side, {side}")
        }),
        unfit(is_one, || at_least_2(1)),
    ]))
}

fn equal_side(grid: &Grid, arena: &GossipNetwork) -> Result<usize, Vec<Unfit>> {
    let side = grid.sides[0];
    let differ = grid.sides.iter().any(|other| *other != side);
    check([unfit(differ, || {
        format!("the sides of a {arena} differ; use approach1, approach2[:A] or phases:..")
    })])?;
    Ok(side)
}

/// Returns k if a number is 3^k.
fn power_of_3(number: usize) -> Option<usize> {
    let power = number.checked_ilog(3)?;
    (3usize.pow(power) == number).then_some(power as usize)
}
