//! Traces: a collector receives the spans of real commands, and one that rejects them causes only a
//! warning.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::process::Command;

use flitcast_tests::collector::{Collector, Sent};
use flitcast_tests::run::begin;
use flitcast_tests::{Finished, Running, flitcast};
use rustix::process::Signal;

/// Seven PEs, so six messages.
const GATHER: &str = "gather --tree kary:2:7 --size 1KiB --rounds 3 --format json";

/// Starts `flitcast` with only these variables for traces.
fn traced(line: &str, variables: &[(&str, &str)]) -> Running {
    let mut command = Command::new(flitcast());
    command.args(line.split_whitespace());
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"OTEL_") {
            command.env_remove(name);
        }
    }
    // Nothing is sent before the end, however long that takes.
    command.env("OTEL_BSP_SCHEDULE_DELAY", "600000");
    command.envs(variables.iter().copied());
    begin(command)
}

/// Runs a command with traces to a collector, to its end.
fn traced_to(address: SocketAddr, line: &str) -> Finished {
    let endpoint = format!("http://{address}");
    traced(line, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]).finish()
}

/// Checks that a gather has ended as it does without traces, with this stderr.
#[track_caller]
fn assert_gathered(run: &Finished, stderr: &str) {
    assert_eq!((run.code, &*run.stderr), (Some(0), stderr));
    assert_eq!(run.report().number("/round/bytes"), 6 * 1024);
}

/// Returns the span of this name; there is one.
#[track_caller]
fn only<'a>(spans: &'a [Sent], name: &str) -> &'a Sent {
    let mut found = spans.iter().filter(|span| span.name == name);
    match (found.next(), found.next()) {
        (Some(only), None) => only,
        _ => panic!("not one {name} in {spans:#?}"),
    }
}

fn below<'a>(spans: &'a [Sent], parent: &Sent) -> Vec<&'a Sent> {
    let below = spans.iter().filter(|span| span.parent == parent.id);
    below.collect()
}

#[track_caller]
fn assert_attributes(span: &Sent, attributes: &[(&str, &str)]) {
    for (key, value) in attributes {
        let found = span.attributes.get(*key).map(String::as_str);
        assert_eq!(found, Some(*value), "{key} of {span:#?}");
    }
}

#[test]
fn a_command_is_traced_step_by_step() {
    let collector = Collector::new("200 OK");
    assert_gathered(&traced_to(collector.address, GATHER), "");
    let spans = collector.spans();
    let root = only(&spans, "flitcast gather");
    assert!(root.parent.is_empty(), "{root:#?}");
    assert_eq!(root.resource["service.name"], "flitcast");
    for span in &spans {
        assert_eq!(span.trace, root.trace);
        assert_eq!(span.error, None, "{span:#?}");
        assert!(span.began_ns <= span.ended_ns, "{span:#?}");
    }
    let run = only(&spans, "run");
    assert_eq!(run.parent, root.id);
    let attributes = [
        ("flitcast.operation", "gather"),
        ("flitcast.algorithm", "certification"),
        ("flitcast.pacing", "scheduled"),
        ("flitcast.tree", "kary:2:7"),
        ("flitcast.pes", "7"),
        ("flitcast.rounds", "3"),
        ("flitcast.bytes", "6144"),
    ];
    assert_attributes(run, &attributes);
    let predicted = &run.attributes["flitcast.predicted_seconds"];
    assert!(predicted.parse::<f64>().is_ok_and(|s| s > 0.0));
    let steps = below(&spans, run);
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    let expected = "launch connect probe predict prepare round round round stop";
    assert_eq!(names.join(" "), expected);
    for (step, next) in steps.iter().zip(&steps[1..]) {
        assert!(step.ended_ns <= next.began_ns, "{step:#?} {next:#?}");
    }
    let rounds = steps.iter().filter(|step| step.name == "round");
    for (number, round) in (1..).zip(rounds) {
        assert_attributes(round, &[("flitcast.round", &format!("{number}"))]);
        let messages = below(&spans, round);
        let pes = messages.iter().map(|it| &*it.attributes["flitcast.pe"]);
        let mut pes: Vec<&str> = pes.collect();
        pes.sort_unstable();
        assert_eq!(pes, ["1", "2", "3", "4", "5", "6"]);
        for message in messages {
            assert_eq!(message.name, "message");
            assert_attributes(message, &[("flitcast.bytes", "1024")]);
            assert!(message.began_ns >= round.began_ns, "{message:#?}");
        }
    }
    assert_eq!(spans.len(), 2 + 9 + 3 * 6);
}

