//! `flitcast calibrate`: measures the edges and the clocks of a cluster, then runs rounds on it,
//! learns the costs of its processes from their durations, and writes a profile.

mod calibration;
mod fit;
mod report;
mod steps;
mod this_host;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use calibration::Calibration;
use clap::Args;
use report::{json, table};
use this_host::measure_host;

use crate::render::exit::report_end;
use flitcast_cluster::job::request::{
    flit_size, guard_fault, link_over, local_topology, of_all, of_output,
};
use flitcast_cluster::launch::runtime::conducting;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::link_spec::LinkSpec;
use flitcast_cluster::options::transfer::GuardArgs;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::placement::Placement;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::whole_file::check_place;

/// Runs `flitcast calibrate`.
pub async fn calibrate_and_report(
    calibration: &Calibration,
    logs: &[String],
) -> anyhow::Result<ExitCode> {
    stderr::note(calibration.announcement());
    let mut interrupts = Interrupts::new()?;
    let ended = calibration.run(logs, &mut interrupts).await?;
    let format = calibration.format;
    report_end(ended, format, &RetryReport::default(), |found| {
        let printed = match format {
            Format::Json => json(found),
            _ => table(found),
        };
        (printed, ExitCode::SUCCESS)
    })
}

/// Runs `flitcast calibrate --host`. It is neither watched nor traced, because another command may
/// be waiting for it.
pub fn measure_host_and_report(args: &CalibrateArgs, logs: &[String]) -> anyhow::Result<ExitCode> {
    let measured = conducting()?.block_on(async {
        let mut interrupts = Interrupts::new()?;
        measure_host(args.encrypted, logs, &mut interrupts).await
    })?;
    report_end(measured, args.format, &RetryReport::default(), |measured| {
        (measured.report(args.format), ExitCode::SUCCESS)
    })
}

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
        let (Some((topology, guard)), Some(flit_bytes), Some(seconds), Some(link), []) = (
            topology.zip(guard),
            flit_bytes,
            seconds,
            link,
            &faults.0[..],
        ) else {
            return Err(faults);
        };
        let edges = (topology.tree.len() - 1) as f64;
        let spread = topology.placement.as_ref();
        let network = link.is_some() || spread.is_some_and(Placement::is_spread);
        let usual = match network {
            true => NETWORK_SECONDS + NETWORK_SECONDS_PER_EDGE * edges,
            false => SECONDS + SECONDS_PER_EDGE * edges,
        };
        Ok(Calibration {
            seconds: seconds.unwrap_or(usual.min(MOST_SECONDS)),
            topology,
            guard,
            link,
            flit_bytes,
            output: self.output,
            format: self.format,
        })
    }
}
