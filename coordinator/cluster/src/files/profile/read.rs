//! Parses a file's text into a profile, or into all errors in it, each with its line. A number is only
//! accepted if it could have been measured.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::fit::{Estimate, MeasuredLink};
use flitcast_plan::cost::{Host, Ports};
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

use super::content::{Fit, HOST_COSTS, Profile, Relay, VERSION, parents, ports_name};
use crate::files::toml_file::{self, Field, Table};
use crate::files::user_file::{self, FileError, FileKind, PositionedError, SourcePosition};
use crate::options::names::pacing_named;
use crate::options::pes::MAX_LOCAL_PES;
use crate::text::phrases::names;

/// The permitted values of a number.
type Range = RangeInclusive<f64>;

/// Up to a minute, in microseconds: no useful link is slower.
const LATENCY_US: Range = 0.0..=60e6;
/// A second for each flit.
const SETUP_US: Range = 0.0..=1e6;
/// From a terabyte to a hundred bytes a second; a byte always takes some time.
const NS_PER_BYTE: Range = 1e-3..=1e7;
/// A gibibyte.
const BURST_BYTES: Range = 0.0..=1_073_741_824.0;
/// Up to a second for one action of a process.
const HOST_NS: Range = 0.0..=1e9;
/// A megabyte a second.
const HOST_NS_PER_BYTE: Range = 0.0..=1e3;
const PERCENT: Range = 0.0..=1e6;
const CORES: Range = 1.0..=65_536.0;
/// From a flit to a gibibyte.
const BUFFER_BYTES: Range = 64.0..=1_073_741_824.0;
const FLIT_BYTES: Range = MIN_FLIT_BYTES as f64..=MAX_FLIT_BYTES as f64;

const FILE: FileKind = FileKind {
    name: "profile",
    // 1 KiB for each edge of the largest local cluster, half as much again as it needs.
    max_bytes: 1024 * 1024,
};

impl Profile {
    /// Reads the profile in the file at `path`. With a tree, it must be the tree that was measured.
    pub fn load(path: &Path, tree: Option<&Tree>) -> Result<Profile, FileError> {
        user_file::load(FILE, path, |text| Profile::parse(text, tree))
    }

    /// Parses the profile in `text`; returns at least one error otherwise, in the order of the file.
    pub fn parse(text: &str, tree: Option<&Tree>) -> Result<Profile, Vec<PositionedError>> {
        toml_file::parse(text, |_, top| {
            let kind = "profile of `flitcast calibrate`";
            top.check_version(VERSION, kind, "; calibrate again")?;
            profile_of(top, tree)
        })
    }
}

fn profile_of(top: &Table<'_, '_>, tree: Option<&Tree>) -> Option<Profile> {
    let measured = top.get("measured", |field| {
        let time = field.value().as_datetime();
        let time = time.filter(|time| time.date.is_some());
        field.expect("a date and time", time.map(ToString::to_string))
    });
    let tree_name = top.text("tree");
    let parents = top.required("parents");
    let parents = parents.and_then(|field| read_parents(&field, &tree_name, tree));
    let links = top.find("links", |links| links.text());
    let encrypted = top.flag("encrypted");
    let flit_bytes = top.whole_number("flit_bytes", FLIT_BYTES) as u32;
    let pacing = top.get("pacing", |field| {
        let pacing = field.value().as_str().and_then(pacing_named);
        field.expect("\"scheduled\", \"turns\" or \"eager\"", pacing)
    });
    let host = top.required("host").and_then(|host| host.inside(read_host));
    let relay = top.find("relay", |relay| relay.inside(read_relay));
    let fit = top.get("fit", |fit| fit.inside(read_fit));
    let edges = read_edges(top, parents.as_ref().map(|parents| parents.len() + 1));
    top.refuse_others();
    let (host, ports, buffer_bytes) = host?;
    let (edges, clocks) = edges?;
    Some(Profile {
        measured,
        tree_name,
        parents: parents?,
        links,
        encrypted,
        pacing,
        flit_bytes,
        host,
        ports: ports?,
        buffer_bytes,
        relay,
        fit,
        edges,
        clocks,
    })
}

