//! The values of a request's cluster before it runs, and its rounds in the papers' model.

use flitcast_plan::cost::{Model, Ports};
use flitcast_plan::predict::predict;
use flitcast_plan::timing::Timing;
use flitcast_proto::cost::Edge;
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
pub fn steps(request: &Request, bytes: &[u64], flit_bytes: u32) -> Result<u64, ProtocolError> {
    let site = &request.site;
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
