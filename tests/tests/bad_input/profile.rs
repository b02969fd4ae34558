//! Invalid profiles, profiles of another tree, and impossible calibrations.

use flitcast_tests::{Folder, rows, scratch};

use super::{refused_each_in, refused_in};

/// A profile up to its edges.
const HEAD: &str = r#"
version = 1
measured = 2026-11-20T13:00:00Z
tree = "path:3"
parents = [0, 1]
flit_bytes = 65536
pacing = "eager"
[host]
shared_cores = 2
wake_ns = 30000
control_ns = 5000
flit_ns = 6000
send_ns_per_byte = 0.1
receive_ns_per_byte = 0.1
end_ns_per_byte = 0.05
message_ns = 20000
ports = "per-edge"
buffer_bytes = 4194304
[fit]
median_residual_pct = 3
worst_residual_pct = 9
workloads = []
"#;

/// Returns the part of a profile about the edge to P`child`.
fn edge(child: u32) -> String {
    let link =
        "latency_us = [20, 19, 21]\nns_per_byte = [0.2, 0.2, 0.2]\nburst_bytes = [0, 0, 0]\n";
    let clock = "clock = { offset_ns = 0, uncertainty_ns = 0 }";
    format!("[[edge]]\nchild = {child}\n{clock}\n[edge.down]\n{link}[edge.up]\n{link}")
}

const GATHER: &str = "gather --tree path:3 --size 1 --profile @/profile.toml";

/// Returns a profile with `from` replaced everywhere; an empty `from` leaves it good.
fn with(from: &str, to: &str) -> Folder {
    let dir = scratch();
    let good = [HEAD, &edge(1), &edge(2)].concat();
    assert!(good.contains(from), "{from}");
    let text = match from {
        "" => good,
        from => good.replace(from, to),
    };
    dir.put("profile.toml", text);
    dir
}

/// The profile that the other tests spoil is valid before.
#[test]
fn a_good_profile_is_taken() {
    let dir = with("", "");
    super::run_loudly(&dir, GATHER).ok();
}

/// A profile would include the costs of encryption, or omit them.
#[test]
fn a_profile_with_encryption_is_for_encryption() {
    let dir = with("pacing =", "encrypted = true\npacing =");
    let expected = "--profile: it was measured with TLS, and this would be without TLS";
    refused_in(&dir, GATHER, &[expected]);
}

#[test]
fn each_fault_is_refused_with_its_line() {
    for [from, to, causes] in rows(
        r"
        [0, 1] | [0, 0] | toml:5: .. P2's parent is P0, here it is P1
        = 30000 | = -1 | toml:10:11: wake_ns in host must be a number from 0 .. not `-1`
        [host] | [host | toml:8:
    ",
    ) {
        let dir = with(from, &to.replace(r"\n", "\n"));
        let causes = causes.split(" .. ");
        let place = ["--profile: ", "/profile.toml"];
        refused_in(
            &dir,
            GATHER,
            &place.into_iter().chain(causes).collect::<Vec<_>>(),
        );
    }
}

#[test]
fn a_fault_of_the_profile_hides_no_other() {
    let dir = with("= 30000", "= -1");
    let line = format!("{GATHER} --flit-size 1").replace("--size 1 ", "--size much ");
    refused_in(&dir, &line, &["wake_ns", "`much`", "--flit-size"]);
}

/// The costs of a step, a hop and a flit of a gossip are those of a message, both ends of an edge and
/// the software of a relay, which is slower than the links (their latencies are those of processes).
#[test]
fn a_gossip_is_planned_for_what_was_calibrated() {
    let dir = with("", "");
    let plan = |more: &str| format!("plan gossip --network ring:9 --lengths equal:1 {more}");
    let prices = |more: &str, expected: &str| {
        let line = plan(&format!("--profile @/profile.toml {more}"));
        super::run_loudly(&dir, &line).ok().prints(&[expected]);
    };
    prices("", "t_s = 20.000 us, t_d = 42.000 us, t_l = 25.107 us");
    prices("--flit-size 1KiB", "t_l = 12.205 us");
    refused_each_in(
        &dir,
        &plan("--profile"),
        "
        @/none.toml | cannot read the profile
        @/profile.toml --flit-size 3 | --flit-size 3 B: a flit has 64 B to 1 MiB
        @/profile.toml --td 3 | cannot be used with '--td <TIME>'
    ",
    );
}
