//! From a file's text to a profile, or to all that is wrong with it, each with its
//! line. A number is read only if it is one that could have been measured.

use std::collections::BTreeMap;

use flitcast_proto::calibration::MeasuredEdge;
use flitcast_proto::calibration::clock::ClockOffset;
use flitcast_proto::calibration::fit::{Estimate, MeasuredLink};
use flitcast_proto::cost::{Host, Ports};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};
use toml::de::DeTable;

use super::fault::Fault;
use super::reader::{Range, Reader, Section};
use super::{Fit, Profile, Relay, VERSION, parents};
use crate::files::toml_file::{self, Spot, SpotFault};
use crate::options::pes::MAX_LOCAL_PES;

/// A minute, in microseconds: no link is slower than that and of use.
const LATENCY_US: Range = 0.0..=60e6;
/// From a terabyte to a hundred bytes a second. A byte that takes no time is none.
const NS_PER_BYTE: Range = 1e-3..=1e7;
/// A gibibyte.
const BURST_BYTES: Range = 0.0..=1_073_741_824.0;
/// A second: what a process spends on one thing.
const HOST_NS: Range = 0.0..=1e9;
/// A megabyte a second.
const HOST_NS_PER_BYTE: Range = 0.0..=1e3;
const PERCENT: Range = 0.0..=1e6;
const CORES: Range = 1.0..=65_536.0;
/// From a flit to a gibibyte.
const BUFFER_BYTES: Range = 64.0..=1_073_741_824.0;
const FLIT_BYTES: Range = MIN_FLIT_BYTES as f64..=MAX_FLIT_BYTES as f64;

/// Reads a profile; otherwise, at least one fault, in the order of the file.
pub fn profile(text: &str, tree: Option<&Tree>) -> Result<Profile, Vec<SpotFault<Fault>>> {
    toml_file::parse(text, |reader, document| {
        // In another version it is anybody's guess what the rest means.
        match reader.is_of_this_version(document) {
            true => reader.document(document, tree),
            false => None,
        }
    })
}

