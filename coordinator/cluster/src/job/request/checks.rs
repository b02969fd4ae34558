//! The checks of a command line of any operation: a method for each subject, which collects all errors.

use std::sync::Arc;

use anyhow::anyhow;
use flitcast_node::limits::Timeouts;
use flitcast_node::payload::Others;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::wire::control::{FilePayload, Payload};

use super::checked::{Messages, Request};
use super::choose::choose_open;
use super::gather::unfit;
use super::requested_messages::RequestedMessages;
use super::spec::{Open, OpenChoices, RequestSpec, check_any};
use super::trees::{described, emulates_own_links, laid, seen_from};
use super::values::{create_output, flit_size, output_fault, packets_faults, parse_order, rules};
use crate::algorithms::method::Method;
use crate::files::profile::Profile;
use crate::job::fault::{guard_fault, of_all, relative};
use crate::job::parallel_trees::has_parts;
use crate::job::site::{Site, link_over, links, links_name, rate_limit};
use crate::options::baseline::Baseline;
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::link_spec::LinkSpec;
use crate::options::order::MessageOrder;
use crate::options::packets::Packets;
use crate::options::ports::Ports;
use crate::options::{retries, sync, timeouts};
use crate::site::guard::Guard;
use crate::site::placement::Placement;
use crate::site::settings::Settings;
use crate::site::topology::{Topology, of_option};
use crate::text::faults::Faults;

/// Checks a command line whose operation on a tree is `operation`.
///
/// # Errors
///
/// Returns all errors in the command line.
pub fn check(
    mut spec: RequestSpec,
    operation: impl Fn(&Topology) -> anyhow::Result<Algorithm>,
) -> Result<Request, Faults> {
    spec.count_by_input();
    let ways = spec.ways.take();
    let order = std::mem::replace(&mut spec.order, Ok(None));
    let mut checks = Checks {
        spec: &spec,
        faults: Faults::default(),
        ways: None,
        offered: None,
        topology: None,
        placement: None,
        operation: None,
    };
    let tree = checks.trees(ways);
    checks.operation(operation);
    let flits = checks.flits();
    checks.cover();
    let link = checks.link();
    let limit = rate_limit(&spec.round, link.flatten(), checks.topology.as_ref());
    let limit = checks.faults.take(limit).flatten();
    let timeouts = checks.timeouts();
    let messages = checks.messages();
    checks.paths();
    let retries = checks.retries();
    checks.faults.take(spec.round.pictures.check());
    let payload = checks.payload(messages);
    let bytes = payload.as_ref().map(|(_, bytes)| &bytes[..]);
    checks.longest_packet(flits.1, bytes);
    let order = checks.order(order, bytes);
    checks.mixed(flits.1, &order);
    let (open, offered) = (checks.ways.as_ref(), checks.offered.as_deref());
    let crossings = check_any(checks.operation, open, offered, bytes);
    checks.faults.take(crossings);
    checks.tree_of_baseline(bytes);
    let profile = checks.profile(tree.as_ref(), link);
    let guard = checks.guard(profile.as_ref());
    // Last of all, as the first thing that is written.
    if checks.faults.0.is_empty() && !checks.is_elsewhere() {
        checks.faults.0.extend(create_output(&spec.round));
    }
    std::mem::take(&mut checks.faults).check()?;
    let site = checks.site(link, guard);
    let site = site.map(|site| Site { limit, ..site });
    let way = checks.way(flits, order);
    let (Some(site), Some(way), Some((payload, bytes)), Some(timeouts), Some(retries)) =
        (site, way, payload, timeouts, retries)
    else {
        return Err(checks.faults);
    };
    let args = &spec.round;
    let request = Request {
        site,
        way,
        choice: None,
        others: Vec::new(),
        messages: Messages::new(payload, bytes),
        retries,
        again: retries > 0,
        commands: false,
        timeouts,
        rounds: if args.dry_run { 0 } else { args.rounds },
        profile: profile.map(Arc::new),
        format: args.format,
        pictures: args.pictures.clone(),
    };
    match checks.ways.zip(checks.offered) {
        Some((ways, offered)) => choose_open(request, &spec, ways, offered, link.flatten()),
        None => Ok(request),
    }
}

/// The checks of a command line: all errors so far, and the results that later checks need.
struct Checks<'a> {
    spec: &'a RequestSpec,
    faults: Faults,
    /// The alternatives that are left open.
    ways: Option<OpenChoices>,
    /// The possible trees, rooted at the requested PE.
    offered: Option<Vec<Topology>>,
    /// The tree: the first of the possible ones, or the baseline's.
    topology: Option<Topology>,
    placement: Option<Placement>,
    operation: Option<Algorithm>,
}

