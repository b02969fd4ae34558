//! The job of a record, for `flitcast resume`. Its request is checked completely before anything is started, as
//! a command line is. Later changes are not known here.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::anyhow;
use flitcast_node::payload::{DestinationState, Others, delivered_at};
use flitcast_plan::network::Network;
use flitcast_proto::wire::control::{FilePayload, Payload};
use flitcast_proto::{DeliveryId, PeId};

use super::record::{self, Record};
use super::resumable_job::ResumableJob;
use crate::job::request::{
    Messages, Request, Site, check_size, measure_input, of_all, of_output, output_fault,
};
use crate::options::args::ResumeArgs;
use crate::options::link_spec::Links;
use crate::options::transfer::{GuardArgs, PictureArgs};
use crate::options::{retries, timeouts};
use crate::site::cluster_file::{self, Edges};
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::reachability::Spanned;
use crate::site::settings::Settings;
use crate::site::slurm::{self, Slurm};
use crate::site::topology::{Topology, build_network, of_option};
use crate::text::deliveries;
use crate::text::faults::Faults;

impl ResumableJob {
    /// Checks the command line of `flitcast resume`, and reads the record.
    pub fn resume(args: ResumeArgs) -> Result<ResumableJob, Faults> {
        let record = record::load(&args.record)?;
        let delivered: Vec<DeliveryId> = record.delivered.iter().copied().collect();
        let whole = request(&record, &delivered, &args)?;
        let local = !whole.site.placement.is_spread();
        let mut job = ResumableJob {
            resumed: true,
            sends_changed: args.force,
            record: Arc::new(OnceLock::from(args.record)),
            ..ResumableJob::new(whole)
        };
        if !args.revive {
            job = job.without(record.dead.clone());
        }
        job.progress.recall_versions(&record.versions);
        job.progress.learn_delivered(delivered);
        job.learn_receipts();
        let mut faults = job.changed_files(&record, local, args.force);
        if !local {
            // The record lists these as missing; on other hosts this cannot be checked here.
            let known = job.whole.messages.bytes.iter().zip(&record.bytes);
            let bytes: Vec<u64> = known.map(|(known, of)| *known.max(of)).collect();
            job.progress.learn_bytes(&bytes);
        }
        let missing = job.progress.missing();
        if faults.0.is_empty() && !missing.is_empty() && job.next().sendable.is_empty() {
            let missing = deliveries::names(&job.names(&missing));
            faults.add(anyhow!(
                "nothing can be sent: what is missing is of {missing}; --revive tries them again"
            ));
        }
        faults.check()?;
        Ok(job)
    }

    /// Returns the errors in the input and the output, as far as they are on this host: sources that
    /// have changed or are gone, and other entries at the places of missing messages.
    fn changed_files(&self, record: &Record, local: bool, force: bool) -> Faults {
        let mut faults = Faults::default();
        let whole = &self.whole;
        let replaces = matches!(&whole.messages.payload, Payload::Files(it) if it.replace);
        let (operation, tree) = (whole.way.operation, &whole.site.tree);
        let input = record.files.input.display();
        for it in operation.collective().all_deliveries(tree) {
            let (was, is) = (record.bytes[it.index()], whole.messages.bytes[it.index()]);
            let delivery = operation.collective().delivery_name(tree, it);
            // Some files would arrive twice or never.
            if record.files.spread && was != is && !force {
                let pe = delivery.row;
                faults.add(anyhow!(
                    "--input: {input} has changed, so that its files would be distributed differently: \
                     {pe}'s message was {was} bytes long and is {is} bytes now"
                ));
                break;
            }
            let message = deliveries::message(delivery);
            // Files on other hosts cannot be examined here.
            if !local || was == 0 || self.progress.delivered.contains(&it) {
                continue;
            }
            if is == 0 {
                faults.add(anyhow!(
                    "--input: {message}, of {was} bytes by the record, is not in {input} any more"
                ));
            }
            if !replaces && self.standing(it) == Some(DestinationState::Another) {
                let path = self.destination_of(it).unwrap_or_default();
                faults.add(anyhow!(
                    "--output: {} is there, and by the record {message} is missing: \
                     take it away, or replace it with --force",
                    path.display()
                ));
            }
        }
        faults
    }
}

