//! The costs for a prediction of rounds: measured on the cluster, or from a profile. The costs of processes
//! are cached for each machine, or measured by one PE of each machine at the same time.
//! The costs of files are cached for each file system, or measured by one PE of each.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_node::limits::{
    COMMITS_UNDER_WAY, DISK_BLOCK_BYTES, LONG_BLOCK_BYTES, LONG_MESSAGE_BYTES, OPENED_AHEAD,
};
use flitcast_plan::cost::{Files, LongBlocks, Model};
use flitcast_proto::PeId;
use flitcast_proto::ops::Direction;
use flitcast_proto::wire::control::{FromPe, Payload, ToPe};
use tokio::time::Instant;

use super::driver::{Driver, StopReason};
use super::inventory::Found;
use crate::files::profile::Profile;
use crate::job::host_costs::files::{CachedFiles, FileLoad, FileSystem, KnownFiles, assumed};
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
                self.send_request(pe, ToPe::MeasureHost { encrypted });
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
        are_one.then_some(first.cores)
    }
}

/// The known costs of file systems, each with its source.
type CostsOfFiles<'a> = BTreeMap<&'a FileSystem, (CachedFiles, CostSource)>;

impl Driver<'_> {
    /// Completes a model with the costs of files beside other programs and their source, if messages are
    /// made of files.
    pub async fn know_files(
        &mut self,
        found: &Found,
        model: &mut Model,
        load: FileLoad,
    ) -> Result<Option<KnownFiles>, StopReason> {
        let Payload::Files(payload) = &self.request.messages.payload else {
            return Ok(None);
        };
        let tree = &self.request.site.tree;
        let file_system = |pe: PeId| FileSystem {
            is_busy: load.is_busy(),
            ..self.file_system(pe, found.file_systems[pe.index()])
        };
        let by_pe: Vec<FileSystem> = tree.ids().map(file_system).collect();
        let known = self.costs_of_files(&by_pe).await?;
        let places: Vec<&FileSystem> = known.keys().copied().collect();
        let none = places.len();
        let place = |file_system| places.binary_search(&file_system).unwrap_or(none);
        let disk_of: Vec<usize> = by_pe.iter().map(place).collect();
        let sources = known.values().map(|(_, source)| *source);
        let source = match tree.pes().any(|pe| disk_of[pe.index()] == none) {
            true => None,
            false => sources.reduce(CostSource::less_sure),
        };
        let disks = known.values().map(|(kept, _)| kept.costs());
        let files = Files {
            disks: disks.chain([assumed()]).collect(),
            disk_of,
            made_of: found.made_of.clone(),
            block_bytes: DISK_BLOCK_BYTES as u64,
            long: LongBlocks {
                message_bytes: LONG_MESSAGE_BYTES,
                block_bytes: LONG_BLOCK_BYTES as u64,
            },
            opened_ahead: OPENED_AHEAD,
            commits_under_way: COMMITS_UNDER_WAY,
            durability: payload.durability,
            compression: payload.compression,
        };
        model.files = Some(files.clone());
        let mut writers = tree.pes().filter(|pe| self.writes(*pe));
        let written = writers.next().map(|pe| &by_pe[pe.index()]);
        let written = written.filter(|first| writers.all(|pe| by_pe[pe.index()] == **first));
        let changes_host = is_here(&self.request.site) && self.request.profile.is_none();
        if let (Some((kept, _)), true) = (written.and_then(|at| known.get(at)), changes_host) {
            let factors = kept.factors();
            model.hosts = model.hosts.map(|_, host| factors.host(host));
        }
        Ok(Some(KnownFiles {
            source: source.unwrap_or(CostSource::Assumed),
            written: written.map(|at| (at.clone(), place(at))),
            files,
            changes_host,
            load,
        }))
    }

    /// Returns the costs of each file system that is in the cache or that a PE can measure, and their
    /// source. `by_pe` has the file system of each PE.
    async fn costs_of_files<'a>(
        &mut self,
        by_pe: &'a [FileSystem],
    ) -> Result<CostsOfFiles<'a>, StopReason> {
        let mut users: BTreeMap<&FileSystem, Vec<PeId>> = BTreeMap::new();
        for pe in self.request.site.tree.pes() {
            users.entry(&by_pe[pe.index()]).or_default().push(pe);
        }
        let mut known = CostsOfFiles::new();
        for (file_system, users) in users {
            if let Some(kept) = CachedFiles::load(file_system) {
                let source = kept.source();
                known.insert(file_system, (kept, source));
                continue;
            }
            // A PE that writes is preferred, because it measures the costs of reads as well.
            let writes = |pe: &&PeId| self.writes(**pe);
            if let Some(pe) = users.iter().find(writes).or(users.first()) {
                self.send_request(*pe, ToPe::MeasureFiles);
            }
        }
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::Answered(pe, FromPe::FilesMeasured(Some(costs))) = answer {
                let file_system = &by_pe[pe.index()];
                let kept = CachedFiles::new(file_system, costs);
                kept.store();
                known.insert(file_system, (kept, CostSource::Measured));
            }
        }
        Ok(known)
    }

    fn writes(&self, pe: PeId) -> bool {
        let (operation, root) = (self.request.way.operation, self.request.site.tree.root());
        match operation.collective().direction() {
            Direction::Down => pe != root,
            Direction::Up => pe == root,
            Direction::Across => true,
        }
    }

    /// Returns the file system of a PE's files, which has this number on its host. A PE whose host
    /// is unknown has its own file systems.
    pub fn file_system(&self, pe: PeId, number: u64) -> FileSystem {
        let clock = self.clock(pe);
        FileSystem {
            host: if clock.is_empty() {
                pe.to_string()
            } else {
                clock
            },
            number,
            is_busy: false,
        }
    }
}
