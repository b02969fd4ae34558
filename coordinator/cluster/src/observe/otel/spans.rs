//! The spans, their attributes and their nesting. A step's span is created when the step is over,
//! with the recorded times; the spans of the command and its runs, which have children, are created
//! when they begin.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use flitcast_plan::calibration::clock::ClockOffset;
use flitcast_plan::predict::Prediction;
use flitcast_proto::PeId;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::control::{Arrival, Report};
use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, SpanContext, Status};
use opentelemetry_sdk::trace::Span;

use super::export::Export;
use crate::job::model::since;
use crate::job::request::Request;
use crate::observe::event::Event;
use crate::observe::phase::Phase;
use crate::options::names::pacing_name;

pub static NOW: Spans = Spans(Mutex::new(None));

/// Maximum number of spans of rounds and messages in a run, apart from those of the first round and
/// of a failed one: half of the exporter's queue, so that the exporter drops none.
const MOST: usize = 1024;

/// The spans of a command; empty if the command is not traced.
#[derive(Debug)]
pub struct Spans(Mutex<Option<Traced>>);

#[derive(Debug)]
struct Traced {
    export: Export,
    command: Span,
    run: Option<ClusterSpan>,
    /// The latest failure.
    failed: Option<Failed>,
}

/// The run on one cluster.
#[derive(Debug)]
struct ClusterSpan {
    span: Span,
    step: Option<StepSpan>,
    /// Number of spans of rounds and messages so far.
    rounds: usize,
    /// Number of rounds without a span.
    left_out: i64,
    /// Whether any two PEs may be the ends of a message.
    of_pairs: bool,
}

/// The current step.
#[derive(Debug)]
struct StepSpan {
    name: &'static str,
    began: SystemTime,
    /// End of the step, if it is over but reports about it are still expected.
    ended: Option<SystemTime>,
    attributes: Vec<KeyValue>,
}

#[derive(Clone, Debug)]
struct Failed {
    kind: &'static str,
    pe: Option<PeId>,
    cause: String,
}

impl Spans {
    pub fn observe(&self, event: &Event<'_>) {
        // The spans stay usable if another thread panicked while it held the lock.
        let mut traced = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *event {
            Event::Begins { command } => *traced = Traced::begin(command),
            Event::Ends { succeeded } => {
                let ended = traced.take();
                drop(traced);
                if let Some(ended) = ended {
                    ended.end(succeeded);
                }
            }
            _ => {
                if let Some(traced) = &mut *traced {
                    traced.observe(event);
                }
            }
        }
    }
}

impl Failed {
    fn mark(&self, span: &mut Span) {
        span.set_attribute(KeyValue::new("error.type", self.kind));
        if let Some(pe) = self.pe {
            span.set_attribute(number("flitcast.pe", u64::from(pe.0)));
        }
        span.set_status(Status::error(self.cause.clone()));
    }
}

