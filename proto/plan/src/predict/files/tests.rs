use flitcast_proto::Compression;
use flitcast_proto::cost::DIRECT_FILE_BYTES;
use flitcast_proto::schedule::pace::Pacing;

use super::*;
use crate::algorithms::Algorithm;
use crate::cost::{FILE_COSTS, LongBlocks, MadeOf, Model};
use crate::predict::Prediction;
use crate::tests::{self, lengths, tree};
use crate::timing::Timing;

const FLIT: u64 = 100;
const BLOCK: u64 = 400;

/// Returns the costs of a disk that costs nothing.
fn free() -> FileCosts {
    FileCosts {
        memory_bytes: f64::INFINITY,
        ..FileCosts::from_array([0.0; FILE_COSTS])
    }
}

/// Predicts a scatter over links of a byte a nanosecond to PEs that share one disk.
fn scatter(tree: &str, bytes: u64, made_of: MadeOf, disk: FileCosts) -> Prediction {
    let pes = tests::tree(tree).len();
    let mut files = files(vec![free(), disk], made_of, pes);
    files.disk_of[0] = 0;
    predicted(tree, &lengths(pes as u64, |_| bytes), Some(files))
}

/// Returns the files of messages that are all made alike, to PEs that share the last disk.
fn files(disks: Vec<FileCosts>, made_of: MadeOf, pes: usize) -> Files {
    Files {
        disk_of: vec![disks.len() - 1; pes],
        disks,
        made_of: vec![made_of; pes],
        block_bytes: BLOCK,
        long: LongBlocks {
            message_bytes: u64::MAX,
            block_bytes: BLOCK,
        },
        compression: Compression::Lz4,
        opened_ahead: 8,
        commits_under_way: 16,
        durability: Durability::Message,
    }
}

fn predicted(spec: &str, lengths: &[u64], files: Option<Files>) -> Prediction {
    let tree = tree(spec);
    let model = Model {
        files,
        ..Model::unit(tree.len())
    };
    let timing = Timing::of(&model, FLIT as u32, Pacing::Scheduled);
    tests::predicted(Algorithm::FARTHEST_FIRST, &tree, lengths, &model, &timing)
}

/// A static schedule reads a message once for each receiver, from the disk only the first time.
#[test]
fn a_message_is_read_again_for_each_receiver() {
    const PES: u64 = 4;
    let bytes = 10 * BLOCK;
    let tree = tree(&format!("star:{PES}"));
    let slow = FileCosts {
        read_ns_per_byte: 5.0,
        ..free()
    };
    let cold = MadeOf {
        entries: 1,
        cold_bytes: bytes,
        ..MadeOf::default()
    };
    let fetched = FileCosts {
        fetch_ns_per_byte: 5.0,
        ..free()
    };
    let waits = |algorithm, disk, made_of| {
        let model = Model {
            files: Some(files(vec![disk], made_of, PES as usize)),
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, FLIT as u32, Pacing::Eager);
        let lengths = vec![bytes; PES as usize * PES as usize];
        let prediction = tests::predicted(algorithm, &tree, &lengths, &model, &timing);
        prediction.files_ns[0]
    };
    // The first block was read before the round.
    let once = 9 * (5 * BLOCK - (BLOCK - FLIT));
    let again = 5 * BLOCK + once;
    let [circulated, direct] =
        [Algorithm::GOSSIP_CIRCULATE, Algorithm::GOSSIP_DIRECT].map(|algorithm| {
            [
                waits(algorithm, slow, entries(1)),
                waits(algorithm, fetched, cold),
            ]
        });
    assert_eq!(circulated[0], once);
    assert_eq!(direct[0], once + (PES - 2) * again);
    assert_eq!(direct[1], circulated[1]);
}

fn entries(entries: u64) -> MadeOf {
    MadeOf {
        entries,
        ..MadeOf::default()
    }
}

#[test]
fn files_that_cost_nothing_change_nothing() {
    let lengths = lengths(8, |pe| pe * 250);
    let without = predicted("kary:2:8", &lengths, None);
    let free = files(vec![free()], entries(3), 8);
    let with = predicted("kary:2:8", &lengths, Some(free));
    assert_eq!(with.arrivals_ns, without.arrivals_ns);
    assert_eq!(with.visible_ns, with.arrivals_ns);
    assert_eq!((with.commit_ns(), with.disk_ns()), (0, 0));
    assert_eq!(without.visible_ns, without.arrivals_ns);
}