/// Reads the parents of P1, P2, .., which must be those of the requested tree; `name` is the measured
/// one's.
fn read_parents(field: &Field<'_, '_>, name: &str, tree: Option<&Tree>) -> Option<Vec<u32>> {
    let range = 0.0..=MAX_LOCAL_PES as f64;
    let parent = |(field, pe): (Field<'_, '_>, u32)| {
        let field = field.called(format!("the parent of P{pe}"));
        Some(field.whole_number(&range)? as u32)
    };
    let parents: Vec<Option<u32>> = field.list()?.zip(1..).map(parent).collect();
    let parents: Vec<u32> = parents.into_iter().collect::<Option<_>>()?;
    if let Some(fault) = tree.and_then(|tree| other_tree(&parents, name, tree)) {
        field.fault(fault);
    }
    Some(parents)
}

/// Describes how the requested tree differs from the measured one.
fn other_tree(measured: &[u32], name: &str, tree: &Tree) -> Option<String> {
    let name = match name {
        "" => "another tree",
        name => name,
    };
    let requested = parents(tree);
    if measured.len() != requested.len() {
        let (measured, requested) = (measured.len() + 1, requested.len() + 1);
        return Some(format!(
            "it was measured on {name}, with {measured} PEs, and this tree has {requested}: \
             calibrate on this one"
        ));
    }
    let both = (1..).zip(measured.iter().zip(&requested));
    let mut differing = both.filter(|(_, (measured, requested))| measured != requested);
    let (pe, (&measured, &requested)) = differing.next()?;
    let [pe, measured, requested] = [pe, measured, requested].map(PeId);
    let others = match differing.count() {
        0 => String::new(),
        1 => ", and one more differs".to_owned(),
        others => format!(", and {others} more differ"),
    };
    Some(format!(
        "it was measured on {name}, another tree: there {pe}'s parent is {measured}, \
         here it is {requested}{others}; calibrate on this one"
    ))
}

fn read_host(host: &Table<'_, '_>) -> (Host, Option<Ports>, u64) {
    let shared_cores = host.find("shared_cores", |cores| cores.whole_number(&CORES));
    let costs = HOST_COSTS.map(|key| match key {
        // Older profiles do not have it.
        "first_ns" if host.optional(key).is_none() => 0.0,
        _ if key.ends_with("_per_byte") => host.number(key, HOST_NS_PER_BYTE),
        _ => host.number(key, HOST_NS),
    });
    let ports = host.required("ports").and_then(|field| {
        let name = field.value().as_str();
        let mut all = [Ports::Single, Ports::PerEdge].into_iter();
        let ports = all.find(|ports| name == Some(ports_name(*ports)));
        field.expect("\"single\" or \"per-edge\"", ports)
    });
    let mut known = Host::NONE.with_costs(costs);
    known.shared_cores = shared_cores.map(|cores| cores as u32);
    let buffer_bytes = host.whole_number("buffer_bytes", BUFFER_BYTES);
    (known, ports, buffer_bytes)
}

fn read_relay(relay: &Table<'_, '_>) -> Relay {
    Relay {
        added_latency_ns: nanos(relay.number("added_latency_us", LATENCY_US)),
        overlap: relay.number("overlap", 0.0..=1.0),
    }
}

fn read_fit(fit: &Table<'_, '_>) -> Fit {
    Fit {
        median_residual_pct: fit.number("median_residual_pct", PERCENT),
        worst_residual_pct: fit.number("worst_residual_pct", PERCENT),
        workloads: fit.get("workloads", |all| {
            all.each(|one| one.called("a workload").text())
        }),
    }
}

/// An edge that was read: its position and its values.
type ReadEdge = (Option<SourcePosition>, (MeasuredEdge, ClockOffset));