/// Returns the request of a record on the whole tree, without the messages in `delivered`, which
/// must be in increasing order.
pub fn request(
    record: &Record,
    delivered: &[DeliveryId],
    args: &ResumeArgs,
) -> Result<Request, Faults> {
    let mut faults = Faults::default();
    let tree = &record.tree;
    let retries = faults.take(retries::of(args.retry.as_deref(), 1));
    let over = |text| timeouts::over(record.timeouts, text);
    let timeouts = args.timeouts.as_deref().map_or(Ok(record.timeouts), over);
    let timeouts = faults.take(of_all("--timeouts", timeouts));
    let placement = faults.take(placement(record));
    let network = faults.take(network(record));
    // PEs on other hosts have their files there.
    let elsewhere = match &placement {
        Some(Some((placement, _))) => placement.is_elsewhere(),
        Some(None) => false,
        // The hosts of the PEs are unknown.
        None => true,
    };
    let recorded = || record.files.output.clone();
    let output = match elsewhere || record.files.apart {
        true => recorded(),
        false => {
            let beside = beside(record, &args.record, delivered);
            faults.take(beside).unwrap_or_else(recorded)
        }
    };
    let bytes = match elsewhere {
        true => Ok(record.bytes.clone()),
        false => {
            let (operation, files) = (record.way.operation, &record.files);
            let others = Others::all(tree.len()).named(&files.output_names);
            let entries = (operation.collective().is_of_pairs(), others);
            let fault = output_fault(&output, entries, Some(&files.input), true);
            faults.0.extend(fault);
            let left_out = |it: DeliveryId| delivered.binary_search(&it).is_ok();
            let names = &record.site.pes;
            measure_input(files, operation, tree, names, left_out)
        }
    };
    let bytes = faults.take(bytes);
    let (Some(retries), Some(timeouts), Some(placement), Some(network), Some(bytes)) =
        (retries, timeouts, placement, network, bytes)
    else {
        return Err(faults);
    };
    let site = site(record, placement, network, args, &mut faults);
    // Checked last and created first.
    if faults.0.is_empty()
        && !elsewhere
        && let Err(error) = flitcast_node::payload::create_durable(&output)
    {
        faults.add(of_output(
            &output,
            format_args!("cannot be created: {error}"),
        ));
    }
    faults.check()?;
    Ok(Request {
        site,
        way: record.way.clone(),
        choice: None,
        others: Vec::new(),
        messages: messages(record, bytes, delivered, output, args.force),
        retries,
        again: retries > 0,
        commands: false,
        timeouts,
        rounds: 1,
        profile: None,
        format: args.format,
        pictures: PictureArgs::default(),
    })
}

/// Returns the PEs of a record and their tree, and adds the errors in them.
fn site(
    record: &Record,
    placement: Option<FoundPlacement>,
    network: Option<Arc<Spanned>>,
    args: &ResumeArgs,
    faults: &mut Faults,
) -> Site {
    let (placement, of_cluster) = placement.unzip();
    let topology = Topology {
        name: record.site.tree_name.clone(),
        tree: record.tree.clone(),
        nodes: record.site.network.as_ref().map(|(_, nodes)| nodes.clone()),
        network: network.or(of_cluster.flatten()),
        broadcast_bound: None,
        links: Links::new(),
        placement,
        settings: Settings::default(),
    };
    faults.take(check_size(&topology));
    let guard_args = GuardArgs {
        credentials: match (&args.guard.credentials, args.guard.insecure) {
            (None, false) => record.site.credentials.clone(),
            (credentials, _) => credentials.clone(),
        },
        ..args.guard
    };
    let placement = topology.places();
    let guard = Guard::choose(&guard_args, &placement);
    let checked = guard.check(&placement).and(guard.check_files(&placement));
    faults.take(checked);
    Site {
        cluster: record.site.cluster.clone(),
        links: record.site.links.clone(),
        own_links: record.site.own_links,
        limit: record.site.limit,
        ..Site::of(topology, None, guard)
    }
}

/// Returns the messages of a record without those that are delivered; `known` has the lengths that
/// were measured.
fn messages(
    record: &Record,
    mut known: Vec<u64>,
    delivered: &[DeliveryId],
    output: PathBuf,
    force: bool,
) -> Messages {
    // The sources of delivered messages may be gone. If messages are dealt, all were measured.
    for it in delivered.iter().filter(|_| !record.files.spread) {
        known[it.index()] = known[it.index()].max(record.bytes[it.index()]);
    }
    let payload = Payload::Files(FilePayload {
        output,
        replace: record.files.replace || force,
        ..record.files.clone()
    });
    Messages {
        left_out: delivered.to_vec(),
        job_id: record.job_id,
        recorded: true,
        ..Messages::new(payload, known)
    }
}