#[test]
fn of_very_many_rounds_the_first_ones_are_traced() {
    let collector = Collector::new("200 OK");
    let line = "scatter --tree star:3 --size 1 --rounds 400";
    let run = traced_to(collector.address, line);
    assert_eq!((run.code, &*run.stderr), (Some(0), ""));
    let spans = collector.spans();
    let of = |name| spans.iter().filter(|span| span.name == name).count();
    // A round and its two messages are 3 spans of 1024.
    assert_eq!([of("round"), of("message")], [341, 682]);
    assert_attributes(only(&spans, "run"), &[("flitcast.rounds_left_out", "59")]);
}

#[test]
fn a_failure_is_exported_with_its_pe() {
    let collector = Collector::new("200 OK");
    let endpoint = format!("http://{}/v1/traces", collector.address);
    let variables = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &*endpoint),
        ("OTEL_SERVICE_NAME", "nightly"),
    ];
    let line = "-v gather --tree path:4 --size 100kB --rounds 100000";
    let mut run = traced(line, &variables);
    run.wait_for(&["triggered"]);
    run.pe(2).signal(Signal::KILL);
    let run = run.finish().with_code(1);
    let spans = collector.spans();
    let failed: Vec<&Sent> = spans.iter().filter(|span| span.error.is_some()).collect();
    let names: Vec<&str> = failed.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["flitcast gather", "run", "round"]);
    for span in &failed {
        let cause = span.error.as_deref().unwrap_or_default();
        assert!(cause.contains("P2"), "{span:#?}");
        run.stderr_has(&[&format!("error: {cause}\n")]);
        assert_attributes(span, &[("flitcast.pe", "2")]);
        assert!(span.attributes.contains_key("error.type"), "{span:#?}");
        assert_eq!(span.resource["service.name"], "nightly");
    }
    assert_eq!(failed[1].parent, failed[0].id);
    assert_eq!(failed[2].parent, failed[1].id);
    let mut steps = below(&spans, failed[1]).into_iter();
    assert!(steps.any(|step| step.name == "stop"));
}

#[test]
fn a_collector_that_takes_nothing_costs_a_warning() {
    // Clients are connected, and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
    let address = silent.local_addr().expect("it is bound");
    let late = "warning: traces are lost: the collector did not answer within 2 s\n";
    assert_gathered(&traced_to(address, GATHER), late);
    silent.set_nonblocking(true).expect("it is a socket");
    let (mut called, _) = silent.accept().expect("the command has called");
    called.set_nonblocking(false).expect("it is a socket");
    let mut request = [0; 15];
    called.read_exact(&mut request).expect("it has sent a line");
    assert_eq!(&request, b"POST /v1/traces");

    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let run = traced_to(nobody, GATHER);
    let refused = format!("warning: traces are lost: {nobody}: ");
    assert!(run.stderr.starts_with(&refused), "{}", run.stderr);
    assert_gathered(&run, &run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);

    let busy = Collector::new("503 Service Unavailable");
    let at = busy.address;
    let answers = format!("warning: traces are lost: {at} answers 503 Service Unavailable\n");
    assert_gathered(&traced_to(at, GATHER), &answers);
}

#[test]
fn without_a_collector_nothing_is_traced() {
    assert_gathered(&traced(GATHER, &[]).finish(), "");
    let unset = [("OTEL_EXPORTER_OTLP_ENDPOINT", "")];
    assert_gathered(&traced(GATHER, &unset).finish(), "");
    let collector = Collector::new("200 OK");
    let endpoint = format!("http://{}", collector.address);
    let disabled = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    assert_gathered(&traced(GATHER, &disabled).finish(), "");
    assert!(collector.spans().is_empty());
}
