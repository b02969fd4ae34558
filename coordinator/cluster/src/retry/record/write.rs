//! The text of a record.

use std::path::Path;

use flitcast_proto::ops::Layout;
use flitcast_proto::{DeliveryId, DeliveryName, Durability, PeId};

use super::content::{Record, VERSION, version_text};
use crate::algorithms::method::Method;
use crate::files::toml_file::writer::{line, list, optional_line, quoted};
use crate::options::link_spec::EdgeSpec;
use crate::options::names::pacing_name;
use crate::options::order::MessageOrder;
use crate::options::sync::durability_name;
use crate::options::timeouts;
use crate::options::transfer::update_name;
use crate::text::deliveries;
use crate::text::phrases::names;

const HEAD: &str =
    "# A round that was cut off, and how far it came. `flitcast resume FILE` goes on with it.\n";

impl Record {
    pub fn text(&self) -> String {
        let (way, site, tree, files) = (&self.way, &self.site, &self.tree, &self.files);
        let lasting = Method {
            operation: way.operation.on_any_network(),
            ..way.clone()
        };
        let job_id = format!("\"{:016x}\"", self.job_id);
        let root = tree.root();
        let parents = tree.pes().filter_map(|pe| tree.parent(pe));
        let parents: Vec<u32> = parents.map(|parent| parent.0).collect();
        let dead_too = format!("of all but {root}, the dead too");
        let network = site.network.as_ref();
        let spec = network.and_then(|(spec, _)| Some(quoted(&spec.as_ref()?.to_string())));
        let nodes = network.map(|(_, nodes)| format!("{nodes:?}"));
        let pes: Vec<String> = site.pes.iter().map(|name| quoted(name)).collect();
        let pes = (!pes.is_empty()).then(|| format!("[{}]", names(&pes)));
        let rules: Vec<String> = files.rules.iter().map(|rule| quoted(rule)).collect();
        let rules = (!rules.is_empty()).then(|| format!("[{}]", names(&rules)));
        let durable = (files.durability != Durability::default())
            .then(|| quoted(durability_name(files.durability)));
        let order = (way.order != MessageOrder::Tail).then(|| quoted(&way.order.to_string()));
        let packets = way.packets.map(|packets| quoted(&packets.to_string()));
        let flag = |key, is_set: bool| optional_line(key, is_set.then_some(true), "");
        let keys = [
            line("version", VERSION, ""),
            line("undertaking", job_id, "as receipts name it"),
            line("operation", quoted(way.operation.collective().name()), ""),
            line("algorithm", quoted(lasting.algorithm()), ""),
            optional_line("sync", way.sync().map(quoted), ""),
            optional_line("pacing", pacing_name(way.pacing).map(quoted), ""),
            line("tree", quoted(&site.tree_name), ""),
            optional_line("root", (root != PeId::ROOT).then_some(root.0), ""),
            line("parents", format!("{parents:?}"), &dead_too),
            optional_line("network", spec, ""),
            optional_line("nodes", nodes, "that P0, P1, .. stand on"),
            optional_line("cluster", site.cluster.as_deref().map(path), ""),
            optional_line("pes", pes, "P0, P1, .. there"),
            optional_line("credentials", site.credentials.as_deref().map(path), ""),
            optional_line("flit_bytes", way.flit_bytes, ""),
            optional_line("packets", packets, ""),
            optional_line("order", order, ""),
            flag("cover", way.covers),
            flag("own_links", site.own_links),
            optional_line(
                "bwlimit",
                site.limit.map(|limit| quoted(&limit.to_string())),
                "",
            ),
            line("timeouts", quoted(&timeouts::written(&self.timeouts)), ""),
            line("input", path(&files.input), ""),
            line("output", path(&files.output), ""),
            flag("spread", files.spread),
            flag("lines", files.lines),
            optional_line(
                "block_bytes",
                Some(files.block_bytes).filter(|it| *it > 0),
                "",
            ),
            optional_line("parts", Some(files.parts).filter(|it| *it > 0), ""),
            optional_line("rules", rules, ""),
            optional_line("durable", durable, ""),
            flag("replace", files.replace),
            optional_line("compress", files.compression.name().map(quoted), ""),
            flag("archive", files.archive),
            optional_line("update", update_name(files.update).map(quoted), ""),
            flag("apart", files.apart),
        ];
        [HEAD, &keys.concat(), &self.messages(), &self.tables()].concat()
    }

    fn messages(&self) -> String {
        let (collective, tree) = (self.way.operation.collective(), &self.tree);
        let bytes = collective.by_message(tree, &self.bytes);
        let of = |whose: &str| {
            let note = format!("of the messages of {whose}");
            line("bytes", format!("{bytes:?}"), &note)
        };
        let bytes = match collective.layout() {
            Layout::Pieces => {
                let rows = bytes.chunks(tree.len()).map(names);
                list("bytes", rows, "of each PE's messages, for P0, P1, ..")
            }
            Layout::Shards => of("P0, P1, .."),
            _ => of(&format!("all but {}", tree.root())),
        };
        let name = |it: &DeliveryId| collective.delivery_name(tree, *it);
        let mut delivered: Vec<DeliveryName> = self.delivered.iter().map(name).collect();
        delivered.sort_unstable();
        let delivered = line("delivered", deliveries::values(&delivered), "");
        let versions = self.versions.iter();
        let versions = versions.map(|version| quoted(&version_text(version)));
        let note = "of each message: its number, bytes, state, and digest once delivered";
        [bytes, delivered, list("versions", versions, note)].concat()
    }

    fn tables(&self) -> String {
        let links = self.site.links.iter().enumerate();
        let links = links.filter_map(|(pe, link)| {
            let EdgeSpec { down, up } = link.as_ref()?;
            let [down, up] = [down, up].map(|link| quoted(&link.written()));
            let head = "[[link]] # to its parent";
            Some(format!("\n{head}\npe = {pe}\ndown = {down}\nup = {up}\n"))
        });
        let dead = self.dead.iter().map(|(PeId(pe), why)| {
            let why = quoted(why);
            format!("\n[[dead]]\npe = {pe}\nwhy = {why}\n")
        });
        links.chain(dead).collect()
    }
}

fn path(path: &Path) -> String {
    quoted(&path.display().to_string())
}