/// Returns the output of a record: the folder that the record is in, which may have been moved.
///
/// # Errors
///
/// Returns an error if the record is not in its output, since the folder has no delivered entry.
fn beside(record: &Record, path: &Path, delivered: &[DeliveryId]) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
    let (operation, tree) = (record.way.operation, &record.tree);
    let files = FilePayload {
        apart: false,
        ..record.files.clone()
    };
    let is_there = |it: &DeliveryId| {
        let name = operation.collective().delivery_name(tree, *it);
        let place = delivered_at(&folder, name, &files);
        place.symlink_metadata().is_ok()
    };
    let recorded = &record.files.output;
    if folder == *recorded || delivered.is_empty() || delivered.iter().any(is_there) {
        return Ok(folder);
    }
    let why = format!(
        "nothing that {} says was delivered is beside it; \
         put it back into the output that it was left in, which was {}",
        path.display(),
        recorded.display()
    );
    Err(of_output(&folder, why))
}

/// Returns the places of the PEs by the cluster file, which must still have the same PEs. If these
/// can only connect along the edges of its tree, the tree must be the same, and a network must have
/// the edges of the tree that spans it. In a complete network the tree may differ.
fn placement(record: &Record) -> anyhow::Result<Option<FoundPlacement>> {
    let Some(path) = &record.site.cluster else {
        return Ok(None);
    };
    let was = &record.tree;
    if let Some(slurm) = Slurm::named(path) {
        let placement = slurm.placement(was.len(), slurm::environment);
        let placement = placement.map_err(of_option(slurm.option()))?;
        return Ok(Some((placement, None)));
    }
    let file = cluster_file::load(path).map_err(of_option("--cluster"))?;
    let count = |is: usize| {
        let differs = was.len() != is;
        differs.then(|| format!("it had {} PEs, and has {is}", was.len()))
    };
    let found = match (file.edges, &record.site.network) {
        (Edges::Tree(is), None) => {
            let any_tree_will_do = file.placement.has_any_edge() && !record.site.pes.is_empty();
            let moved = || {
                let is = is.rerooted(was.root());
                let mut pes = was.pes().filter(|_| !any_tree_will_do);
                let moved = pes.find(|&pe| was.parent(pe) != is.parent(pe));
                moved.map(|pe| format!("{pe} has another parent"))
            };
            let another = || renamed(record, &file.placement);
            match count(is.len()).or_else(another).or_else(moved) {
                Some(what) => Err(what),
                None => Ok((file.placement, None)),
            }
        }
        (Edges::Network(spanned), Some((_, nodes))) => {
            let network = &spanned.network;
            let another = count(network.len()).or_else(|| changed(record, nodes, network));
            let placed = another.map_or_else(|| Ok(file.placement.renumbered(nodes)), Err);
            placed.and_then(|placement| match renamed(record, &placement) {
                Some(what) => Err(what),
                None => Ok((placement, Some(Arc::new(spanned)))),
            })
        }
        (Edges::Tree(_), Some(_)) => Err("it had a [network], and has parents".to_owned()),
        (Edges::Network(_), _) => Err("it had parents, and has a [network]".to_owned()),
    };
    found.map(Some).map_err(|what| {
        let file = path.display();
        let was = "has other PEs or another tree than when the round failed";
        anyhow!("{file} {was}: {what}")
    })
}

/// The places, and the network if the file has one.
type FoundPlacement = (Placement, Option<Arc<Spanned>>);

/// Returns a description of the first PE with another name than before, if there is one.
fn renamed(record: &Record, placement: &Placement) -> Option<String> {
    let is = placement.places.iter().map(|place| place.name.as_ref());
    let mut pairs = (0..).map(PeId).zip(record.site.pes.iter().zip(is));
    pairs.find_map(|(pe, (was, is))| {
        let is = is.filter(|is| *is != was)?;
        Some(format!("{pe} was {was:?}, and is {is:?}"))
    })
}

/// Returns the reason why the tree no longer spans a network, if it does not.
fn changed(record: &Record, nodes: &[u32], network: &Network) -> Option<String> {
    if let Some(node) = nodes.iter().find(|node| !network.contains(**node)) {
        return Some(format!("there is no node {node}"));
    }
    let node = |pe: PeId| nodes[pe.index()];
    let tree = &record.tree;
    let is_edge = |pe: PeId, parent: PeId| network.neighbours(node(pe)).contains(&node(parent));
    let apart = tree.pes().find_map(|pe| {
        let parent = tree.parent(pe)?;
        (!is_edge(pe, parent)).then_some((node(pe), node(parent)))
    });
    apart.map(|(a, b)| format!("nodes {a} and {b} are no neighbours"))
}

/// Returns the network that the tree spans, and checks that it still does.
fn network(record: &Record) -> anyhow::Result<Option<Arc<Spanned>>> {
    let Some((Some(spec), nodes)) = &record.site.network else {
        return Ok(None);
    };
    let network = build_network(spec)?;
    match changed(record, nodes, &network) {
        None => Ok(Some(Arc::new(Spanned {
            spec: Some(spec.clone()),
            network,
        }))),
        Some(what) => Err(anyhow!("the network {spec} has changed: {what}")),
    }
}
