//! The values of a request's cluster before it runs, its rounds in the papers' model, and a lower bound of the
//! time of an algorithm on a tree, which costs no planning.

use flitcast_plan::Algorithm;
use flitcast_plan::cost::{Model, Ports};
use flitcast_plan::predict::predict;
use flitcast_plan::timing::Timing;
use flitcast_proto::Tree;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;

use super::checked::Request;
use crate::job::host_costs;
use crate::job::model::{model_by, model_of};
use crate::options::link_spec::EdgeSpec;

/// Returns the model of a request's cluster before it runs: of its profile, or else of the requested
/// links and the known costs of hosts, in the median of its rounds.
pub fn expected_model(request: &Request) -> Model {
    let mut model = match &request.profile {
        Some(profile) => model_by(profile, &request.site),
        None => {
            let links = request.site.links.iter();
            let edge = |link: &Option<EdgeSpec>| link.map_or_else(Edge::default, |l| l.edge());
            let hosts = host_costs::expected(&request.site);
            model_of(links.map(edge).collect(), hosts, &request.site)
        }
    };
    model.hosts = model.hosts.in_median_of(request.rounds.max(1));
    model
}

/// Returns the steps of a round in the papers' model, in which a flit or a control item crosses an
/// edge in a step, for messages cut into flits of `flit_bytes`.
pub fn steps(request: &Request, flit_bytes: u32) -> Result<u64, ProtocolError> {
    let (site, bytes) = (&request.site, &request.messages.bytes);
    let flits = bytes.iter().map(|bytes| bytes.div_ceil(flit_bytes.into()));
    let model = Model {
        ports: match site.own_links {
            true => Ports::PerEdge,
            false => Ports::Single,
        },
        own_links: site.own_links,
        ..Model::unit(site.tree.len())
    };
    let mut timing = Timing::LOCK_STEP;
    timing.all_ports = site.own_links;
    if request.way.operation.is_static() {
        timing = Timing::of(&model, 1, Pacing::Eager);
    }
    let flits: Vec<u64> = flits.collect();
    let schedules = request.way.operation.schedules(&site.tree, &flits, &timing);
    Ok(predict(&site.tree, &schedules, &model)?.round_ns())
}

/// Returns a time in nanoseconds that no round is quicker than: the greater of the time of the data
/// at the busiest port by the operation's bound (in steps of a byte, without those that the bound
/// adds for hops and control frames), and the latency of the longest way down the tree. `bytes` has
/// the length of each delivery.
pub fn least_ns(tree: &Tree, operation: Algorithm, model: &Model, bytes: &[u64]) -> u64 {
    let links = tree.below_root().flat_map(|pe| {
        let edge = &model.edges[pe.index()];
        [edge.down, edge.up]
    });
    let least = |of: fn(&Link) -> f64| {
        let all = links.clone().map(|link| of(&link));
        all.reduce(f64::min).unwrap_or(0.0)
    };
    // A message that is null crosses nothing; each source has a null one for itself.
    let nonnull = bytes.iter().filter(|bytes| **bytes > 0).count();
    let is_all = nonnull + bytes.len() / tree.len() >= bytes.len();
    let latency_ns = least(|link| link.latency_ns);
    let [before_ns, latency_ns] = match is_all {
        true => {
            let latencies = operation.latencies(tree);
            [latencies.before, latencies.flits].map(|number| number as f64 * latency_ns)
        }
        false => [0.0; 2],
    };
    // The bound counts steps of control frames, too, which are shorter than a step of data.
    let hops_and_control = 3 * tree.count() as u64;
    let steps = operation.least_steps(tree, bytes);
    let steps = steps.saturating_sub(hops_and_control) as f64;
    let data_ns = match model.ports {
        Ports::Single => steps * least(|link| link.ns_per_byte),
        // The process of the port sends or receives all of it.
        Ports::PerEdge => {
            let hosts = model.hosts.machines().iter();
            let software = hosts.map(|host| host.send_ns_per_byte.min(host.receive_ns_per_byte));
            steps * software.reduce(f64::min).unwrap_or(0.0)
        }
    };
    (before_ns + data_ns.max(latency_ns)) as u64
}

