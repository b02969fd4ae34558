//! A planned gossip on a network, as it is reported.

use flitcast_plan::fraction::Fraction;
use flitcast_plan::gossip::{Cost, Gossip, Prices};

use flitcast_cluster::options::prices::PriceArgs;

/// A planned gossip with its names.
pub struct GossipPlan<'a> {
    /// The network as typed.
    pub network: &'a str,
    /// The algorithm's name, with its parameters.
    pub algorithm: String,
    /// The prices as typed.
    pub typed: &'a PriceArgs,
    /// The prices.
    pub prices: &'a Prices,
    /// The cost of the plan.
    pub cost: Cost,
    /// The time in lock step.
    pub time: Fraction,
    /// The time if no PE waits for the end of a step; unknown on complete networks.
    pub free_run: Option<Fraction>,
    /// A lower bound of the time of any gossip.
    pub bound: Fraction,
    /// The steps.
    pub gossip: &'a Gossip,
}

impl GossipPlan<'_> {
    /// Returns the given prices, or their defaults.
    pub fn prices_as_text(&self) -> String {
        let PriceArgs { ts, td, tl, .. } = self.typed;
        let [ts, td, tl] = [(ts, "1"), (td, "0"), (tl, "1")]
            .map(|(given, default)| given.as_deref().unwrap_or(default));
        let unit = self.typed.profile.as_ref().map_or("", |_| " us");
        format!("t_s = {ts}{unit}, t_d = {td}{unit}, t_l = {tl}{unit}")
    }
}
