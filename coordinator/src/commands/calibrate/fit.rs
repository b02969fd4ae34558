//! The fit of a profile to the rounds that were run.

use std::time::Duration;

use flitcast_plan::calibration::fit::MeasuredLink;
use flitcast_proto::{PeId, Tree};

use super::calibration::{Calibration, Ran};
use super::learn::{Run, learned, would_take_later};
use super::rounded;
use flitcast_cluster::files::profile::{Fit, Profile, Relay};

impl Calibration {
    /// Learns the costs of the host from the runs.
    pub fn fit(
        &self,
        profile: &mut Profile,
        names: Vec<String>,
        ran: &[Run],
        time: Duration,
    ) -> Vec<Ran> {
        let learned = learned(ran, profile.host, self.guard.is_encrypted(), time);
        profile.host = rounded::host(profile.host.with_costs(learned.costs));
        profile.relay = relay(&self.topology.tree, profile);
        let fitted = names.iter().zip(ran).map(|(name, run)| {
            let measured_ns = round_ns(run);
            let predicted = would_take_later(run, profile.host);
            let predicted_ns = predicted.map_or(0, |times| times[0] as u64);
            Ran {
                name: name.clone(),
                rounds: run.0.rounds,
                measured_ns,
                predicted_ns,
                error_pct: (predicted_ns as f64 / measured_ns.max(1) as f64 - 1.0) * 100.0,
            }
        });
        let fitted: Vec<Ran> = fitted.collect();
        let mut sizes: Vec<f64> = fitted.iter().map(|ran| ran.error_pct.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let at = |place: usize| rounded::significant(sizes.get(place).copied().unwrap_or(0.0), 3);
        profile.fit = Fit {
            workloads: names,
            median_residual_pct: at(sizes.len() / 2),
            worst_residual_pct: at(sizes.len().saturating_sub(1)),
        };
        fitted
    }
}

/// Returns the median arrival time of the last message in the rounds of a run.
pub fn round_ns((_, outcome): &Run) -> u64 {
    outcome.measured.map_or(0, |spread| spread.median)
}

/// Returns the cost of a relay: the median over all relays and both directions through each.
///
/// The latency is the time of its process for a flit at both ends, and the time until the process
/// runs. The receive port is busy as long as one link takes for a flit, the send port as long as
/// the other, and the thread as long as it computes; the maximum of the three is the time per flit
/// in a long stream.
fn relay(tree: &Tree, profile: &Profile) -> Option<Relay> {
    let host = &profile.host;
    let flit = f64::from(profile.flit_bytes);
    let thread_ns = 2.0 * host.flit_ns + flit * (host.send_ns_per_byte + host.receive_ns_per_byte);
    let relays = tree
        .pes()
        .skip(1)
        .flat_map(|pe| tree.children(pe).iter().map(move |&c| (pe, c)));
    let mut overlaps: Vec<f64> = relays
        .flat_map(|(relay, child): (PeId, PeId)| {
            let (above, below) = (&profile.edges[relay.index()], &profile.edges[child.index()]);
            [(above.down, below.down), (below.up, above.up)]
        })
        .map(|(into, out)| {
            let port = |link: MeasuredLink| flit * link.ns_per_byte.value;
            let (receive, send) = (port(into), port(out));
            let period = receive.max(send).max(thread_ns);
            ((receive + send - period) / receive.min(send)).clamp(0.0, 1.0)
        })
        .collect();
    overlaps.sort_by(f64::total_cmp);
    Some(Relay {
        added_latency_ns: (host.wake_ns + 2.0 * host.flit_ns).round(),
        overlap: rounded::significant(*overlaps.get(overlaps.len() / 2)?, 3),
    })
}
