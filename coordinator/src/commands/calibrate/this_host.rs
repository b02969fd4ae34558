//! `flitcast calibrate --host`: measures the costs of processes on this machine in a fifth of a
//! second from a few rounds of a small cluster, and stores them for the commands that follow.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use flitcast_node::system::process::cores;
use flitcast_plan::Algorithm;
use flitcast_plan::calibration::MeasuredEdge;
use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::calibration::cost_estimate::CostEstimate;
use flitcast_plan::cost::COSTS;
use flitcast_proto::schedule::pace::Pacing;

use super::calibration::Calibration;
use super::fit::{Run, learned};
use flitcast_cluster::job::host_costs::{host_here, keep_measured};
use flitcast_cluster::job::model::Measurement;
use flitcast_cluster::job::request::{Request, local_topology};
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::rounds::run::{self, RunResult};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::system::machine::BusyThreads;
use flitcast_cluster::text::units::Nanos;

/// A tree with relays, with more PEs than most machines have cores, and few to start.
const TREE: &str = "kary:2:6";
/// The runs until the time is over, the most informative first: orders with long messages; short
/// messages, where wake-up time dominates; and two in between. The sizes are unusual, so that they
/// differ from those of users.
const RUNS: [(Algorithm, Pacing, u64, u64); 4] = [
    (GATHER, Pacing::Eager, 98_317, 5),
    (Algorithm::FARTHEST_FIRST, Pacing::Scheduled, 1_031, 9),
    (Algorithm::FARTHEST_FIRST, Pacing::Scheduled, 416_813, 5),
    (GATHER, Pacing::Scheduled, 16_411, 9),
];
const GATHER: Algorithm = Algorithm::CERTIFICATION_PIPELINED;
/// No further run begins if it would end after this time, assuming the longest duration so far: the
/// first command on a machine waits for the measurement.
const ENOUGH: Duration = Duration::from_millis(200);
/// Factor of the number of rounds beside busy programs, where most wait for a time slice.
const ROUNDS_BESIDE_OTHERS: u64 = 3;
/// Time for learning from the runs, which takes about 10 ms.
const FIT: Duration = Duration::from_millis(50);
const FLIT_BYTES: u32 = 64 << 10;

#[derive(Debug)]
pub struct MeasuredHost {
    learned: CostEstimate<COSTS>,
    encrypted: bool,
    took: Duration,
    /// The stored JSON text.
    kept: String,
}

/// Measures this machine, with unencrypted or encrypted connections.
///
/// # Errors
///
/// Returns an error if the small cluster did not start, or if the machine's boot cannot be
/// identified.
pub async fn measure_host(
    encrypted: bool,
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<RunResult<Box<MeasuredHost>>> {
    let began = Instant::now();
    let tree = TreeArgs {
        tree: Some(TREE.to_owned()),
        ..TreeArgs::default()
    };
    let topology = local_topology(&tree, SpanningArg::Broadcast);
    let topology = topology.map_err(|_| anyhow::anyhow!("{TREE} is a tree"))?;
    let calibration = Calibration {
        guard: match encrypted {
            true => Guard::MadeForTheRun,
            false => Guard::Secret,
        },
        topology,
        link: None,
        flit_bytes: FLIT_BYTES,
        output: None,
        seconds: ENOUGH.as_secs_f64(),
        format: Format::Json,
    };
    // Between processes of one machine only the processes' own costs matter, and measuring edge by
    // edge would take half of the time.
    let pes = calibration.topology.tree.len();
    let no_wires = Measurement {
        edges: vec![MeasuredEdge::default(); pes],
        alike: vec![None; pes],
        clocks: vec![ClockOffset::SHARED; pes],
        fits: Vec::new(),
        shared_cores: cores(),
    };
    let request = |operation, pacing, bytes, profile| {
        calibration.request(operation, pacing, vec![bytes; pes - 1], profile)
    };
    let nothing = request(Algorithm::FARTHEST_FIRST, Pacing::default(), 0, None);
    let profile = calibration.profile(no_wires, &nothing);
    let mut ran: Vec<Run> = Vec::new();
    let mut longest = Duration::ZERO;
    for (operation, pacing, bytes, rounds) in RUNS {
        let began_this = began.elapsed();
        if began_this + longest > ENOUGH {
            break;
        }
        // The costs are those of an idle machine: a prediction adds the other programs of its time.
        let mut others = BusyThreads::default();
        others.count();
        let request = Request {
            rounds: match others.number() {
                0 => rounds,
                _ => rounds * ROUNDS_BESIDE_OTHERS,
            },
            ..request(operation, pacing, bytes, Some(profile.clone()))
        };
        let outcome = match run::rounds(&request, logs, interrupts, &|_| None, |_| true).await? {
            RunResult::Done(mut outcome) => {
                outcome.rounds.busy_threads = others.number();
                outcome
            }
            RunResult::Failed(failure) => return Ok(RunResult::Failed(failure)),
            RunResult::Interrupted(signal) => return Ok(RunResult::Interrupted(signal)),
        };
        ran.push((request, outcome));
        longest = longest.max(began.elapsed() - began_this);
    }
    let learned = learned(&ran, profile.host, encrypted, FIT);
    let kept = keep_measured(&learned, encrypted).context("this system does not name its boots")?;
    Ok(RunResult::Done(Box::new(MeasuredHost {
        learned,
        encrypted,
        took: began.elapsed(),
        kept,
    })))
}

impl MeasuredHost {
    pub fn report(&self, format: Format) -> String {
        let host = host_here(&self.learned.costs);
        if format == Format::Json {
            return format!("{}\n", self.kept);
        }
        let nanos = |ns: f64| Nanos(ns as u64);
        format!(
            "this host, measured by {} rounds on {TREE}{} in {}\n\n  \
             wakes up     {} after there is something for a process\n  \
             costs        {} a control frame, {} a flit, {} a message\n  \
             a byte       {:.3} ns to send, {:.3} ns to receive, {:.3} ns at its source or destination\n",
            self.learned.rounds,
            if self.encrypted { ", encrypted," } else { "" },
            Nanos(self.took.as_nanos() as u64),
            nanos(host.wake_ns),
            nanos(host.control_ns),
            nanos(host.flit_ns),
            nanos(host.message_ns),
            host.send_ns_per_byte,
            host.receive_ns_per_byte,
            host.end_ns_per_byte,
        )
    }
}