/// Reads the edges and the clocks by PE index, for a known number of PEs if there is one.
fn read_edges(
    top: &Table<'_, '_>,
    pes: Option<usize>,
) -> Option<(Vec<MeasuredEdge>, Vec<ClockOffset>)> {
    let mut edges: BTreeMap<u32, ReadEdge> = BTreeMap::new();
    for edge in top.tables("edge") {
        let child = edge.required("child");
        let range = 1.0..=MAX_LOCAL_PES as f64;
        let Some(child) = child.and_then(|child| child.whole_number(&range)) else {
            continue;
        };
        let child = child as u32;
        let pe = PeId(child);
        let edge = edge.named(format!("the edge to {pe}"));
        let read = read_edge(&edge);
        edge.refuse_others();
        if let Some((first, _)) = edges.get(&child) {
            let first_line = first.map_or(0, |first| first.line);
            edge.fault(format!("the edge to {pe} is in line {first_line} already"));
        } else {
            if let Some(pes) = pes.filter(|&pes| pe.index() >= pes) {
                let last = pes - 1;
                edge.fault(format!(
                    "there is no edge to {pe}: with these parents they lead to P1..P{last}"
                ));
            }
            edges.insert(child, (edge.spot(), read));
        }
    }
    let missing = (1..pes? as u32).filter(|child| !edges.contains_key(child));
    let missing: Vec<PeId> = missing.map(PeId).collect();
    if !missing.is_empty() {
        let edges = if missing.len() == 1 { "edge" } else { "edges" };
        let missing = names(&missing);
        top.fault(format!("nothing is said of the {edges} to {missing}"));
    }
    let root = (MeasuredEdge::default(), ClockOffset::SHARED);
    let edges = edges.into_values().map(|(_, edge)| edge);
    Some(std::iter::once(root).chain(edges).unzip())
}

fn read_edge(edge: &Table<'_, '_>) -> (MeasuredEdge, ClockOffset) {
    let clock = edge.get("clock", |clock| clock.inside(read_clock));
    let [down, up] = ["down", "up"].map(|key| edge.get(key, |link| link.inside(read_link)));
    (MeasuredEdge { down, up }, clock)
}

fn read_clock(clock: &Table<'_, '_>) -> ClockOffset {
    ClockOffset {
        offset_ns: clock.get("offset_ns", |ns| ns.nanoseconds()),
        uncertainty_ns: clock.get("uncertainty_ns", |ns| ns.nanoseconds()),
    }
}

fn read_link(link: &Table<'_, '_>) -> MeasuredLink {
    let in_nanos = |Estimate { value, low, high }| Estimate {
        value: nanos(value),
        low: nanos(low),
        high: nanos(high),
    };
    let estimate = |key, range| link.get(key, |field| read_estimate(field, range));
    // Profiles from before it was measured have none.
    let setup_us = || link.find("setup_us", |field| read_estimate(field, SETUP_US));
    MeasuredLink {
        latency_ns: in_nanos(estimate("latency_us", LATENCY_US)),
        ns_per_byte: estimate("ns_per_byte", NS_PER_BYTE),
        burst_bytes: estimate("burst_bytes", BURST_BYTES),
        setup_ns: in_nanos(setup_us().unwrap_or_default()),
    }
}

/// Reads `[value, low, high]`; the range is the value's.
fn read_estimate(field: &Field<'_, '_>, range: Range) -> Option<Estimate> {
    let list: Vec<Field<'_, '_>> = field.list()?.take(4).collect();
    let [value, low, high] = &list[..] else {
        return field.expect_in_table("three numbers, [value, low, high]", None);
    };
    // An interval may begin at 0, and its end has no limit.
    let wide = 0.0..=1e15;
    let numbers = (value.number(&range), low.number(&wide), high.number(&wide));
    let (Some(value), Some(low), Some(high)) = numbers else {
        return None;
    };
    if !(low <= value && value <= high) {
        let key = field.name_in_table();
        list[0].fault(format!(
            "{key}: {value} does not lie between {low} and {high}; write [value, low, high]"
        ));
        return None;
    }
    Some(Estimate { value, low, high })
}

/// Converts to whole nanoseconds, as they were written.
fn nanos(us: f64) -> f64 {
    (us * 1000.0).round()
}