#[cfg(test)]
mod tests {
    use flitcast_plan::cost::{Host, Hosts};
    use flitcast_proto::cost::Edge;
    use flitcast_proto::schedule::pace::Pacing;

    use super::*;
    use crate::job::decisions::Decisions;
    use crate::job::planned_round::Planner;
    use crate::job::test_tree::tree;

    /// No prediction of any algorithm, on any tree that it supports, is below the bound.
    #[test]
    fn no_round_is_quicker() {
        let trees = [
            "path:5",
            "star:6",
            "kary:2:8",
            "kary:3:7",
            "random:9:4",
            "random:8:7",
            "path:2",
        ];
        let link = |latency_ns, ns_per_byte| Link {
            latency_ns,
            ns_per_byte,
            ..Link::default()
        };
        let software = Host {
            send_ns_per_byte: 3.0,
            receive_ns_per_byte: 4.0,
            ..Host::NONE
        };
        let links = [link(5e5, 0.0), link(0.0, 80.0), link(2e5, 8.0)];
        let mut compared = 0;
        for name in trees {
            let tree = tree(name);
            let all = Algorithm::ALL.into_iter();
            for operation in all.filter(|one| one.fits().holds(&tree)) {
                let decisions = Decisions::of(operation, Pacing::Eager);
                let given = 0..operation.collective().lengths_given(&tree) as u64;
                let lengths: Vec<u64> = given.map(|i| 20_000 * (i % 3) + 1).collect();
                let bytes = operation.collective().by_delivery(&tree, &lengths);
                for down in links {
                    let of_links = Model {
                        edges: vec![Edge { down, up: down }; tree.len()],
                        ..Model::unit(tree.len())
                    };
                    let of_processes = Model {
                        ports: Ports::PerEdge,
                        hosts: Hosts::one(software),
                        ..of_links.clone()
                    };
                    for model in [of_links, of_processes] {
                        let planner = Planner::new(&tree, &decisions, &bytes, &model);
                        let planned = planner.plan_and_predict(4096).expect("a schedule");
                        let round_ns = planned.prediction.round_ns();
                        let least = least_ns(&tree, operation, &model, &bytes);
                        let case = format!("{operation:?} on {name}, {:?}", model.ports);
                        assert!(least <= round_ns, "{case}: {least}, {round_ns}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 400, "{compared}");
    }

    /// A choice among many PEs has time for few predictions. The bound alone excludes algorithms in which every PE
    /// waits for all others one after the other.
    #[test]
    fn bounds_exclude_algorithms_with_many_latencies() {
        let link = Link {
            latency_ns: 1e6,
            ns_per_byte: 8.0,
            ..Link::default()
        };
        for (quick, slow, bytes) in [
            (
                Algorithm::GATHER_BY_ORDERS,
                Algorithm::CERTIFICATION_SERIAL,
                64 << 10,
            ),
            (
                Algorithm::CERTIFICATION_PIPELINED,
                Algorithm::CERTIFICATION_SERIAL,
                1 << 10,
            ),
            (
                Algorithm::GOSSIP_DIRECT,
                Algorithm::GOSSIP_CIRCULATE,
                1 << 10,
            ),
            (
                Algorithm::GOSSIP_DISSEMINATION,
                Algorithm::GOSSIP_CIRCULATE,
                1 << 10,
            ),
        ] {
            let tree = tree("star:64");
            let collective = quick.collective();
            let lengths = vec![bytes; collective.lengths_given(&tree)];
            let bytes = collective.by_delivery(&tree, &lengths);
            let model = Model {
                edges: vec![
                    Edge {
                        down: link,
                        up: link
                    };
                    tree.len()
                ],
                ..Model::unit(tree.len())
            };
            let decisions = Decisions::of(quick, Pacing::Scheduled);
            let planner = Planner::new(&tree, &decisions, &bytes, &model);
            let planned = planner.plan_and_predict(64 << 10).expect("a schedule");
            let quick_ns = planned.prediction.round_ns();
            let least_ns = least_ns(&tree, slow, &model, &bytes);
            assert!(
                least_ns > quick_ns,
                "{slow:?}: {least_ns}, {quick:?}: {quick_ns}"
            );
        }
    }
}
