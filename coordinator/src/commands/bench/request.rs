//! A request that stands for all algorithms of a bench, and the trees on which they are checked.

use flitcast_plan::Algorithm;
use flitcast_proto::ops::Collective;

use super::args::BenchRoundArgs;
use flitcast_cluster::job::request::Request;
use flitcast_cluster::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, RoundArgs, ScatterArgs,
};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;

/// The trees on which candidates are checked.
pub struct Trees {
    /// Tree of the schedules.
    pub schedules: Topology,
    /// Breadth-first tree of a network: it is a star if P0 is adjacent to all PEs.
    pub breadth_first: Topology,
}

impl Trees {
    /// Builds the trees, or returns all errors in the arguments.
    pub fn of(base_algorithm: Algorithm, args: &TreeArgs) -> Result<Trees, Faults> {
        let spanning = match base_algorithm.collective() {
            Collective::Scatter => SpanningArg::Bfs,
            _ => SpanningArg::Broadcast,
        };
        Ok(Trees {
            schedules: args.topology(spanning)?,
            breadth_first: args.topology(SpanningArg::Bfs)?,
        })
    }
}

/// Returns a request that every tree supports.
pub fn request(base_algorithm: Algorithm, args: &BenchRoundArgs) -> Result<Request, Faults> {
    let round = RoundArgs {
        transfer: args.transfer.clone(),
        rounds: args.rounds,
        ..RoundArgs::default()
    };
    let algorithm = Some(base_algorithm.name().to_owned());
    let request = match base_algorithm.collective() {
        Collective::Broadcast => Request::broadcast(BroadcastArgs {
            round,
            algorithm: Some(BroadcastAlgorithm::Listed(base_algorithm)),
            ..BroadcastArgs::default()
        }),
        Collective::Gossip => Request::gossip(GossipArgs {
            round,
            algorithm,
            ..GossipArgs::default()
        }),
        Collective::Exchange => Request::exchange(ExchangeArgs {
            round,
            algorithm,
            ..ExchangeArgs::default()
        }),
        Collective::Gather => Request::gather(GatherArgs {
            round,
            algorithm,
            ..GatherArgs::default()
        }),
        Collective::Scatter => Request::scatter(ScatterArgs {
            round,
            algorithm,
            ..ScatterArgs::default()
        }),
    };
    Ok(Request {
        again: true,
        ..request?
    })
}