impl Traced {
    /// Begins the span of a command, if the environment names a collector.
    fn begin(command: &str) -> Option<Traced> {
        let export = Export::new()?;
        let name = format!("flitcast {command}");
        Some(Traced {
            command: export.begin(name, None, export.now(), Vec::new()),
            export,
            run: None,
            failed: None,
        })
    }

    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Launching(request) => self.launching(request),
            Event::Launched { .. } => self.end_step(),
            // A round's step begins with its trigger and ends before the reports.
            Event::Enters(Phase::Round { .. } | Phase::Report) => {}
            Event::Enters(phase) => self.step(phase.name(), Vec::new()),
            Event::Predicted {
                algorithm,
                bytes,
                pacing,
                prediction,
            } => self.predicted(algorithm, bytes, pacing, prediction),
            Event::RoundBegins { round, .. } => {
                self.step("round", vec![number("flitcast.round", round.0)]);
            }
            Event::RoundDone => {
                let now = self.export.now();
                if let Some(step) = self.run.as_mut().and_then(|run| run.step.as_mut()) {
                    step.ended = Some(now);
                }
            }
            Event::RoundReported { reports, clocks } => self.end_round(reports, clocks),
            Event::Failed { kind, pe, cause } => self.fail(kind, pe, cause),
            Event::Interrupted => self.fail("interrupted", None, "interrupted"),
            Event::Stopping => self.step("stop", Vec::new()),
            Event::RunEnds => self.end_run(),
            Event::Map(_) | Event::Pong(..) | Event::Reported(..) | Event::Abandoned => {}
            // These are the whole command's.
            Event::Begins { .. } | Event::Ends { .. } => {}
        }
    }

    /// Ends the command's span and waits a limited time until the collector has received all spans.
    fn end(mut self, succeeded: bool) {
        self.end_run();
        if !succeeded {
            // The failure may have happened before the cluster existed or after its end.
            match &self.failed {
                Some(failed) => failed.mark(&mut self.command),
                None => self.command.set_status(Status::error("")),
            }
        }
        self.command.end_with_timestamp(self.export.now());
        self.export.finish();
    }

    fn launching(&mut self, request: &Request) {
        let collective = request.way.operation.collective();
        let attributes = vec![
            KeyValue::new("flitcast.operation", collective.name()),
            KeyValue::new("flitcast.algorithm", request.way.algorithm()),
            KeyValue::new("flitcast.tree", request.place()),
            KeyValue::new("flitcast.pes", request.site.tree.count() as i64),
            KeyValue::new("flitcast.rounds", request.rounds as i64),
        ];
        let (export, parent) = (&self.export, self.command.span_context());
        let name = "run".to_owned();
        self.run = Some(ClusterSpan {
            span: export.begin(name, Some(parent), export.now(), attributes),
            step: None,
            rounds: 0,
            left_out: 0,
            of_pairs: collective.is_of_pairs(),
        });
        self.step(Phase::Launch.name(), Vec::new());
    }

    fn predicted(
        &mut self,
        algorithm: &'static str,
        bytes: &[u64],
        pacing: Option<Pacing>,
        prediction: &Prediction,
    ) {
        let Some(run) = &mut self.run else {
            return;
        };
        let bytes: u64 = bytes.iter().sum();
        run.span.set_attribute(number("flitcast.bytes", bytes));
        let seconds = prediction.round_ns() as f64 / 1e9;
        let attributes = [
            Some(KeyValue::new("flitcast.algorithm", algorithm)),
            Some(KeyValue::new("flitcast.predicted_seconds", seconds)),
            pacing_name(pacing).map(|pacing| KeyValue::new("flitcast.pacing", pacing)),
        ];
        run.span.set_attributes(attributes.into_iter().flatten());
    }

    fn step(&mut self, name: &'static str, attributes: Vec<KeyValue>) {
        self.end_step();
        let began = self.export.now();
        if let Some(run) = &mut self.run {
            run.step = Some(StepSpan {
                name,
                began,
                ended: None,
                attributes,
            });
        }
    }

    fn end_step(&mut self) {
        let now = self.export.now();
        if let Some(run) = &mut self.run
            && let Some(step) = run.step.take()
        {
            let ended = step.ended.unwrap_or(now);
            step.begin(&self.export, run).end_with_timestamp(ended);
        }
    }

    fn end_round(&mut self, reports: &[Report], clocks: &[ClockOffset]) {
        let now = self.export.now();
        let Some(run) = &mut self.run else {
            return;
        };
        let Some(step) = run.step.take() else {
            return;
        };
        let arrivals = reports.iter().zip(clocks).flat_map(|(report, clock)| {
            let arrivals = report.arrivals.iter();
            arrivals.map(move |arrival| (arrival, clock))
        });
        let arrivals: Vec<(&Arrival, &ClockOffset)> = arrivals.collect();
        if run.rounds > 0 && run.rounds + 1 + arrivals.len() > MOST {
            run.left_out += 1;
            return;
        }
        run.rounds += 1 + arrivals.len();
        let (began, ended) = (step.began, step.ended.unwrap_or(now));
        let mut round = step.begin(&self.export, run);
        // Only the root's report contains the start of the round.
        let root = reports.iter().max_by_key(|report| report.begin.started_ns);
        let started_ns = root.map_or(0, |report| report.begin.started_ns);
        let is_root = |pe: PeId| {
            let report = reports.get(pe.index());
            report.is_some_and(|report| report.begin.started_ns > 0)
        };
        for (arrival, clock) in arrivals {
            let after = |at_ns, clock| Duration::from_nanos(since(started_ns, at_ns, clock));
            // The start of a message is recorded only if a schedule defines it.
            let source = arrival.source.index();
            let start = reports.get(source).and_then(|report| report.own_start);
            let start = start.zip(clocks.get(source));
            let start = start.map(|(start, clock)| after(start.began_ns, *clock));
            let other_end = match is_root(arrival.destination) && !run.of_pairs {
                true => arrival.source,
                false => arrival.destination,
            };
            let mut attributes = vec![
                number("flitcast.pe", u64::from(other_end.0)),
                number("flitcast.bytes", arrival.bytes_total),
            ];
            if run.of_pairs {
                attributes.push(number("flitcast.source", u64::from(arrival.source.0)));
            }
            let mut message = self.export.begin(
                "message".to_owned(),
                Some(round.span_context()),
                began + start.unwrap_or_default(),
                attributes,
            );
            message.end_with_timestamp(began + after(arrival.at_ns, *clock));
        }
        round.end_with_timestamp(ended);
    }

    fn fail(&mut self, kind: &'static str, pe: Option<PeId>, cause: &str) {
        let cause = cause.to_owned();
        let failed = Failed { kind, pe, cause };
        let now = self.export.now();
        if let Some(run) = &mut self.run {
            if let Some(step) = run.step.take() {
                let mut span = step.begin(&self.export, run);
                failed.mark(&mut span);
                span.end_with_timestamp(now);
            }
            failed.mark(&mut run.span);
        }
        self.failed = Some(failed);
    }

    fn end_run(&mut self) {
        self.end_step();
        if let Some(mut run) = self.run.take() {
            if run.left_out > 0 {
                let left_out = KeyValue::new("flitcast.rounds_left_out", run.left_out);
                run.span.set_attribute(left_out);
            }
            run.span.end_with_timestamp(self.export.now());
        }
    }
}

impl StepSpan {
    /// Creates the span of the step with the recorded times.
    fn begin(self, export: &Export, run: &ClusterSpan) -> Span {
        let run: &SpanContext = run.span.span_context();
        export.begin(self.name.to_owned(), Some(run), self.began, self.attributes)
    }
}

fn number(key: &'static str, number: u64) -> KeyValue {
    KeyValue::new(key, i64::try_from(number).unwrap_or(i64::MAX))
}