#[test]
fn one_short_file_is_committed_after_it_has_arrived() {
    let disk = FileCosts {
        create_ns: 7.0,
        write_ns_per_byte: 2.0,
        sync_ns: 1000.0,
        sync_alone_ns: 10.0,
        flush_ns_per_byte: 3.0,
        commit_ns: 50.0,
        ..free()
    };
    let got = scatter("star:2", FLIT, entries(1), disk);
    assert_eq!(got.round_ns(), 100);
    // The file, then its receipt and the directory.
    let (written, synced) = (7 + 200, 1000 + 300);
    assert_eq!(got.commit_ns(), written + synced + 50 + 2000);
    assert_eq!(got.disk_ns(), 0, "nobody has to wait before");
}

#[test]
fn pes_that_share_a_disk_wait_for_each_other() {
    let together = FileCosts {
        sync_ns: 100_000.0,
        sync_alone_ns: 0.0,
        ..free()
    };
    let apart = FileCosts {
        sync_alone_ns: 100_000.0,
        ..together
    };
    let commit = |disk, pes: u64| {
        let tree = format!("star:{}", pes + 1);
        scatter(&tree, FLIT, entries(1), disk).commit_ns() as f64
    };
    let alone = commit(together, 1);
    assert_eq!(alone, 300_000.0, "a file, its receipt, the directory");
    assert_eq!(commit(together, 6), alone);
    assert!((commit(apart, 6) / alone / 6.0 - 1.0).abs() < 0.01);
}

#[test]
fn uncached_files_delay_their_source() {
    let bytes = 10 * BLOCK;
    let cold = MadeOf {
        entries: 1,
        cold_bytes: bytes,
        ..MadeOf::default()
    };
    let disk = FileCosts {
        fetch_ns_per_byte: 5.0,
        ..free()
    };
    let sent = |made_of| {
        let mut files = files(vec![disk, free()], made_of, 2);
        files.disk_of[0] = 0;
        predicted("star:2", &[0, bytes], Some(files))
    };
    let warm = sent(entries(1));
    assert_eq!((warm.round_ns(), warm.disk_ns()), (bytes, 0));
    // The first block was read before the round; the network takes the time of the last one.
    let got = sent(cold);
    assert_eq!(got.round_ns(), 9 * BLOCK * 5 + BLOCK);
    // Each block but the first was waited for after the last flit before it.
    assert_eq!(got.files_ns, vec![9 * (BLOCK * 5 - (BLOCK - FLIT)), 0]);
}

/// Simulates one receiver, its disk and its page cache byte by byte, from the rules alone: the
/// network fills a block while another one is written to memory; data beyond the memory goes to the
/// disk first, and the rest at the end. `write` and `flush` are ticks per byte.
fn byte_by_byte(bytes: u64, write: u64, flush: u64, memory: u64) -> (u64, u64) {
    let (mut now, mut filled, mut sent) = (0u64, 0u64, 0u64);
    let (mut writer_free, mut dirty) = (0u64, 0u64);
    let put = |from: u64, block: u64, dirty: &mut u64| {
        let mut at = from + block * write;
        *dirty += block;
        if *dirty > memory {
            at += (*dirty - memory) * flush;
            *dirty = memory;
        }
        at
    };
    while sent < bytes {
        let flit = FLIT.min(bytes - sent);
        sent += flit;
        // The network never idles: data that was not accepted waits at the receiver.
        now = now.max(sent);
        if filled + flit > BLOCK {
            now = now.max(writer_free);
            writer_free = put(now, filled, &mut dirty);
            filled = 0;
        }
        filled += flit;
    }
    let end = put(now.max(writer_free), filled, &mut dirty);
    (now, end + dirty * flush)
}

