//! Runs the algorithms of a bench in turn and computes the results.
//!
//! The speed of a machine drifts: it warms up, and other processes use it. So the rounds are done
//! in a few passes over all algorithms, each on a new cluster, every second pass in reverse order.
//! Each algorithm is timed at several moments, which are the same on average.

use std::ops::Range;

use anyhow::Context as _;
use flitcast_proto::wire::control::Report;

use super::checked::Bench;
use super::samples::{Figures, Sample};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::rounds::outcome::{Failure, Outcome, round_collisions, round_ns};
use flitcast_cluster::rounds::run::{self, Interrupted};
use flitcast_cluster::system::interrupts::Interrupts;

/// Number of passes. Launching a cluster and measuring its edges takes about ten times as long as a
/// short round, so with more passes the time would mostly go there.
const PASSES: u64 = 3;

#[derive(Debug)]
pub enum BenchEnd {
    /// All rounds succeeded; one entry for each algorithm.
    Done(Vec<Figures>),
    Failed(&'static str, Box<Failure>),
    Interrupted(Interrupted),
}

/// Times all algorithms.
///
/// # Errors
///
/// Returns an error if a sample could not be written or partial output not removed.
pub async fn run(bench: &mut Bench, logs: &[String]) -> anyhow::Result<BenchEnd> {
    let mut interrupts = Interrupts::new()?;
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); bench.contestants.len()];
    for pass in 1..=passes(bench.rounds) {
        let rounds = share(bench.rounds, pass);
        let mut order: Vec<usize> = (0..samples.len()).collect();
        if pass % 2 == 0 {
            order.reverse();
        }
        for place in order {
            let contestant = &bench.contestants[place];
            let name = contestant.name;
            let request = Request {
                rounds: bench.warm_up + rounds.end - rounds.start,
                ..contestant.request.clone()
            };
            tracing::info!(algorithm = name, pass, "timing");
            let ended = run::run(&request, logs, &mut interrupts, &|_| None, |_| true).await;
            let outcome = match ended.with_context(|| format!("{name}, pass {pass}"))? {
                run::RunResult::Done(outcome) => outcome,
                run::RunResult::Failed(failure) => return Ok(BenchEnd::Failed(name, failure)),
                run::RunResult::Interrupted(signal) => return Ok(BenchEnd::Interrupted(signal)),
            };
            let timed = timed(&outcome, bench.warm_up, pass, rounds.start);
            if let Some(raw) = &mut bench.raw {
                raw.add(name, &timed)?;
            }
            samples[place].extend(timed);
        }
    }
    let figures = bench.contestants.iter().zip(&samples);
    let figures = figures.filter_map(|(contestant, samples)| {
        let tree = &contestant.request.site.name;
        Figures::of(contestant.name, tree, bench.bytes, samples)
    });
    Ok(BenchEnd::Done(figures.collect()))
}

pub fn passes(rounds: u64) -> u64 {
    rounds.min(PASSES)
}

/// Returns the timed rounds of a pass, from 0: the shares of all passes are all rounds.
fn share(rounds: u64, pass: u64) -> Range<u64> {
    let end = |pass: u64| rounds * pass / passes(rounds);
    end(pass - 1)..end(pass)
}

/// Returns the samples of a run, without the warm-up rounds.
fn timed(outcome: &Outcome, warm_up: u64, pass: u64, before: u64) -> Vec<Sample> {
    let timed = outcome.rounds.reports.iter().skip(warm_up as usize);
    let clocks = &outcome.rounds.measured.clocks;
    let sample = |(round, reports): (u64, &Vec<Report>)| {
        let starts = reports.iter().filter_map(|report| report.own_start);
        Some(Sample {
            pass,
            round,
            predicted_ns: outcome.predicted_ns,
            measured_ns: round_ns(reports, clocks)?,
            collisions: round_collisions(reports),
            slips_ns: starts
                .map(|start| start.began_ns.saturating_sub(start.due_ns))
                .collect(),
            peak_buffered_flits: reports.iter().map(|r| r.peak_buffered_flits).max()?,
        })
    };
    (before + 1..).zip(timed).filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passes_share_all_rounds() {
        for rounds in 1..50 {
            let shares: Vec<_> = (1..=passes(rounds))
                .map(|pass| share(rounds, pass))
                .collect();
            assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
            let all: Vec<u64> = shares.into_iter().flatten().collect();
            assert_eq!(all, (0..rounds).collect::<Vec<_>>());
        }
    }
}
