//! Metrics: the numbers of bytes and flits are exact, and other requests are rejected.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};

use flitcast_proto::items::Message;
use flitcast_proto::wire::flit::put_prefix;
use flitcast_proto::wire::seal::SEAL_BYTES;
use flitcast_proto::{PeId, RoundId};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::processes::eventually;
use flitcast_tests::scrape::{Scraped, address, ask, scrape};
use flitcast_tests::{Running, refused, start};

/// Bytes of a message: two flits.
const BYTES: u64 = 100_000;
const FLIT: u64 = 65_536;

/// Bytes that the frames of P`to`'s message have on every edge of a scatter.
fn on_an_edge(round: u64, to: u32) -> u64 {
    let message = Message::between(PeId::ROOT, PeId(to), BYTES);
    let frame = |head, digest: Option<&[u8; 16]>, payload: u64| {
        let mut prefix = Vec::new();
        put_prefix(head, digest, payload as usize, &mut prefix);
        prefix.len() as u64 + SEAL_BYTES as u64 + payload
    };
    frame(Some((RoundId(round), message)), None, FLIT) + frame(None, Some(&[0; 16]), BYTES - FLIT)
}

/// Returns the bytes and flits that P`pe` sends to the next PE of a path of `pes` in this number of
/// rounds.
fn sent_down(rounds: u64, pe: u32, pes: u32) -> (u64, u64) {
    let passing = (1..=rounds).flat_map(|round| (pe + 1..pes).map(move |to| (round, to)));
    let bytes = passing.clone().map(|(round, to)| on_an_edge(round, to));
    (bytes.sum(), 2 * passing.count() as u64)
}

fn edge(page: &Scraped, what: &str, pe: u32, peer: u32) -> u64 {
    let name = format!("flitcast_edge_{what}_total{{pe=\"P{pe}\",peer=\"P{peer}\"}}");
    page.get(&name).map_or(0, |number| number as u64)
}

/// Starts a scatter of very many rounds, and waits until some are over.
fn endless(line: &str) -> (Running, SocketAddr) {
    let line = format!("scatter --size {BYTES} --rounds 100000 --metrics 127.0.0.1:0 {line}");
    let mut run = start(line.split_whitespace());
    let at = address(&mut run);
    eventually("a round is over", || {
        let page = scrape(at)?;
        page.text.contains("outcome=\"done\"").then_some(())
    });
    (run, at)
}

#[test]
fn a_command_counts_every_byte_of_every_edge() {
    let (run, at) = endless("--tree path:4");
    let done = r#"flitcast_rounds_total{operation="scatter",algorithm="fdf",outcome="done"}"#;
    // While the PEs report a round, some are a round ahead of others.
    let page = eventually("all PEs report the same round", || {
        let page = scrape(at)?;
        let rounds = page.get(done)? as u64;
        let agree = (0..3).all(|pe| {
            let expected = sent_down(rounds, pe, 4);
            let sent = ["sent_bytes", "sent_flits"].map(|what| edge(&page, what, pe, pe + 1));
            let received = ["received_bytes", "received_flits"];
            let received = received.map(|what| edge(&page, what, pe + 1, pe));
            sent == [expected.0, expected.1] && received == sent
        });
        (rounds >= 5 && agree).then_some(page)
    });
    run.interrupt();
    let rounds = page.number(done);
    for pe in 0..4 {
        let of = |name: &str| page.number(&format!("{name}{{pe=\"P{pe}\"}}"));
        assert!(of("flitcast_pe_rounds_done_total") >= rounds);
        assert!(of("flitcast_resident_memory_bytes") > 1e6);
        // A scatter has no schedule, so no slips.
        for name in [
            "collisions_total",
            "repeated_frames_total",
            "slip_seconds_count",
        ] {
            assert_eq!(of(&format!("flitcast_{name}")), 0.0, "{name}");
        }
        let relays = f64::from(u8::from(pe == 1 || pe == 2));
        assert_eq!(of("flitcast_peak_buffered_flits"), relays, "P{pe}");
        // Receipts go up, and no payload does.
        if pe > 0 {
            assert!(edge(&page, "sent_bytes", pe, pe - 1) > 0);
            assert_eq!(edge(&page, "sent_flits", pe, pe - 1), 0);
        }
    }
    let labels = r#"operation="scatter",algorithm="fdf""#;
    for name in ["flitcast_round_seconds", "flitcast_round_predicted_seconds"] {
        let all = format!("{name}_bucket{{{labels},le=\"+Inf\"}}");
        for count in [format!("{name}_count{{{labels}}}"), all] {
            assert_eq!(page.number(&count), rounds);
        }
        assert!(page.number(&format!("{name}_sum{{{labels}}}")) > 0.0);
    }
}

