//! `flitcast plan` and `flitcast compare` in bytes and seconds: they take the options of the real
//! command, and predict it without starting a process.

use std::io::{self, Write};
use std::sync::atomic::AtomicBool;

use clap::Subcommand;
use flitcast_proto::PeId;
use serde_json::{Value, json};

use crate::render::json::pe_json;
use crate::render::report;
use flitcast_cluster::job::planned::Planned;
use flitcast_cluster::job::planned_round::PlannedRound;
use flitcast_cluster::job::request::{
    Forecast, Request, UNKNOWN_LINKS, expected_model, no_choice, steps,
};
use flitcast_cluster::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, RoundArgs, ScatterArgs,
};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::options::names::pacing_name;
use flitcast_cluster::options::values::AUTO;
use flitcast_cluster::rounds::execution::parallel_trees::lanes_of;
use flitcast_cluster::rounds::outcome::{PeOutcome, by_row, bytes_by_row};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::figures::{beside, fitted, micros, table};
use flitcast_cluster::text::pe_names::with_names;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::{self, columns};
use flitcast_cluster::text::units::{Bytes, Nanos};

/// The last lines of the help of `flitcast plan` and `compare`.
pub const TIMED_HELP: &str = "\
With --profile, or lengths with a unit like 1MiB, all options are those of the
real command (`flitcast gather --help`), and the answer is in seconds and steps:
  flitcast plan gather -n 15 --size 1KiB --link rate=100mbit,latency=10ms";

/// The operation, with the arguments of the real command.
#[derive(Debug, Subcommand)]
pub enum TimedOperation {
    /// A scatter.
    Scatter(ScatterArgs),
    /// A gather.
    Gather(GatherArgs),
    /// A broadcast.
    Broadcast(BroadcastArgs),
    /// A gossip.
    #[command(alias = "allgather")]
    Gossip(GossipArgs),
    /// An exchange.
    #[command(alias = "alltoall")]
    Exchange(ExchangeArgs),
}

impl TimedOperation {
    fn round(&mut self) -> &mut RoundArgs {
        match self {
            TimedOperation::Scatter(args) => &mut args.round,
            TimedOperation::Gather(args) => &mut args.round,
            TimedOperation::Broadcast(args) => &mut args.round,
            TimedOperation::Gossip(args) => &mut args.round,
            TimedOperation::Exchange(args) => &mut args.round,
        }
    }

    /// Leaves the algorithm open, and the tree of a network.
    fn leave_open(&mut self) {
        let auto = Some(AUTO.to_owned());
        match self {
            TimedOperation::Scatter(args) => args.algorithm = auto,
            TimedOperation::Gather(args) => args.algorithm = auto,
            TimedOperation::Broadcast(args) => args.algorithm = Some(BroadcastAlgorithm::Auto),
            TimedOperation::Gossip(args) => args.algorithm = auto,
            TimedOperation::Exchange(args) => args.algorithm = auto,
        }
    }

    fn request(self) -> Result<Request, Faults> {
        match self {
            TimedOperation::Scatter(args) => Request::scatter(args),
            TimedOperation::Gather(args) => Request::gather(args),
            TimedOperation::Broadcast(args) => Request::broadcast(args),
            TimedOperation::Gossip(args) => Request::gossip(args),
            TimedOperation::Exchange(args) => Request::exchange(args),
        }
    }
}

/// Returns whether a command line of `flitcast plan` or `compare` is in bytes and seconds: it has a
/// profile, or lengths with a unit. `words` begins with the operation.
pub fn is_timed(words: &[String]) -> bool {
    let Some((operation, options)) = words.split_first() else {
        return false;
    };
    // The word before may be the value of another command's option, like `--input plan`.
    let operations = TimedOperation::augment_subcommands(clap::Command::new("plan"));
    if operations.find_subcommand(operation).is_none() {
        return false;
    }
    let value = |option: &str| {
        let with_equals = format!("{option}=");
        let mut all = options.iter().enumerate();
        all.find_map(|(place, word)| match word == option {
            true => Some(options.get(place + 1).cloned().unwrap_or_default()),
            false => word.strip_prefix(&with_equals).map(str::to_owned),
        })
    };
    let is_gossip = ["gossip", "allgather"].contains(&operation.as_str());
    // The prices of a planned gossip may come from a profile, too.
    let has_profile = !is_gossip && value("--profile").is_some();
    // The length of a planned broadcast in flits is a --size, too.
    let has_size = value("--size")
        .is_some_and(|size| operation != "broadcast" || size.parse::<u64>().is_err());
    let has_units = value("--lengths").is_some_and(|lengths| lengths.contains('B'));
    has_profile || has_size || has_units
}

pub fn plan(operation: TimedOperation, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let request = checked_request(operation, false)?;
    let lanes = lanes_of(&request);
    let planned = Planned {
        tree: request.site.tree.clone(),
        decisions: request.decisions(),
        others: Vec::new(),
        bytes: request.messages.bytes.clone(),
        lanes,
        model: expected_model(&request),
    };
    let mut planned_round = planned
        .plan_and_predict(&AtomicBool::new(false))
        .map_err(no_choice)?;
    // Half of the memory, which the count of steps needs again.
    planned_round.schedules = Vec::new();
    planned_round.prediction.spans = Vec::new();
    let steps = steps(&request, planned_round.decisions.flit_bytes);
    let steps = steps.map_err(no_choice)?;
    let plan = TimedPlan {
        request,
        planned_round,
        steps,
    };
    Ok(match plan.request.format {
        Format::Json => out.write_all(format!("{:#}\n", plan.json()).as_bytes()),
        _ => out.write_all(plan.text().as_bytes()),
    })
}

