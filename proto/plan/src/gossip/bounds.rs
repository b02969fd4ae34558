//! A lower bound of the time of any gossip (Juurlink, Rao, Sibeyn, Lemma 1, with N - 1 for N and the
//! degree of a mesh's corners): the greatest of three. Theorem 1's bound has no constant, so it is not
//! a number.

use super::gossip_network::GossipNetwork;
use super::steps::Prices;
use crate::fraction::Fraction;

/// Returns the greatest of three bounds: the data that the PE with the fewest edges must receive, the
/// largest distance from a PE with data, and the number of steps until a block can have reached all
/// PEs. `ports` is the number of packets that a PE of a complete network sends at a time.
pub fn bound(arena: &GossipNetwork, lengths: &[u64], ports: usize, prices: &Prices) -> Fraction {
    let pes = arena.pes();
    let total: u64 = lengths.iter().sum();
    let nonnull = lengths.iter().filter(|flits| **flits > 0).count();
    if nonnull == 0 || pes == 1 {
        return Fraction::new(0, 1);
    }
    let unit = u128::from(prices.unit);
    let whole = |price: u64, times: u64| Fraction::new(u128::from(price) * u128::from(times), unit);
    // The edges of a PE, and the distance to the farthest PE.
    let around = |pe: usize| match arena {
        GossipNetwork::Grid(grid) => (grid.degree(pe), grid.eccentricity(pe)),
        GossipNetwork::Complete(_) => (1, 1),
    };
    let data = |pe: usize| {
        let price = u128::from(prices.flit) * u128::from(total - lengths[pe]);
        Fraction::new(price, u128::from(around(pe).0) * unit)
    };
    let sources = (0..pes).filter(|pe| lengths[*pe] > 0);
    let hops = sources.map(|pe| around(pe).1).max().unwrap_or(0);
    let fan_out = match arena {
        GossipNetwork::Grid(_) => (0..pes).map(|pe| around(pe).0).max().unwrap_or(1),
        GossipNetwork::Complete(_) => ports as u64,
    };
    let steps = least_steps(pes.min(nonnull + 1) as u64, fan_out);
    let others = [whole(prices.hop, hops), whole(prices.startup, steps)];
    let all = (0..pes).map(data).chain(others);
    all.max().unwrap_or(Fraction::new(0, 1))
}

/// `ceil(log_{fan_out + 1} pes)`.
fn least_steps(pes: u64, fan_out: u64) -> u64 {
    let reached = std::iter::successors(Some(1u64), |reached| reached.checked_mul(fan_out + 1));
    reached.take_while(|reached| *reached < pes).count() as u64
}
