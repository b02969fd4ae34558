//! The command line of `flitcast calibrate` and its checks.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::calibration::Calibration;
use flitcast_cluster::job::request::{
    flit_size, guard_fault, link_over, local_topology, of_all, of_output,
};
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::transfer::GuardArgs;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::placement::Placement;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::whole_file::check_place;

/// Default duration: a fixed part and a part for each edge, at most half a minute.
const SECONDS: f64 = 4.0;
const SECONDS_PER_EDGE: f64 = 0.12;
/// Default duration over a network or shaped links, whose bytes take longer.
const NETWORK_SECONDS: f64 = 8.0;
const NETWORK_SECONDS_PER_EDGE: f64 = 0.5;
const MOST_SECONDS: f64 = 30.0;
/// Permitted values of `--seconds`.
const PERMITTED_SECONDS: std::ops::RangeInclusive<f64> = 0.5..=600.0;
/// Arguments of `flitcast calibrate`.
#[derive(Debug, Args)]
pub struct CalibrateArgs {
    /// Tree or cluster.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Measure the costs of processes on this machine; every command without a
    /// profile predicts with them. It takes a fifth of a second, and the first command on a machine
    /// does it anyway
    #[arg(long, conflicts_with_all = [
        "workers", "tree", "network", "cluster", "root", "spanning", "output", "link", "flit_size", "seconds",
        "credentials", "insecure", "metrics",
    ])]
    pub host: bool,
    /// With --host: measure processes whose connections are encrypted
    #[arg(long, requires = "host")]
    pub encrypted: bool,
    /// Write the profile to this file. Other commands use it with --profile
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Shape the links, as in rate=200mbit,latency=1ms [default: as fast as the machine]
    #[arg(long, value_name = "LINK")]
    pub link: Option<String>,
    /// Payload of a flit
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    pub flit_size: String,
    /// Approximate duration in seconds [default: 4 and 0.12 for each edge, over a network 8 and
    /// 0.5, at most 30]
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<String>,
    /// Security of connections.
    #[command(flatten)]
    pub guard: GuardArgs,
    /// Serve Prometheus metrics at http://ADDR/metrics while the command runs; unencrypted, without
    /// authentication. Example: 127.0.0.1:9464
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// Format of the result on stdout
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

impl CalibrateArgs {
    /// Checks the command line.
    pub fn into_calibration(self) -> Result<Calibration, Faults> {
        let mut faults = Faults::default();
        let topology = faults.take(local_topology(&self.tree, SpanningArg::Broadcast));
        if let Some(topology) = &topology
            && topology.tree.len() < 2
        {
            let name = &topology.name;
            faults.add(anyhow!("{name} is P0 alone: there is no edge to measure"));
        }
        let flit_bytes = faults.take(flit_size(&self.flit_size));
        let link = self.link.as_deref().map(LinkSpec::parse).transpose();
        let link = faults.take(of_all("--link", link));
        let link = match (link, &topology) {
            (Some(link), Some(topology)) => faults.take(link_over(topology, link)),
            (link, _) => link,
        };
        let seconds = self.seconds.as_deref().map(|text| {
            let seconds: Option<f64> = text.trim().parse().ok();
            let sound = seconds.filter(|seconds| PERMITTED_SECONDS.contains(seconds));
            let (least, most) = (PERMITTED_SECONDS.start(), PERMITTED_SECONDS.end());
            sound.ok_or_else(|| anyhow!("--seconds {text}: write a number from {least} to {most}"))
        });
        let seconds = faults.take(seconds.transpose());
        if let Some(output) = &self.output
            && let Err(why) = check_place(output)
        {
            faults.add(of_output(output, why));
        }
        let guard = topology.as_ref().map(|topology| {
            let (settings, places) = (&topology.settings, topology.places());
            let guard = Guard::choose(&self.guard.or(settings), &places);
            if let Err(fault) = guard.check(&places) {
                faults.add(guard_fault(&self.guard, &self.tree, settings, fault));
            }
            guard
        });
        match (topology.zip(guard), flit_bytes, seconds, link) {
            (Some((topology, guard)), Some(flit_bytes), Some(seconds), Some(link))
                if faults.0.is_empty() =>
            {
                let edges = (topology.tree.len() - 1) as f64;
                let spread = topology.placement.as_ref();
                let network = link.is_some() || spread.is_some_and(Placement::is_spread);
                let usual = match network {
                    true => NETWORK_SECONDS + NETWORK_SECONDS_PER_EDGE * edges,
                    false => SECONDS + SECONDS_PER_EDGE * edges,
                };
                let usual = usual.min(MOST_SECONDS);
                Ok(Calibration {
                    seconds: seconds.unwrap_or(usual),
                    topology,
                    guard,
                    link,
                    flit_bytes,
                    output: self.output,
                    format: self.format,
                })
            }
            _ => Err(faults),
        }
    }
}