#[test]
fn a_receiver_is_predicted_as_its_disk_and_page_cache_are_simulated() {
    let mut random = flitcast_proto::seeded::SplitMix64::new(12);
    for case in 0..200 {
        let files = 17 + random.below(12);
        let file = FLIT * (1 + random.below(40));
        let (write, flush) = (random.below(5), random.below(9));
        let memory = FLIT * random.below(60);
        let disk = FileCosts {
            write_ns_per_byte: write as f64,
            flush_ns_per_byte: flush as f64,
            memory_bytes: memory as f64,
            ..free()
        };
        let got = scatter("star:2", files * file, entries(files), disk);
        let (arrived, visible) = byte_by_byte(files * file, write, flush, memory);
        // Data that waits for a block in the network is sent flit by flit, so a delayed port
        // catches up: the last byte arrives at most a block's time earlier.
        let predicted = (got.round_ns(), got.round_ns() + got.commit_ns());
        let case = format!("case {case}: {files} files of {file}, {write}, {flush}, {memory}");
        let off = predicted
            .0
            .abs_diff(arrived)
            .max(predicted.1.abs_diff(visible));
        assert!(
            off <= BLOCK,
            "{case}: {predicted:?} for {arrived}, {visible}"
        );
    }
}

/// A long file that becomes durable does without the page cache: its bytes cost a hash and a copy, and no more
/// of them wait for the disk than two buffers have. Others are written to memory first.
#[test]
fn long_files_are_predicted_without_the_page_cache() {
    let took = |count: u64, durability| {
        let tree = tree("star:2");
        let disk = FileCosts {
            write_ns_per_byte: 3.0,
            read_ns_per_byte: 0.5,
            flush_ns_per_byte: 2.0,
            ..free()
        };
        let model = Model {
            files: Some(Files {
                block_bytes: 1 << 20,
                durability,
                ..files(vec![free(), disk], entries(count), tree.len())
            }),
            ..Model::unit(tree.len())
        };
        let timing = Timing::of(&model, 1 << 20, Pacing::Scheduled);
        let lengths = [0, DIRECT_FILE_BYTES];
        let got = tests::predicted(Algorithm::FARTHEST_FIRST, &tree, &lengths, &model, &timing);
        (got.round_ns() + got.commit_ns()) as f64 / DIRECT_FILE_BYTES as f64
    };
    for (count, durability, byte_ns) in [
        (1, Durability::Message, 2.0 * 0.5 + 2.0),
        (1, Durability::Never, 3.0),
        (2, Durability::Message, 3.0 + 2.0),
    ] {
        let got = took(count, durability);
        assert!(
            (got / byte_ns - 1.0).abs() < 0.2,
            "{count} {durability:?}: {got}"
        );
    }
}

/// Costs that a PE reports may be of any size.
#[test]
fn files_without_number_that_take_for_ever_are_predicted_all_the_same() {
    let worst = FileCosts::from_array([1e10; FILE_COSTS]);
    let bytes = 64 * BLOCK;
    let made_of = MadeOf {
        packed_bytes: u64::MAX,
        pack_ns: u64::MAX,
        unpack_ns: u64::MAX,
        ..entries(1 << 60)
    };
    let got = scatter("star:3", bytes, made_of, worst);
    assert!(got.round_ns() >= bytes, "{}", got.round_ns());
    assert!(got.visible_ns.iter().skip(1).all(Option::is_some));
}

/// A quarter of the bytes cross each edge; the root compresses, and each PE decompresses what it receives.
#[test]
fn compressed_flits_take_fewer_bytes_and_more_work() {
    const MIB: u64 = 1 << 20;
    let made_of = MadeOf {
        entries: 1,
        packed_bytes: MIB / 4,
        pack_ns: 3 * MIB,
        unpack_ns: MIB,
        ..MadeOf::default()
    };
    let sent = |spec: &str, made_of| {
        let pes = tests::tree(spec).len();
        let files = files(vec![free()], made_of, pes);
        // Only the last PE has a message.
        let lengths: Vec<u64> = (1..=pes)
            .map(|pe| if pe == pes { 1000 * FLIT } else { 0 })
            .collect();
        predicted(spec, &lengths, Some(files)).round_ns()
    };
    let plain = MadeOf {
        packed_bytes: 0,
        ..made_of
    };
    assert_eq!(sent("star:2", plain), 1000 * FLIT);
    // Each flit is compressed in three times what it took on the wire, then sent, and the last one
    // decompressed.
    let [sends, receives] = [3 * FLIT + FLIT / 4, FLIT];
    assert_eq!(sent("star:2", made_of), 1000 * sends + receives);
    // A relay does not compress again.
    assert_eq!(
        sent("path:3", made_of),
        1000 * sends + receives + FLIT / 4 + receives
    );
}