impl Reader<'_> {
    fn is_of_this_version(&mut self, document: &DeTable<'_>) -> bool {
        let Some(value) = document.get("version") else {
            self.fault(None, Fault::NoVersion);
            return false;
        };
        let version = value.get_ref().as_integer().map(|integer| integer.as_str());
        if version == Some(VERSION.to_string().as_str()) {
            return true;
        }
        let found = self.found(value);
        self.fault(self.spot_of(value), Fault::OtherVersion { found });
        false
    }

    fn document(&mut self, document: &DeTable<'_>, tree: Option<&Tree>) -> Option<Profile> {
        let top = &Section {
            table: document,
            name: String::new(),
            spot: None,
        };
        let tables = ["host", "relay", "fit", "edge"];
        let values = [
            "version",
            "measured",
            "tree",
            "parents",
            "links",
            "encrypted",
            "flit_bytes",
            "pacing",
        ];
        self.known(top, &[&values[..], &tables[..]].concat());
        let measured = self.measured(top);
        let tree_name = self.string(top, "tree");
        let links = self.optional(top, "links", Reader::string);
        let encrypted = self.optional(top, "encrypted", Reader::boolean);
        let flit_bytes = self.number(top, "flit_bytes", FLIT_BYTES, true);
        let pacing = self.pacing(top);
        let parents = self.parents(top);
        if let (Some(parents), Some(tree)) = (&parents, tree) {
            let name = tree_name
                .clone()
                .unwrap_or_else(|| "another tree".to_owned());
            self.same_tree(top, parents, &name, tree);
        }
        let host = self.section(top, "host").and_then(|host| self.host(&host));
        let relay = self.optional(top, "relay", Reader::section);
        let relay = relay.map(|relay| self.relay(&relay));
        let fit = self.section(top, "fit").and_then(|fit| self.fit(&fit));
        let edges = self.edges(top, parents.as_ref().map(|parents| parents.len() + 1));
        let (host, ports, buffer_bytes) = host?;
        let (edges, clocks) = edges?;
        Some(Profile {
            measured: measured?,
            tree_name: tree_name?,
            parents: parents?,
            links,
            encrypted: encrypted.unwrap_or(false),
            pacing: pacing?,
            flit_bytes: flit_bytes? as u32,
            host,
            ports,
            buffer_bytes,
            relay: match relay {
                Some(relay) => Some(relay?),
                None => None,
            },
            fit: fit?,
            edges,
            clocks,
        })
    }

    fn measured(&mut self, section: &Section<'_, '_>) -> Option<String> {
        let value = self.value(section, "measured")?;
        match value.get_ref().as_datetime() {
            Some(time) if time.date.is_some() => Some(time.to_string()),
            _ => {
                self.wrong_type("measured", "a date and time", value);
                None
            }
        }
    }

    fn parents(&mut self, top: &Section<'_, '_>) -> Option<Vec<u32>> {
        let list = self.list(top, "parents")?;
        let last = MAX_LOCAL_PES as f64;
        let parents = list.iter().zip(1..);
        let parents: Vec<_> = parents
            .map(|(value, pe)| {
                self.number_in(&format!("the parent of P{pe}"), value, &(0.0..=last), true)
            })
            .collect();
        let parents: Option<Vec<f64>> = parents.into_iter().collect();
        parents.map(|parents| parents.into_iter().map(|parent| parent as u32).collect())
    }

    fn same_tree(&mut self, top: &Section<'_, '_>, measured: &[u32], name: &str, tree: &Tree) {
        let asked = parents(tree);
        let tree = name.to_owned();
        let differing = || {
            (1..)
                .zip(measured.iter().zip(&asked))
                .filter(|(_, (a, b))| a != b)
        };
        let fault = if measured.len() != asked.len() {
            Fault::OtherSize {
                tree,
                measured: measured.len() + 1,
                asked: asked.len() + 1,
            }
        } else if let Some((pe, (&measured, &asked))) = differing().next() {
            Fault::OtherTree {
                tree,
                pe: PeId(pe),
                measured: PeId(measured),
                asked: PeId(asked),
                others: differing().count() - 1,
            }
        } else {
            return;
        };
        let spot = top.table.get("parents").map(|value| self.spot_of(value));
        self.fault(spot, fault);
    }

    fn host(&mut self, host: &Section<'_, '_>) -> Option<(Host, Ports, u64)> {
        self.known(
            host,
            &[
                "shared_cores",
                "wake_ns",
                "control_ns",
                "flit_ns",
                "send_ns_per_byte",
                "receive_ns_per_byte",
                "end_ns_per_byte",
                "message_ns",
                "ports",
                "buffer_bytes",
            ],
        );
        let cores = self.optional(host, "shared_cores", |reader, host, key| {
            reader.number(host, key, CORES, true)
        });
        let mut spent = |key| self.number(host, key, HOST_NS, false);
        let wake_ns = spent("wake_ns");
        let control_ns = spent("control_ns");
        let flit_ns = spent("flit_ns");
        let message_ns = spent("message_ns");
        let mut per_byte = |key| self.number(host, key, HOST_NS_PER_BYTE, false);
        let send_ns_per_byte = per_byte("send_ns_per_byte");
        let receive_ns_per_byte = per_byte("receive_ns_per_byte");
        let end_ns_per_byte = per_byte("end_ns_per_byte");
        let ports = self.ports(host);
        let buffer_bytes = self.number(host, "buffer_bytes", BUFFER_BYTES, true);
        let costs = Host {
            shared_cores: cores.map(|cores| cores as u32),
            wake_ns: wake_ns?,
            control_ns: control_ns?,
            flit_ns: flit_ns?,
            send_ns_per_byte: send_ns_per_byte?,
            receive_ns_per_byte: receive_ns_per_byte?,
            end_ns_per_byte: end_ns_per_byte?,
            message_ns: message_ns?,
        };
        Some((costs, ports?, buffer_bytes? as u64))
    }

    fn pacing(&mut self, top: &Section<'_, '_>) -> Option<Pacing> {
        let value = self.value(top, "pacing")?;
        match value.get_ref().as_str() {
            Some("scheduled") => Some(Pacing::Scheduled),
            Some("turns") => Some(Pacing::Turns),
            Some("eager") => Some(Pacing::Eager),
            _ => {
                let expected = "\"scheduled\", \"turns\" or \"eager\"";
                self.wrong_type("pacing", expected, value);
                None
            }
        }
    }

    fn ports(&mut self, host: &Section<'_, '_>) -> Option<Ports> {
        let value = self.value(host, "ports")?;
        match value.get_ref().as_str() {
            Some("single") => Some(Ports::Single),
            Some("per-edge") => Some(Ports::PerEdge),
            _ => {
                self.wrong_type("ports", "\"single\" or \"per-edge\"", value);
                None
            }
        }
    }

    fn relay(&mut self, relay: &Section<'_, '_>) -> Option<Relay> {
        self.known(relay, &["added_latency_us", "overlap"]);
        let added = self.number(relay, "added_latency_us", LATENCY_US, false);
        let overlap = self.number(relay, "overlap", 0.0..=1.0, false);
        Some(Relay {
            added_latency_ns: nanos(added?),
            overlap: overlap?,
        })
    }

    fn fit(&mut self, fit: &Section<'_, '_>) -> Option<Fit> {
        self.known(
            fit,
            &["median_residual_pct", "worst_residual_pct", "workloads"],
        );
        let median = self.number(fit, "median_residual_pct", PERCENT, false);
        let worst = self.number(fit, "worst_residual_pct", PERCENT, false);
        let workloads: Vec<_> = self
            .list(fit, "workloads")?
            .iter()
            .map(|value| {
                let text = value.get_ref().as_str();
                if text.is_none() {
                    self.wrong_type("a workload", "a text", value);
                }
                text.map(str::to_owned)
            })
            .collect();
        Some(Fit {
            workloads: workloads.into_iter().collect::<Option<_>>()?,
            median_residual_pct: median?,
            worst_residual_pct: worst?,
        })
    }

    /// The edges and the clocks by PE index, of so many PEs if that is known.
    fn edges(
        &mut self,
        top: &Section<'_, '_>,
        pes: Option<usize>,
    ) -> Option<(Vec<MeasuredEdge>, Vec<ClockOffset>)> {
        let tables = match top.table.get("edge") {
            Some(_) => self.list(top, "edge")?,
            // P0 alone.
            None => &[],
        };
        let mut edges: BTreeMap<u32, (Spot, Option<(MeasuredEdge, ClockOffset)>)> = BTreeMap::new();
        for value in tables {
            let Some(table) = value.get_ref().as_table() else {
                self.wrong_type("edge", "a table", value);
                continue;
            };
            let spot = self.spot_of(value);
            let mut edge = Section {
                table,
                name: "this [[edge]]".to_owned(),
                spot: Some(spot),
            };
            let last = MAX_LOCAL_PES as f64;
            let Some(child) = self.number(&edge, "child", 1.0..=last, true) else {
                continue;
            };
            let child = child as u32;
            let pe = PeId(child);
            edge.name = format!("the edge to {pe}");
            let read = self.edge(&edge);
            if let Some((first, _)) = edges.get(&child) {
                let first_line = first.line;
                self.fault(spot, Fault::EdgeTwice { pe, first_line });
            } else {
                if let Some(pes) = pes.filter(|&pes| pe.index() >= pes) {
                    self.fault(spot, Fault::NoSuchEdge { pe, last: pes - 1 });
                }
                edges.insert(child, (spot, read));
            }
        }
        let pes = pes?;
        let missing = (1..pes as u32).filter(|child| !edges.contains_key(child));
        let missing: Vec<PeId> = missing.map(PeId).collect();
        if !missing.is_empty() {
            self.fault(None, Fault::MissingEdges(missing));
            return None;
        }
        let edges: Option<Vec<_>> = edges.into_values().map(|(_, edge)| edge).collect();
        let root = (MeasuredEdge::default(), ClockOffset::SHARED);
        Some(std::iter::once(root).chain(edges?).unzip())
    }

    fn edge(&mut self, edge: &Section<'_, '_>) -> Option<(MeasuredEdge, ClockOffset)> {
        self.known(edge, &["child", "clock", "down", "up"]);
        let clock = self.section(edge, "clock");
        let clock = clock.and_then(|clock| self.clock(&clock));
        let mut link = |key| {
            let link = self.section(edge, key)?;
            self.link(&link)
        };
        let (down, up) = (link("down"), link("up"));
        let edge = MeasuredEdge {
            down: down?,
            up: up?,
        };
        Some((edge, clock?))
    }

    fn clock(&mut self, clock: &Section<'_, '_>) -> Option<ClockOffset> {
        self.known(clock, &["offset_ns", "uncertainty_ns"]);
        let offset_ns = self.integer(clock, "offset_ns");
        let uncertainty_ns = self.integer(clock, "uncertainty_ns");
        Some(ClockOffset {
            offset_ns: offset_ns?,
            uncertainty_ns: uncertainty_ns?,
        })
    }

    fn link(&mut self, link: &Section<'_, '_>) -> Option<MeasuredLink> {
        self.known(link, &["latency_us", "ns_per_byte", "burst_bytes"]);
        let latency = self.estimate(link, "latency_us", LATENCY_US);
        let ns_per_byte = self.estimate(link, "ns_per_byte", NS_PER_BYTE);
        let burst_bytes = self.estimate(link, "burst_bytes", BURST_BYTES);
        let Estimate { value, low, high } = latency?;
        Some(MeasuredLink {
            latency_ns: Estimate {
                value: nanos(value),
                low: nanos(low),
                high: nanos(high),
            },
            ns_per_byte: ns_per_byte?,
            burst_bytes: burst_bytes?,
        })
    }

    /// `[value, low, high]`; the range is the value's.
    fn estimate(
        &mut self,
        link: &Section<'_, '_>,
        key: &'static str,
        range: Range,
    ) -> Option<Estimate> {
        let list = self.list(link, key)?;
        let name = format!("{key} in {}", link.name);
        let [value, low, high] = list else {
            let value = self.value(link, key)?;
            self.wrong_type(&name, "three numbers, [value, low, high]", value);
            return None;
        };
        let spot = self.spot_of(value);
        // An interval may begin at nothing, and end anywhere.
        let wide = 0.0..=1e15;
        let ranges = [range, wide.clone(), wide];
        let numbers = [value, low, high].into_iter().zip(&ranges);
        let numbers: Vec<_> = numbers
            .map(|(number, range)| self.number_in(&name, number, range, false))
            .collect();
        let [Some(value), Some(low), Some(high)] = numbers[..] else {
            return None;
        };
        if !(low <= value && value <= high) {
            let fault = Fault::NotBetween {
                key: name,
                value,
                low,
                high,
            };
            self.fault(spot, fault);
            return None;
        }
        Some(Estimate { value, low, high })
    }
}

/// Whole nanoseconds, as they were written.
fn nanos(us: f64) -> f64 {
    (us * 1000.0).round()
}
