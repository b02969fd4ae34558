//! Times of what every flit and every round passes through, without sockets, disks and other processes:
//!
//!     cargo bench -p flitcast-tests
//!
//! `instructions.sh` beside this file counts the instructions of the same functions, which no load of the
//! machine changes. `cargo test --benches` runs each function once.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use flitcast_plan::Algorithm;
use flitcast_plan::schedule::scatter;
use flitcast_plan::sim;
use flitcast_proto::items::Control;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::FrameSealer;
use flitcast_proto::{RoundId, Tree};
use flitcast_tests::storm;
use twox_hash::XxHash3_128;

/// Payload bytes of the flits.
const FLIT_BYTES: [usize; 3] = [64, 4 << 10, 64 << 10];

/// Writes and seals the frame of a flit, as its sender does.
#[inline(never)]
fn write_flit(sealer: &mut FrameSealer, prefix: &mut Vec<u8>, payload: &[u8]) {
    prefix.clear();
    flit::put_prefix(None, None, payload.len(), prefix);
    black_box(sealer.seal([prefix, payload]));
}

/// Reads the frame of a flit from the bytes of a connection, as its receiver does.
#[inline(never)]
fn read_flit(reader: &mut FrameReader, mut wire: &[u8]) {
    while !wire.is_empty() {
        let space = reader.space();
        let bytes = space.len().min(wire.len());
        let (read, rest) = wire.split_at(bytes);
        space[..bytes].copy_from_slice(read);
        reader.filled(bytes);
        wire = rest;
        if reader.look().expect("it is a frame") != Look::Incomplete {
            black_box(flit::parse(reader.body()).expect("it is a flit"));
            reader.consume();
        }
    }
}

/// Adds the payload of a flit to the digest of its message.
#[inline(never)]
fn hash_flit(hasher: &mut XxHash3_128, payload: &[u8]) {
    hasher.write(payload);
}

/// Writes and reads a token.
#[inline(never)]
fn pass_token(frame: &mut Vec<u8>) {
    frame.clear();
    let token = EdgeFrame::Control {
        round: RoundId(7),
        item: Control::Token,
    };
    token.put(frame);
    black_box(EdgeFrame::parse(&frame[4..]).expect("it is a token"));
}

/// Returns the steps of a scatter, by the closed formula.
#[inline(never)]
fn plan_scatter(tree: &Tree, flits: &[u64]) -> u64 {
    scatter::optimal_steps(tree, flits)
}

/// Plans a gather by certification, and carries it out in steps with the machines of the PEs.
#[inline(never)]
fn step_gather(tree: &Arc<Tree>, flits: &[u64]) -> u64 {
    let algorithm = Algorithm::certification(Sync::Pipelined);
    let run = sim::run(tree, algorithm, flits);
    run.expect("it obeys the model").time_steps()
}

/// Plans a gossip on a complete network, and carries it out in steps with the machines of the PEs.
#[inline(never)]
fn step_gossip(tree: &Arc<Tree>, flits: &[u64]) -> u64 {
    let run = sim::run(tree, Algorithm::GOSSIP_CIRCULATE, flits);
    run.expect("it obeys the model").time_steps()
}

/// Runs the rounds of a simulated cluster, with its faults: those of the node and of the coordinator.
#[inline(never)]
fn run_storm(seed: u64) -> u128 {
    storm::run(seed, None, false).trace
}

/// Returns a tree, and one to five flits for each of its PEs.
fn tree_and_flits(name: &str) -> (Arc<Tree>, Vec<u64>) {
    let tree = name.parse::<TreeSpec>().expect("it is the name of a tree");
    let tree = tree.build().expect("it can be built");
    let flits = (0..tree.len() as u64).map(|pe| match pe {
        0 => 0,
        _ => 1 + pe * 7 % 5,
    });
    let flits = flits.collect();
    (Arc::new(tree), flits)
}

fn codec(c: &mut Criterion) {
    let mut group = c.benchmark_group("codec");
    for bytes in FLIT_BYTES {
        let payload = vec![7; bytes];
        group.throughput(Throughput::Bytes(bytes as u64));
        let (mut sealer, mut prefix) = (FrameSealer::default(), Vec::new());
        group.bench_function(BenchmarkId::new("write_flit", bytes), |b| {
            b.iter(|| write_flit(&mut sealer, &mut prefix, &payload));
        });
        // A duplicate is dropped before it is parsed: each frame has another seal.
        let (mut sealer, mut reader) = (FrameSealer::default(), FrameReader::new(1 << 17));
        prefix.clear();
        flit::put_prefix(None, None, bytes, &mut prefix);
        let frame = [&prefix[..], &payload].concat();
        group.bench_function(BenchmarkId::new("read_flit", bytes), |b| {
            b.iter_batched(
                || sealer.sealed(&frame),
                |wire| read_flit(&mut reader, &wire),
                criterion::BatchSize::PerIteration,
            );
        });
        let mut hasher = XxHash3_128::new();
        group.bench_function(BenchmarkId::new("hash_flit", bytes), |b| {
            b.iter(|| hash_flit(&mut hasher, &payload));
        });
    }
    group.finish();
    let mut frame = Vec::new();
    c.bench_function("codec/pass_token", |b| b.iter(|| pass_token(&mut frame)));
}

fn schedules(c: &mut Criterion) {
    let (tree, flits) = tree_and_flits("kary:2:1023");
    c.bench_function("schedules/plan_scatter/1023", |b| {
        b.iter(|| plan_scatter(&tree, &flits));
    });
}

fn rounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("rounds");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3));
    let (tree, flits) = tree_and_flits("kary:2:127");
    group.bench_function("step_gather/127", |b| b.iter(|| step_gather(&tree, &flits)));
    let (tree, _) = tree_and_flits("star:32");
    // By sender and receiver; a PE has nothing for itself.
    let flits: Vec<u64> = (0..32 * 32).map(|it| u64::from(it % 33 > 0)).collect();
    group.bench_function("step_gossip/32", |b| b.iter(|| step_gossip(&tree, &flits)));
    group.bench_function("run_storm/20 seeds", |b| {
        b.iter(|| (0..20).map(run_storm).fold(0, |all, trace| all ^ trace));
    });
    group.finish();
}

criterion_group!(all, codec, schedules, rounds);
criterion_main!(all);
