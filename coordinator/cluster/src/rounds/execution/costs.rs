//! The costs for a prediction of rounds: measured on the cluster, or from a profile. The costs of processes
//! are cached for each machine, or measured by one PE of each machine at the same time.

use std::time::Duration;

use flitcast_plan::cost::Model;
use flitcast_proto::wire::control::FromPe;
use tokio::time::Instant;

use super::driver::{Driver, StopReason};
use super::inventory::Found;
use crate::files::profile::Profile;
use crate::job::host_costs::files::{FileLoad, KnownFiles};
use crate::job::host_costs::{self, CostSource, HostCosts, Key, is_here};
use crate::job::model::{Measurement, measured_model, model_by};
use crate::rounds::controller::ControllerEvent;
use crate::system::machine::{BusyThreads, DiskWaits};
use crate::tuning::SHORT_PROBE;

/// The costs of links, processes and files, and their sources.
pub struct KnownCosts {
    pub measured: Measurement,
    pub measured_at: Instant,
    pub hosts: HostCosts,
    /// The costs of files; `None` without files.
    pub files: Option<KnownFiles>,
    /// All costs, for predictions.
    pub model: Model,
    /// The busy threads of other programs on this machine.
    pub busy_threads: u32,
    /// Duration of the edges' measurement; `None` if a profile replaces it.
    pub probing: Option<Duration>,
}

impl Driver<'_> {
    /// Measures all costs, except those that are known. `others` counts busy threads meanwhile.
    /// `launch_waits` is the share of waits for disks before.
    pub async fn know_costs(
        &mut self,
        found: &Found,
        mut others: BusyThreads,
        launch_waits: f64,
    ) -> Result<KnownCosts, StopReason> {
        let request = self.request;
        // The run uses no files until the costs of files are measured.
        let waits = DiskWaits::begin();
        let (measured, hosts, mut model, probing) = match &request.profile {
            Some(profile) => self.costs_of(profile).await?,
            None => {
                let began = Instant::now();
                let measured = self.measure(SHORT_PROBE, false).await?;
                let probing = began.elapsed();
                let costs = self.know_hosts().await?;
                let hosts = costs.hosts.clone();
                let model = measured_model(&measured.edges, hosts, &request.site);
                (measured, costs, model, Some(probing))
            }
        };
        others.count();
        model.hosts = model.hosts.in_median_of(request.rounds.max(1));
        let measured_at = Instant::now();
        let is_here = is_here(&request.site);
        // Loads of other hosts are unknown.
        let load = match is_here {
            true => FileLoad::new(waits.share().max(launch_waits), others.number()),
            false => FileLoad::default(),
        };
        let files = self.know_files(found, &mut model, load).await?;
        others.count();
        // A profile was measured beside whatever runs on its machine.
        let busy_threads = match is_here && request.profile.is_none() {
            true => others.number(),
            false => 0,
        };
        model.hosts = model.hosts.beside(busy_threads);
        Ok(KnownCosts {
            measured,
            measured_at,
            hosts,
            files,
            model,
            busy_threads,
            probing,
        })
    }

    /// Returns the costs of a profile. Edges do not change, but clocks drift.
    async fn costs_of(
        &mut self,
        profile: &Profile,
    ) -> Result<(Measurement, HostCosts, Model, Option<Duration>), StopReason> {
        let clocks = self.clocks().await?;
        let edges = profile.edges.clone();
        let measured = Measurement {
            alike: vec![None; edges.len()],
            edges,
            clocks,
            fits: Vec::new(),
            shared_cores: profile.host.shared_cores,
        };
        let costs = HostCosts::one(profile.host, CostSource::Profile);
        let model = model_by(profile, &self.request.site);
        Ok((measured, costs, model, None))
    }
    /// Returns the costs on all machines; costs that no PE can measure are assumed.
    pub async fn know_hosts(&mut self) -> Result<HostCosts, StopReason> {
        let site = &self.request.site;
        let encrypted = site.guard.is_encrypted();
        let keys = self.keys(encrypted);
        let mut requested: Vec<&Key> = Vec::new();
        for pe in site.tree.pes() {
            let Some(key) = &keys[pe.index()] else {
                continue;
            };
            if host_costs::known(key).is_none() && !requested.contains(&key) {
                requested.push(key);
                self.controller.measure_host(self.now(), pe, encrypted);
            }
        }
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::Answered(pe, FromPe::HostMeasured { found }) = answer
                && let Some(key) = &keys[pe.index()]
            {
                host_costs::take_measured(key, &found);
            }
        }
        Ok(HostCosts::of(&keys, &site.tree, encrypted))
    }

    /// Returns for each PE index the key of the PE's machine, if it is known.
    fn keys(&self, encrypted: bool) -> Vec<Option<Key>> {
        let key = |pe| Key::of_pe(self.cluster.register(pe)?, encrypted);
        self.request.site.tree.ids().map(key).collect()
    }

    /// Returns the number of cores that all PEs share, if they are on one machine.
    pub fn shared_cores(&self) -> Option<u32> {
        let keys = self.keys(false);
        let mut pes = self.request.site.tree.pes();
        let first = keys[pes.next()?.index()].as_ref()?;
        let are_one = pes.all(|pe| keys[pe.index()].as_ref() == Some(first));
        are_one.then(|| first.cores())
    }
}