#[test]
fn a_pe_counts_over_all_commands_that_it_joins() {
    let cluster = Joining::new(&[0, 1], "60s");
    let mut nodes = cluster.nodes("--stay --metrics 127.0.0.1:0");
    let at: Vec<SocketAddr> = nodes.iter_mut().map(address).collect();
    let scatter = format!("scatter --size {BYTES} --format json");
    let first = cluster.guarded(&format!("{scatter} --rounds 3"));
    let report = first.finish().ok().report();
    assert_eq!(report.number("/round/bytes"), 2 * BYTES);
    cluster.guarded(&scatter).finish().ok();
    // The second one's rounds begin at 1 again.
    let sums = |pe| {
        let (three, one) = (sent_down(3, pe, 3), sent_down(1, pe, 3));
        [three.0 + one.0, three.1 + one.1]
    };
    for (pe, at) in (0..).zip(at) {
        let page = scrape(at).expect("it stays");
        let done = format!("flitcast_pe_rounds_done_total{{pe=\"P{pe}\"}}");
        assert_eq!(page.number(&done), 4.0);
        if pe < 2 {
            let sent = ["sent_bytes", "sent_flits"];
            assert_eq!(sent.map(|what| edge(&page, what, pe, pe + 1)), sums(pe));
        }
        if pe > 0 {
            let received = ["received_bytes", "received_flits"];
            assert_eq!(
                received.map(|what| edge(&page, what, pe, pe - 1)),
                sums(pe - 1)
            );
        }
        let mut of_pes = page.text.lines().filter(|line| line.contains("pe=\"P"));
        let own = format!("pe=\"P{pe}\"");
        assert!(of_pes.all(|line| line.contains(&own)), "{}", page.text);
    }
    dismiss(nodes);
}

#[test]
fn a_pe_counts_its_errors() {
    let cluster = Joining::new(&[0, 1], "60s");
    let mut nodes = cluster.nodes("--stay --metrics 127.0.0.1:0");
    let at: Vec<SocketAddr> = nodes.iter_mut().map(address).collect();
    let round = cluster.guarded("scatter --size 1KiB --rounds 100000");
    let of_p1 = |name: &str| scrape(at[1]).and_then(|page| page.get(name));
    eventually("rounds are played", || {
        of_p1("flitcast_pe_rounds_done_total{pe=\"P1\"}").filter(|&rounds| rounds > 0.0)
    });
    let coordinator_errors = "flitcast_errors_total{kind=\"coordinator\"}";
    assert_eq!(of_p1(coordinator_errors), None);
    round.kill();
    let counted = eventually("the end of the command is counted", || {
        of_p1(coordinator_errors)
    });
    assert_eq!(counted, 1.0);
    dismiss(nodes);
}

#[test]
fn other_requests_get_no_metrics() {
    let (run, at) = endless("--tree star:3");
    let status = |request: &str| ask(at, request).expect("an answer").0;
    assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), 404);
    assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), 405);
    assert_eq!(status("nonsense\r\n\r\n"), 400);
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(8192));
    assert_eq!(status(&long), 431);

    // Clients that send nothing are cut off, and others are served.
    let connect = |_| TcpStream::connect(at).expect("it listens");
    let mut silent: Vec<TcpStream> = (0..40).map(connect).collect();
    assert!(scrape(at).is_some_and(|page| page.text.contains("flitcast_build_info")));
    let mut response = String::new();
    silent[0]
        .read_to_string(&mut response)
        .expect("there is a response");
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    run.interrupt();
}

#[test]
fn an_address_in_use_is_refused_before_anything_is_launched() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let at = taken.local_addr().expect("it has an address");
    for command in [
        "scatter --tree path:3 --size 1KiB",
        "gather --tree path:3 --size 1KiB",
        "bench gather --tree path:3 --size 1KiB",
        "calibrate --tree path:3",
        "node --join 127.0.0.1:1 --pe 0 --insecure",
    ] {
        let option = format!("--metrics {at}");
        let causes = [&format!("{option}: "), "in use"];
        refused(&format!("{command} {option}"), &causes);
    }
}

#[test]
fn the_dashboard_uses_existing_metrics() {
    let (run, at) = endless("--tree star:3");
    let page = scrape(at).expect("it listens");
    run.interrupt();
    let text = include_str!("../../deploy/grafana.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().filter_map(|it| it["targets"].as_array());
    let expressions = targets.flatten().map(|target| target["expr"].as_str());
    let mut checked = 0;
    for expression in expressions {
        let expression = expression.expect("a target has an expression");
        let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("flitcast_")) {
            let mut ends = ["_bucket", "_sum", "_count"].iter();
            let family = ends.find_map(|end| name.strip_suffix(end));
            let family = family.unwrap_or(name);
            assert!(page.names().contains(&family), "{name} of {expression}");
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}
