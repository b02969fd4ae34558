//! The tuning constants of the coordinator, each with the reason for its value: budgets of searches and
//! measurements, sizes, and limits of waits.

use std::time::Duration;

// The choice of an algorithm and a tree.

/// Processor time that the predictions of a choice may always take. With what else it does, a choice then takes less
/// than 20 ms, which no user notices.
pub const CHOICE_UNNOTICED_NS: u64 = match cfg!(debug_assertions) {
    // Code that is not optimised takes several times as long.
    true => 100_000_000,
    false => 17_000_000,
};

/// Part of the shortest predicted time that predictions of a choice may take if that is longer: with what else it does,
/// a twentieth.
pub const CHOICE_PART: u64 = 22;

/// Processor time of `compare` after which it searches for no more best flit sizes.
pub const COMPARED_SEARCH_NS: u64 = 3_000_000_000;

/// Number of alternatives that a choice predicts again with usual flits: the long flits of its first pass
/// may have confused their times.
pub const FINALISTS: usize = 8;

/// Number of finalists for which the best flit size is searched for: each takes many predictions.
pub const SEARCHED_FINALISTS: usize = 6;

/// Ratio of predicted times within which predictions count as equal. Least memory, then the fewest edges one after
/// the other, then the longest flits are chosen, because they cost least where predictions are incomplete.
pub const EQUAL_PREDICTIONS: f64 = 1.02;

/// Ratio of equal times where software is the limit and not the links: predictions are less exact there.
pub const EQUAL_SOFTWARE_PREDICTIONS: f64 = 1.05;

/// Ratio of equal times for a gather without waits between streams, whose processes sleep less often than
/// predicted: on one machine it was the quickest in 14 of 15 kinds of rounds, and predicted up to 10 % slower.
pub const EQUAL_EAGER: f64 = 1.12;

/// Length of the longest messages of such a gather: buffers of connections hold them.
pub const EAGER_MESSAGE_BYTES: u64 = 1 << 20;

/// Ratio of equal times for an alternative whose PEs hold less by [`LESS_HELD_BYTES`]: its prediction does not depend
/// on the speed of memory.
pub const EQUAL_WITH_LESS_HELD: f64 = 1.15;

/// Number of bytes that a PE must hold less for a longer time to count as equal.
pub const LESS_HELD_BYTES: u64 = 8 << 20;

/// Number of flits of the longest message in the first pass of a choice: enough to tell a path, which is a
/// pipeline, from a tree of whole messages.
pub const COARSE_FLITS: u64 = 4;

/// Shortest flits of the first pass on slow links: shorter ones are mostly software costs.
pub const COARSE_FLIT_BYTES: u64 = 4 << 10;

/// Flit size that a choice tries besides the default where software is the limit and not the links: there the
/// search from a formula does not apply.
pub const SHORT_FLIT_BYTES: u32 = 16 << 10;

/// Unit of the lengths of blocks for the choice of a gossip by formula: messages are rarely shorter.
pub const BLOCK_UNIT_BYTES: u64 = 1 << 10;

// The size of flits.

/// Default payload of a flit: long enough that software costs little, short enough to fill a pipe soon.
pub const USUAL_FLIT_BYTES: u32 = 64 << 10;

/// Default payload of the flits of longer messages where software is the limit and not the links: the
/// frame of such a flit is one segment of TCP on loopback (65,483 bytes), and that of 64 KiB two, which takes
/// a path of eight PEs a fifth more time. The payload consists of whole pages of 4 KiB.
pub const SEGMENT_FLIT_BYTES: u32 = 60 << 10;

/// Default payload of the flits of long messages in the same situation: two segments. Rounds of eight PEs
/// take a tenth less time than with one segment. Four segments save as much, but not with messages of less
/// than 1 MiB, and take more memory.
pub const LONG_FLIT_BYTES: u32 = 124 << 10;

/// Length from which messages are long.
pub const LONG_MESSAGE_BYTES: u64 = 512 << 10;

/// Maximum number of neighbours that send such flits to one PE, which has memory for one of each.
pub const LONG_FLIT_SENDERS: usize = 8;

/// Default and maximum payload of a broadcast in turns behind a switch, where consecutive flits come from
/// different senders: small enough for a queue of 16 KiB to hold those of several when one is late. With 8
/// KiB a broadcast to 12 hosts lost packets and took twice as long.
pub const SWITCHED_FLIT_BYTES: u32 = 4 << 10;

/// Smallest chosen payload: below this a flit's prefix and seal are more than a tenth of it, and a
/// system call moves too little.
pub const LEAST_FLIT_BYTES: u64 = 1 << 10;

/// Greatest ratio of predicted times, against the default size, at which another size is chosen.
/// Predictions are accurate to some 15 % (`rounds/learning.rs`), so a smaller predicted gain could be a
/// loss.
pub const FLIT_SIZE_WORTH: f64 = 0.8;