impl Checks<'_> {
    /// Returns the operation, or one with the same kind of messages if there is none.
    fn operation_or_like(&self) -> Algorithm {
        self.operation.unwrap_or(self.spec.like)
    }

    fn name(&self) -> String {
        let operation = self.operation_or_like();
        let algorithm = self.spec.baseline.map(Baseline::name);
        let algorithm = algorithm.unwrap_or(operation.name());
        format!("{} by {algorithm}", operation.collective().name())
    }

    /// Returns whether messages cannot be cut differently, nor sent in parts.
    fn has_no_parts(&self) -> bool {
        self.spec.baseline.is_some() || self.operation.is_some_and(|it| !has_parts(it))
    }

    /// Returns whether the PEs run on other hosts, which have their files.
    fn is_elsewhere(&self) -> bool {
        self.placement.as_ref().is_some_and(Placement::is_elsewhere)
    }

    fn settings(&self) -> Settings {
        let topology = self.topology.as_ref();
        topology.map_or_else(Settings::default, |it| it.settings.clone())
    }

    /// Checks the trees and the root. Returns the tree as it is described.
    fn trees(&mut self, ways: Option<OpenChoices>) -> Option<Tree> {
        let spec = self.spec;
        let described = described(&spec.round, spec.spanning, ways);
        let described = self.faults.take(described);
        let (described, ways) = described.unzip();
        self.ways = ways.flatten();
        if let (Some((option, _)), Some(baseline)) = (&spec.root, spec.baseline) {
            self.faults.add(anyhow!(
                "{option} is not for --algorithm {}: what is there to measure against has P0 as its \
                 root",
                baseline.name()
            ));
        }
        let tree = described.as_ref().map(|offered| offered[0].tree.clone());
        let lays = spec.lays.map(|one| match &self.ways {
            Some(ways) if ways.open == Open::Unnamed => BroadcastAlgorithm::Auto,
            _ => one,
        });
        let offered = described.map(|offered| match lays {
            Some(algorithm) => laid(algorithm, spec.root.as_ref(), offered),
            None => seen_from(spec.root.as_ref(), offered),
        });
        self.offered = offered.and_then(|offered| self.faults.take(offered));
        let offered = self.offered.as_ref();
        self.topology = offered.map(|offered| offered[0].clone());
        self.placement = self.topology.as_ref().map(Topology::places);
        tree
    }

    /// Checks that the algorithm supports the tree.
    fn operation(&mut self, operation: impl Fn(&Topology) -> anyhow::Result<Algorithm>) {
        let Some(topology) = &self.topology else {
            return;
        };
        let operation = operation(topology);
        let baseline = self.spec.baseline.filter(|_| self.spec.root.is_none());
        let fits = baseline.map_or(Ok(()), |it| it.check(topology).map_err(unfit(it.name())));
        self.operation = self.faults.take(operation);
        self.faults.take(fits);
    }

    /// Checks the requested size of flits and the packets.
    fn flits(&mut self) -> (Option<u32>, Option<Packets>) {
        let args = &self.spec.round;
        let requested_size = args.transfer.flit_size.as_deref();
        let flit_bytes = self.faults.take(requested_size.map(flit_size).transpose());
        let requested_packets = args.packets.as_deref();
        let packets = requested_packets.map(str::parse::<Packets>).transpose();
        let packets = packets.map_err(|fault| anyhow!("--packets {fault}"));
        let packets = self.faults.take(packets);
        if requested_packets.is_some() {
            let whole = self.has_no_parts().then(|| self.name());
            let faults = packets_faults(whole, requested_size.is_some(), self.ways.is_some());
            self.faults.0.extend(faults);
        }
        flit_bytes.zip(packets).unwrap_or_default()
    }

    /// Checks that messages can be sent over several trees, if that is requested.
    fn cover(&mut self) {
        if !self.spec.round.cover {
            return;
        }
        if self.has_no_parts() {
            self.faults.add(anyhow!(
                "--cover is for a scatter by fdf, for a gather by shoulder-tap or certification and \
                 for any broadcast, not for {}",
                self.name()
            ));
        }
        let topology = self.topology.as_ref();
        if topology.is_some_and(|it| it.network.is_none()) {
            self.faults.add(anyhow!(
                "--cover: trees that share no link are those of a --network NETWORK (like torus:4x4) \
                 or of a cluster file with [network]"
            ));
        }
    }

    /// Checks the requested shape of links.
    fn link(&mut self) -> Option<Option<LinkSpec>> {
        let shape = self.spec.round.transfer.link.as_deref();
        let link = of_all("--link", shape.map(LinkSpec::parse).transpose());
        let link = self.faults.take(link)?;
        match &self.topology {
            Some(topology) => {
                let link = link_over(topology, link);
                self.faults.take(link)
            }
            None => Some(link),
        }
    }

    fn timeouts(&mut self) -> Option<Timeouts> {
        let settings = self.settings();
        let timeouts = match self.spec.round.transfer.timeouts.as_deref() {
            Some(text) => timeouts::over(settings.timeouts, text),
            None => Ok(settings.timeouts),
        };
        self.faults.take(of_all("--timeouts", timeouts))
    }

    /// Checks the options that define the messages.
    fn messages(&mut self) -> Option<RequestedMessages> {
        let layout = self.operation_or_like().collective().layout();
        let messages = RequestedMessages::of(&self.spec.round, layout, self.spec.dealt_by());
        self.faults.take(messages)
    }

    /// Checks the paths of the input and the output, as far as they are on this host.
    fn paths(&mut self) {
        let args = &self.spec.round;
        let is_elsewhere = self.is_elsewhere();
        if is_elsewhere {
            let input = relative("--input", args.input.as_ref());
            let output = relative("--output", args.output.as_ref());
            self.faults.0.extend(input.into_iter().chain(output));
        } else if let Some(output) = &args.output {
            let topology = self.topology.as_ref();
            let pes = topology.map_or(usize::MAX, |it| it.tree.len());
            let names = topology.map(|it| it.places().names()).unwrap_or_default();
            let has_rows = self.operation_or_like().collective().is_of_pairs();
            let entries = (has_rows, Others::all(pes).named(&names));
            let (input, force) = (args.input.as_deref(), args.replacing.replaces());
            let fault = output_fault(output, entries, input, force);
            self.faults.0.extend(fault);
        }
        if is_elsewhere && self.ways.is_some() && args.input.is_some() {
            self.faults.add(anyhow!(
                "auto chooses by the lengths of the messages, which only PEs on other hosts know: \
                 name an algorithm, and no --tree auto"
            ));
        }
    }

    fn retries(&mut self) -> Option<u32> {
        let args = &self.spec.round;
        let retries = retries::of(args.retry.as_deref(), args.rounds);
        self.faults.take(retries)
    }

    /// Returns the messages on the tree, and their lengths by delivery.
    fn payload(&mut self, messages: Option<RequestedMessages>) -> Option<(Payload, Vec<u64>)> {
        let rules = rules(&self.spec.round.selection);
        let rules = self.faults.take(rules)?;
        let durability = self.faults.take(sync::durability(self.spec.round.sync))?;
        let (topology, messages) = (self.topology.as_ref()?, messages?);
        let placement = self.placement.as_ref();
        // A PE under a daemon has another working folder.
        let is_kept = placement.is_some_and(|all| all.kept.is_some());
        let messages = match is_kept {
            true => messages.absolute(),
            false => messages,
        };
        let operation = self.operation_or_like();
        let (spec, division) = (self.spec, self.spec.division);
        let files = FilePayload {
            output_names: placement.map(Placement::names).unwrap_or_default(),
            spread: spec.spread,
            shards: spec.shards.clone(),
            lines: division.is_some_and(|division| division.lines),
            block_bytes: division.map_or(0, |division| division.block_bytes),
            parts: division.map_or(0, |division| division.parts),
            rules,
            durability,
            replace: spec.round.replacing.replaces(),
            update: spec.round.replacing.comparison(),
            compression: spec.round.transmission.compress.unwrap_or_default(),
            archive: spec.round.selection.archive,
            apart: placement.is_some_and(Placement::is_apart)
                && operation.collective().layout().can_be_apart(),
            ..FilePayload::default()
        };
        let elsewhere = self.is_elsewhere();
        let mut payload = messages.for_tree(&topology.tree, operation, files, elsewhere);
        if let Err(faults) = &mut payload {
            faults.0.extend(self.spec.count_fault(topology));
        }
        self.faults.take(payload)
    }

    /// Checks that the longest message can have the requested packets.
    fn longest_packet(&mut self, packets: Option<Packets>, bytes: Option<&[u64]>) {
        if let (Some(packets), Some(bytes)) = (packets, bytes) {
            let checked = packets.check(bytes.iter().copied().max().unwrap_or(0));
            let checked = checked.map_err(|fault| anyhow!("--packets {fault}"));
            self.faults.take(checked);
        }
    }

    /// Checks the order of messages of these lengths.
    fn order(
        &mut self,
        order: anyhow::Result<Option<String>>,
        bytes: Option<&[u64]>,
    ) -> MessageOrder {
        let order = self.faults.take(order).flatten();
        let (Some(order), Some(topology)) = (order, &self.topology) else {
            return MessageOrder::default();
        };
        let are_known = !(self.is_elsewhere() && self.spec.round.input.is_some());
        let names = topology.places().names();
        let pes = (&topology.tree, &names[..]);
        let lengths = bytes.filter(|_| are_known);
        let order = parse_order(&order, self.operation_or_like(), pes, lengths);
        self.faults.take(order).unwrap_or_default()
    }

    /// Checks that packets can mix messages, if that is requested.
    fn mixed(&mut self, packets: Option<Packets>, order: &MessageOrder) {
        let is_fdf = self
            .operation
            .is_none_or(|it| it == Algorithm::FARTHEST_FIRST);
        let is_alone = is_fdf && self.spec.baseline.is_none() && !self.spec.round.cover;
        if packets == Some(Packets::Mixed) && !(is_alone && *order == MessageOrder::Tail) {
            self.faults.add(anyhow!(
                "--packets mixed is for a scatter by fdf over one tree, in an order of its own: leave \
                 out the rest"
            ));
        }
    }

    /// Replaces the tree by that of the baseline, which depends on the messages' lengths.
    fn tree_of_baseline(&mut self, bytes: Option<&[u64]>) {
        if let (Some(bytes), Some(baseline)) = (bytes, self.spec.baseline) {
            let topology = self.topology.take();
            self.topology = topology.map(|topology| baseline.lay(topology, bytes));
        }
    }

    /// Checks that the profile, if there is one, was measured on these PEs and links.
    fn profile(&mut self, tree: Option<&Tree>, link: Option<Option<LinkSpec>>) -> Option<Profile> {
        let path = self.spec.round.transfer.profile.as_deref()?;
        // A tree that is to be chosen is not the measured one.
        let any_tree = self.ways.as_ref().is_some_and(|ways| ways.any_tree);
        let measured = tree.filter(|_| !any_tree);
        let profile = Profile::load(path, measured).map_err(of_option("--profile"));
        let profile = self.faults.take(profile)?;
        let root = self.topology.as_ref().map(|it| it.tree.root());
        let profile = match (root, measured) {
            (Some(root), Some(tree)) => profile.rerooted(tree, root),
            _ => profile,
        };
        let pes = profile.edges.len();
        if let Some(tree) = tree.filter(|tree| any_tree && tree.len() != pes) {
            let requested = tree.len();
            self.faults.add(anyhow!(
                "--profile: it was measured on {pes} PEs, not on {requested}"
            ));
        }
        if let (Some(topology), Some(link)) = (&self.topology, link) {
            let requested = links_name(&links(topology, link));
            if requested != profile.links {
                let [measured, requested] = [&profile.links, &requested]
                    .map(|links| links.as_deref().unwrap_or("links as they are"));
                self.faults.add(anyhow!(
                    "--profile: it was measured on {measured}, not on {requested}"
                ));
            }
        }
        Some(profile)
    }

    /// Checks the protection of connections, which the profile must have had as well.
    fn guard(&mut self, profile: Option<&Profile>) -> Option<Guard> {
        let transfer = &self.spec.round.transfer;
        let settings = self.settings();
        let placement = self.placement.as_ref()?;
        let guard = Guard::choose(&transfer.guard.or(&settings), placement);
        if let Err(fault) = guard.check(placement) {
            let fault = guard_fault(&transfer.guard, &transfer.tree, &settings, fault);
            self.faults.add(fault);
        }
        if self.spec.round.input.is_some() {
            self.faults.take(guard.check_files(placement));
        }
        if let Some(profile) = profile
            && profile.encrypted != guard.is_encrypted()
        {
            let [measured, is] = match profile.encrypted {
                true => ["with TLS", "without TLS"],
                false => ["without TLS", "with TLS"],
            };
            self.faults.add(anyhow!(
                "--profile: it was measured {measured}, and this would be {is}"
            ));
        }
        Some(guard)
    }

    fn way(
        &self,
        (flit_bytes, packets): (Option<u32>, Option<Packets>),
        order: MessageOrder,
    ) -> Option<Method> {
        let operation = match packets {
            // Only a static schedule has packets with flits of several messages.
            Some(Packets::Mixed) => Algorithm::LISTED_SCATTER,
            _ => self.operation?,
        };
        Some(Method {
            operation,
            baseline: self.spec.baseline,
            pacing: None,
            flit_bytes,
            packets,
            order,
            covers: self.spec.round.cover,
        })
    }

    /// Returns the PEs, their tree and their links.
    fn site(&mut self, link: Option<Option<LinkSpec>>, guard: Option<Guard>) -> Option<Site> {
        let (args, ports) = (&self.spec.round, self.spec.ports);
        let site = Site::of(self.topology.take()?, link?, guard?);
        let has_own_links = site.own_links || emulates_own_links(args);
        Some(Site {
            cluster: args.transfer.tree.cluster_file(),
            placement: self.placement.take()?,
            own_links: ports.map_or(has_own_links, |ports| ports == Ports::Multi),
            ..site
        })
    }
}
