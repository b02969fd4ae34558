//! The costs of files for the PEs of a round: cached, or measured by one PE of each file system.

use std::collections::BTreeMap;

use flitcast_node::limits::{COMMITS_UNDER_WAY, DISK_BLOCK_BYTES, OPENED_AHEAD};
use flitcast_node::limits::{LONG_BLOCK_BYTES, LONG_MESSAGE_BYTES};
use flitcast_plan::cost::{Files, LongBlocks, Model};
use flitcast_proto::PeId;
use flitcast_proto::ops::Direction;
use flitcast_proto::wire::control::{FromPe, Payload};

use super::driver::{Driver, StopReason};
use super::inventory::Found;
use crate::job::host_costs::files::{CachedFiles, FileLoad, FileSystem, KnownFiles, assumed};
use crate::job::host_costs::{CostSource, is_here};
use crate::rounds::controller::ControllerEvent;

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
                self.controller.measure_files(self.now(), *pe);
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
    fn file_system(&self, pe: PeId, number: u64) -> FileSystem {
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