/// The corresponding ratio for a broadcast, for which there is a formula (spec of exchanges, section
/// 10). In measurements shorter flits gained more than was predicted, since every delay at a relay
/// delays all later data by a flit.
pub const FLIT_SIZE_WORTH_IN_A_STREAM: f64 = 0.999;

/// Least ratio of a link's time per byte, or per packet, to that of the software at its ends; below it the
/// default size stays. Between processes of one machine only software takes time, on shared cores, and predictions
/// are sometimes off by a third, which is more than any size gains.
pub const SLOW_LINK_RATIO: f64 = 4.0;

/// Greatest ratio of predicted times at which the search continues with the next power of two: larger
/// flits have lower costs that predictions do not include.
pub const NEXT_FLIT_SIZE_RATIO: f64 = 0.98;

/// Estimated time to predict one flit on one edge.
pub const CROSSING_NS: u64 = 500;

/// Estimated time to plan one flit on one edge of a list that is planned in blocks.
pub const LISTED_CROSSING_NS: u64 = 2_500;

/// Part of the predicted round that the search for a flit size may take.
pub const FLIT_SIZE_PART: u64 = 10;

/// Time that the search for a flit size may always take: no user notices it.
pub const FLIT_SIZE_UNNOTICED_NS: u64 = 5_000_000;

/// Time that the search for a flit size may take at most: nothing is sent meanwhile.
pub const FLIT_SIZE_LONGEST_NS: u64 = 250_000_000;

// Packets and the order of messages.

/// Time that a search for the best packets may take: the user has requested it, and notices it little.
pub const PACKETS_NS: u64 = 200_000_000;

/// Number of packet counts that are tried one by one: more packets are best chosen by their size.
pub const PACKET_COUNTS: u64 = 64;

/// Number of cuts for which an order is searched for, in a second or two.
pub const ORDERED_CUTS: usize = 8;

/// Resolutions that are tried for packets that mix messages, in parts of the longest message. Finer parts
/// are flits of their own, each with a head.
pub const MIXED_PARTS: [u64; 4] = [1, 4, 16, 64];

/// Resolution of planned packets, in parts of the longest message: finer ones take long to plan.
pub const GRAINS: u64 = 4096;

/// Number of nodes that the search for an order visits, in some tenths of a second.
pub const ORDER_NODES: u64 = 50_000;

/// Relative difference below which durations are equal: times are whole nanoseconds.
pub const EQUAL_DURATIONS: f64 = 1e-6;

// The model.

/// The number of bytes that Linux buffers for a connection that is not read, by default.
pub const BUFFER_BYTES: u64 = 4 << 20;

/// The bytes that TCP sends back for each byte received over a network: an acknowledgement for every
/// second full segment, of 20 bytes, as many of IP and 12 of options, both in Ethernet frames of 1514
/// bytes at most.
pub const ACKNOWLEDGED: f64 = 66.0 / (2.0 * 1514.0);

/// The assumed cost of encrypting or decrypting a byte: `deploy/runs/2026-11-20-tls`.
pub const CRYPTO_NS_PER_BYTE: f64 = 0.2;

// Measurements before rounds.

/// Budget for the measurement of an edge before an uncalibrated round, short because commands
/// should start quickly.
pub const SHORT_PROBE: Duration = Duration::from_millis(8);

/// Maximum width of a rate's confidence interval, relative to the rate, with which an edge is not measured
/// again: predictions are not more accurate than that.
pub const SURE_RATE: f64 = 0.2;

/// Approximate time for complete measurements over a network. After that only edges unlike all
/// measured ones are measured completely.
pub const MEASURED_APART: Duration = Duration::from_secs(1);

/// Maximum number of points of a direction in a chart, which a page shows without delay.
pub const SHOWN_POINTS: usize = 300;

// Costs learned from rounds.

/// Relative deviation of the median of many rounds from the model with the best costs, found for
/// 114 kinds of rounds.
pub const OFF_ALWAYS: f64 = 0.15;

/// Additional relative deviation of a single round.
pub const OFF_ONCE: f64 = 0.2;

/// Relative deviation of the median of many rounds with files: their messages differ in more than
/// the model has, such as the number of threads that work on them at once.
pub const FILES_OFF_ALWAYS: f64 = 0.3;

/// Additional relative deviation of a single round with files, because other processes use disks as
/// well.
pub const FILES_OFF_ONCE: f64 = 0.25;

/// Additional relative deviation for each busy thread of other programs per core, whose turns
/// differ from the predicted ones.
pub const OFF_BESIDE_OTHERS: f64 = 0.5;

/// Additional relative deviation of a round with files if threads of other programs wait for disks all
/// the time.
pub const FILES_OFF_BESIDE_OTHERS: f64 = 0.5;

/// Least share of the time in which threads of other programs wait for disks that makes the costs of
/// files others: a sync behind theirs takes several times as long. Some programs wait now and then only,
/// and the time before a round is short; on an idle machine no thread waits at all.
pub const BUSY_DISK_SHARE: f64 = 0.02;