/// Prints the comparison of all algorithms on all trees, or returns all errors in the command line.
pub fn compare(operation: TimedOperation, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let request = checked_request(operation, true)?;
    let all = request.choice.as_ref().map_or(&[][..], |it| &it.all);
    let name = request.way.operation.collective().name();
    let printed = match request.format {
        Format::Json => {
            let result = json!({
                "operation": name,
                "links": request.site.links_name(),
                "messages": request.message_count(),
                "bytes": request.total_bytes(),
                "results": all,
            });
            format!("{result:#}\n")
        }
        _ => format!("{}\n\n{}", heading(&request, name), rows(all)),
    };
    Ok(out.write_all(printed.as_bytes()))
}

/// Returns the checked request of a command that starts nothing.
fn checked_request(mut operation: TimedOperation, compares: bool) -> Result<Request, Faults> {
    let round = operation.round();
    round.dry_run = true;
    round.compares = compares;
    if compares {
        operation.leave_open();
    }
    let request = operation.request()?;
    let is_known = request.profile.is_some() || !request.site.placement.is_spread();
    match is_known {
        true => Ok(request),
        false => Err(anyhow::anyhow!(UNKNOWN_LINKS).into()),
    }
}

struct TimedPlan {
    request: Request,
    planned_round: PlannedRound,
    steps: u64,
}

fn heading(request: &Request, what: &str) -> String {
    let links = request.site.links_name();
    let links = links.map(|links| format!("; {links}")).unwrap_or_default();
    format!(
        "{what}: {}, {}, {}{links}",
        counted(request.site.tree.count() as u64, "PE", "PEs"),
        counted(request.message_count(), "message", "messages"),
        Bytes(request.total_bytes()),
    )
}

impl TimedPlan {
    /// Returns the bytes and the predicted time of the last delivery of each PE's row.
    fn pes(&self) -> Vec<PeOutcome> {
        let (tree, operation) = (&self.request.site.tree, self.request.way.operation);
        let bytes = bytes_by_row(operation, tree, &self.request.messages.bytes);
        let arrivals = by_row(operation, tree, &self.planned_round.prediction.arrivals_ns);
        let row = |pe: PeId| PeOutcome {
            pe,
            host: None,
            bytes: bytes[pe.index()],
            predicted_ns: arrivals[pe.index()],
            measured: None,
            peak_resident_bytes: None,
            retransmitted_packets: 0,
        };
        tree.pes().map(row).collect()
    }

    fn pacing(&self) -> Option<&'static str> {
        pacing_name(self.planned_round.decisions.pacing_of_orders())
    }

    fn text(&self) -> String {
        let request = &self.request;
        let mut out = heading(request, &self.planned_round.decisions.title()) + "\n\n";
        if let Some(choice) = &request.choice {
            out.push_str(&beside("chosen", 13, &choice.to_string(), columns()));
            out.push('\n');
        }
        let (pes, detail) = (self.pes(), screen::detail());
        out.push_str(&report::rows(request, &pes, detail, columns()));
        out.push_str(&format!(
            "\n  time         {} predicted, {} of a flit of {}\n",
            Nanos(self.planned_round.prediction.round_ns()),
            counted(self.steps, "step", "steps"),
            Bytes(self.planned_round.decisions.flit_bytes.into())
        ));
        for (label, reason) in self.planned_round.decisions.reasons() {
            // The order is only reported for rounds.
            if label != "order" {
                out.push_str(&beside(label, 13, &with_names(&reason), columns()));
            }
        }
        out
    }

    fn json(&self) -> Value {
        let request = &self.request;
        let pes = self.pes();
        let pes = pes.iter().map(|row| pe_json(request, row));
        json!({
            "operation": request.way.operation.collective().name(),
            "algorithm": request.way.algorithm(),
            "sync": request.way.sync(),
            "pacing": self.pacing(),
            "tree": request.place(),
            "links": request.site.links_name(),
            "choice": self.planned_round.decisions.choice.as_deref(),
            "flit_bytes": self.planned_round.decisions.flit_bytes,
            "messages": request.message_count(),
            "bytes": request.total_bytes(),
            "predicted_us": micros(self.planned_round.prediction.round_ns()),
            "time_steps": self.steps,
            "pes": pes.collect::<Vec<_>>(),
        })
    }
}

fn rows(all: &[Forecast]) -> String {
    let header = ["algorithm", "tree", "flits of", "predicted"].into_iter();
    let mut rows = table(header.chain(["steps", "to the best"]));
    let least = all.first().map_or(0, |best| best.predicted_ns).max(1);
    for one in all {
        rows.add_row([
            one.algorithm.to_owned(),
            one.tree.clone(),
            Bytes(one.flit_bytes.into()).to_string(),
            Nanos(one.predicted_ns).to_string(),
            one.steps.map_or("-".to_owned(), |steps| steps.to_string()),
            format!("{:.2}", one.predicted_ns as f64 / least as f64),
        ]);
    }
    let least = ["flits of", "to the best", "steps", "tree"];
    fitted(rows, 2, &least, columns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_profiles_make_a_plan_timed() {
        let is_timed = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            is_timed(&words)
        };
        for line in [
            "gather --tree star:3 --size 5",
            "scatter --tree star:3 --lengths=1KiB,2",
            "alltoall --tree star:3 --size 1MiB",
            "gather --tree star:3 --lengths 1,2 --profile p.toml",
        ] {
            assert!(is_timed(line), "{line}");
        }
        for line in [
            "",
            "broadcast --tree star:3 --size 5",
            "gather --tree star:3 --lengths 1,2 --link latency=1ms",
            "gossip --network ring:3 --lengths equal:1 --profile p.toml",
            "--output x --lengths 5KiB",
        ] {
            assert!(!is_timed(line), "{line}");
        }
    }
}