/// Maximum number of counts of busy threads in a row, which end when none is found: on every machine some
/// thread works for a moment, and a single busy one can double a prediction.
pub const BUSY_COUNTS: u32 = 6;

/// Time between two counts of busy threads, in which a thread that has done its work falls asleep.
pub const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Least number of busy threads of other programs per core that makes the costs of files others: the
/// kernel's threads, for which a sync waits, have to wait for a core.
pub const BUSY_CORE_THREADS: f64 = 0.5;

/// Least relative difference between the measured and the predicted time of a round, in deviations, of
/// two rounds in a row after which the learned costs count little: a factor of two, or more beside other
/// programs.
pub const FAR_OFF: f64 = 4.5;

/// This difference for a round with files.
pub const FILES_FAR_OFF: f64 = 1.5;

/// Relative deviation of links between hosts as measured before a round.
pub const OFF_ON_WIRES: f64 = 0.25;

/// Maximum number of flits times edges, some two milliseconds' work, of rounds that are learned
/// from, because that takes about thirty predictions.
pub const LEARNED_FLITS: u64 = 4096;

/// The limit of [`LEARNED_FLITS`] for rounds with files, which take longer.
pub const LEARNED_FLITS_WITH_FILES: u64 = 32_768;

/// Maximum length of a file in the cache of costs; a typical one has some 2 KiB.
pub const CACHED_BYTES: u64 = 64 << 10;

/// Age at which a file of the cache is removed: such hosts are rarely still up, and a new measurement is quick.
pub const CACHE_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// Pause after which rounds belong to a new sitting: the machine may have begun or ended other work.
pub const SITTING_PAUSE: Duration = Duration::from_secs(600);

/// Number of earlier sittings that are kept, for a median that two odd ones do not change.
pub const SITTINGS: usize = 4;

// Rounds that run.

/// Maximum number of spans that are kept until the median round is known: 128 MiB.
pub const MAX_KEPT_SPANS: usize = 4 * 1024 * 1024;

/// Maximum time between two checks of the controller's clock: a longer one means that this process was
/// stopped.
pub const CLOCK_CHECKS: Duration = Duration::from_millis(250);

/// Time between the expected arrival of the last trigger and the begin: several times what an
/// operating system takes to run a process that is ready.
pub const BEGIN_MARGIN: Duration = Duration::from_millis(2);

/// Limit for a message to a PE and its answer, which takes milliseconds unless the PE hangs.
pub const ANSWER: Duration = Duration::from_secs(10);

/// Limit for the measurement of one edge beyond its budget, longer than the PE's own limit.
pub const PROBE: Duration = Duration::from_secs(30);

/// Least ratio of the elapsed to the predicted time of a round that is reported; smaller ones are normal variation.
pub const SLOW_RATIO: f64 = 2.0;

/// Least time of a round that is reported as slow: shorter ones are as slow as the machine pauses.
pub const SLOW_LEAST: Duration = Duration::from_secs(1);

/// Time after an error, which a user waits for, for the remaining PEs to remove incomplete messages and report
/// deliveries.
pub const LAST_REPORTS: Duration = Duration::from_secs(2);

/// Maximum wait for work that was requested to end, longer than the PEs' time for last reports.
pub const ENDING: Duration = Duration::from_secs(3);

// Clusters.

/// Time for all processes to start and register. Two idle cores start 64 in about 60 ms, so a
/// thousand on a busy machine have enough time.
pub const LAUNCH: Duration = Duration::from_secs(30);

/// Time for the other hosts to start or fail after the first has failed over ssh. For an
/// unreachable host, ssh gives up after 10 s.
pub const OTHER_HOSTS: Duration = Duration::from_secs(15);

/// Capacity of the queue of events; each PE answers two pings per second.
pub const QUEUED_EVENTS: usize = 4096;

/// Capacity of the queue of messages to a PE. No further message is sent before the PE has
/// answered.
pub const QUEUED_COMMANDS: usize = 64;

/// Time before the missing PEs are printed; processes that are already waiting have joined by then.
pub const JOIN_NOTICE: Duration = Duration::from_secs(2);

/// Time for a process to end after a request to stop, several times what a PE needs; then it is killed.
pub const STOP: Duration = Duration::from_secs(3);

/// Time for the operating system to report a death that a neighbour has already noticed.
pub const DEATH_NOTICE: Duration = Duration::from_millis(500);

/// Time to read the last lines of a process that has ended. At most 64 KiB are left in the pipe,
/// but a process that it left behind may keep the pipe open.
pub const LAST_LINES: Duration = Duration::from_millis(100);

/// Time for a PE to end after its channel has ended. Then its ssh is killed, and the end of the PE
/// can no longer be observed.
pub const CHANNEL_ENDS: Duration = Duration::from_secs(2);
