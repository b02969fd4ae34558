//! Limits of a PE's waits and of its memory. Every wait has a limit.

use std::time::Duration;

pub use flitcast_proto::wire::control::Timeouts;

/// Time until the coordinator's first message to a registered PE: the coordinator may still start
/// others, a thousand on a busy machine.
pub const FIRST_MESSAGE: Duration = Duration::from_secs(30);

/// Time without a message from a coordinator whose host answers: a user may have stopped it, by Ctrl-Z
/// for example, and may continue it later. A dead host is detected earlier:
/// see `Timeouts::coordinator_gone`.
pub const STANDSTILL_OF_COORDINATOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Number of queued messages to or from the coordinator. There are a few a round, and the coordinator
/// waits for an answer to most.
pub const QUEUED_MESSAGES: usize = 16;

/// Pause after a first failed attempt to join: the listener of the next command may appear soon. Each
/// further pause is twice as long, up to [`LONGEST_PAUSE`].
pub const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Longest pause between attempts to join: a new listener is joined within half a second, and a
/// thousand waiting PEs are 2000 refused connections a second, which a host does not notice.
pub const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Time to resolve a name: a resolver queries a second server after 5 s.
pub const LOOKUP: Duration = Duration::from_secs(10);

/// Time between two updates of the health file.
pub const HEALTH: Duration = Duration::from_secs(1);

/// Time to connect to all neighbours, once the PE has their addresses.
pub const NEIGHBOURS: Duration = Duration::from_secs(10);

/// Maximum number of unauthenticated connections, if there are enough descriptors (`descriptors.rs`).
/// When there are more, some have to leave (`handshake_limiter.rs`). A connection in the middle of
/// TLS takes up to 22 KiB, so all of these take less than 16 MiB.
pub const GREETINGS: usize = 704;

/// The number if there are few descriptors: with 0, no PE could connect.
pub const FEWEST_GREETINGS: usize = 8;

/// Time for which a new client keeps its place: a PE sends as soon as it is connected, but its host may
/// be busy. So 10,000 clients a second can be accepted and disconnected.
pub const GRACE: Duration = Duration::from_millis(100);

/// Time for which a client keeps its place after it has begun as a PE begins and was answered, or has
/// received data: a round trip to the other end of the earth takes 300 ms, and a lost packet is sent
/// again within a second.
pub const ROUND_TRIP: Duration = Duration::from_secs(1);

/// Number of bytes that a client may send before its certificate is verified, its first message
/// included. Certificates of `flitcast ca` take a quarter of them, one with an RSA key of 4096 bits two
/// thirds. The memory for a client grows by twice that number.
pub const UNKNOWN_BYTES: usize = 4 * 1024;

/// Number of descriptors that a PE needs apart from its neighbours: 16 messages that are being made
/// durable, nine that are read, each with a file, its folder and a link on the way; four scans; 16 clients
/// that scrape metrics; a dozen others; and [`MOST_HELD_ENTRIES`].
pub const DESCRIPTORS: u64 = 192;

/// Number of files and folders of incoming messages that are held open until they are synced: those of
/// four messages. Others are synced when they are complete.
pub const MOST_HELD_ENTRIES: usize = 64;

/// Number of descriptors for a neighbour: its connection, and a timer if the link is shaped.
pub const DESCRIPTORS_PER_NEIGHBOUR: u64 = 2;

/// Number of connections that the kernel queues for a listener: as many as Linux allows by default. A
/// client that finds this queue full tries again a second later, and then two seconds after that.
pub const BACKLOG: u32 = 4096;

/// Number of attempts of a client that is disconnected before it has sent anything: one suffices except
/// in a flood, and five failures by chance are unlikely.
pub const CALLS: u32 = 5;

/// Time to measure an edge, beyond the budget from the coordinator: the longest burst is 1 MiB, which a
/// link of 1 Mbit/s carries in 8 s.
pub const PROBE: Duration = Duration::from_secs(20);

/// The largest budget for an edge: no calibration takes more than a minute.
pub const PROBE_BUDGET: Duration = Duration::from_secs(60);

/// Time after an error for the coordinator to decide the end of the round.
pub const AFTER_FAULT: Duration = Duration::from_secs(3);

/// Time between two progress reports of P0: short enough for a progress bar, too long to be visible in
/// a measurement.
pub const PROGRESS: Duration = Duration::from_millis(200);

/// Number of bytes that are read from or written to disk at once. Two such blocks are in memory for
/// each message that is read or written: one with the disk, one with the network.
pub const DISK_BLOCK_BYTES: usize = 256 * 1024;

/// Number of bytes of a long message that are read from or written to disk at once: threads pass each
/// other a quarter as many blocks.
pub const LONG_BLOCK_BYTES: usize = 1024 * 1024;

/// Least length of a long message in bytes.
pub const LONG_MESSAGE_BYTES: u64 = 16 << 20;

/// Maximum number of messages of a process with long blocks, so that these take 8 MiB at most.
pub const MOST_LONG_BLOCKS: usize = 4;

/// Maximum number of files of a process that are written without the page cache at the same time, so that their
/// buffers take 8 MiB at most. Two keep a disk busy.
pub const MOST_DIRECT_FILES: usize = 2;

/// Number of bytes of a file after which the disk begins to write them, so that the sync at the end has
/// less to wait for.
pub const WRITE_BACK_BYTES: u64 = 8 << 20;

/// Maximum number of processors over which work is divided. A message that is measured has a file and two
/// folders open.
pub const MOST_PROCESSORS: usize = 4;

/// Least length of a message in bytes that is kept if it is cut off, so that a later run can continue
/// it. A shorter one is sent again as quickly.
pub const KEPT_MESSAGE_BYTES: u64 = 4 << 20;

/// Time to measure the costs of files on a file system, which takes some tenths of a second.
pub const MEASURE_FILES: Duration = Duration::from_secs(3);

/// Time to measure the costs of processes on a host, which takes a fifth of a second.
pub const MEASURE_HOST: Duration = Duration::from_secs(2);

/// Number of messages that are being made durable while later ones arrive. More would only queue at the
/// disk.
pub const COMMITS_UNDER_WAY: usize = 16;

/// Number of messages that are opened before their turn. Each holds two disk blocks, so these are 4
/// MiB; with short messages the disk is that far ahead of the links.
pub const OPENED_AHEAD: usize = 8;

/// Time to read the first bytes of these before a round begins: any disk that is awake answers sooner,
/// and the wait for one that hangs is short.
pub const OPENING: Duration = Duration::from_secs(1);

/// Time for a command to end after SIGTERM; then its group is killed. Less than a PE has to leave.
pub const GRACE_OF_COMMANDS: Duration = Duration::from_secs(2);

/// Time for a process to end after SIGKILL: it takes longer only in the kernel, at a disk that hangs.
pub const DYING: Duration = Duration::from_millis(500);

/// Time to end all processes of a command, or to name those that are left: [`GRACE_OF_COMMANDS`], and
/// [`DYING`] for those that have left its group and once more for its stderr, on a busy machine.
pub const ENDING_OF_COMMANDS: Duration = Duration::from_secs(4);

/// Time for the supervisors of an earlier PE of the same number to end its command, within
/// [`ENDING_OF_COMMANDS`]; then all remaining processes are killed.
pub const LOCK: Duration = Duration::from_secs(5);

/// Time for which a signal may stop a supervisor of a command, as long as a PE may be silent; then it
/// is killed, which ends the command.
pub const STOPPED_SUPERVISOR: Duration = Duration::from_secs(3);

/// Time between two checks whether processes have ended that cannot be waited for: long enough to cost
/// nothing, and only used while a command ends.
pub const POLL: Duration = Duration::from_millis(5);

/// Time for a PE whose parent process has died to leave in the way that the end of its channel causes.
/// Its last writes take a disk a moment; a disk that hangs is not waited for.
pub const ORPHANED: Duration = Duration::from_secs(5);

/// Time of a yield from which on it is long: PEs use the core for some ten microseconds each, a busy
/// program for some milliseconds.
pub const LONG_YIELD: Duration = Duration::from_millis(1);

/// Time before an action at which a PE that polls wakes up, in nanoseconds: several times what a sleeping
/// thread takes to get a core.
pub const POLLED_NS: u64 = 200_000;

/// Number of rounds after which a long yield is forgotten. With more than two of them, a PE that waits for
/// a frame sleeps instead.
pub const ROUNDS_OF_A_LONG_YIELD: u32 = 10;

/// Time after which a task lets the other tasks of its thread run, in nanoseconds: a small part of any
/// bound on silence.
pub const LONGEST_SLICE_NS: u64 = 20_000_000;

/// Time between two checks of all connections.
pub const CONNECTION_CHECK: Duration = Duration::from_secs(1);

/// Age from which on a health file counts as abandoned: several times as long as a busy machine delays a
/// PE.
pub const ABANDONED_HEALTH_FILE: Duration = Duration::from_secs(5);

/// Maximum length of a health file in bytes: one line.
pub const HEALTH_FILE_BYTES: u64 = 1000;

/// Maximum length of a file of credentials in bytes: a chain of certificates has a few KiB.
pub const CREDENTIALS_FILE_BYTES: u64 = 1 << 20;

/// Maximum length of the reason why a command cannot be started: it is only read after the end of this
/// process, so it has to fit into a pipe.
pub const COMMAND_REASON_BYTES: usize = 4000;

/// Maximum length of the supervisors' report of a command's end, in bytes: a reason with a path or two.
pub const COMMAND_END_BYTES: u64 = 64 * 1024;

/// Maximum number of entries of a result that are removed since they cannot be sent: each one takes
/// a walk over the result. Above it, the result is not taken at all.
pub const UNSENDABLE_ENTRIES: usize = 256;

/// Pause after the system has refused to accept a connection, in which other connections may close.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Time for a client that must leave to be handled if it has already sent something. Once this has
/// passed, the runtime has polled the sockets again, however late it is.
pub const LAST_MESSAGE: Duration = Duration::from_millis(5);

/// Number of clients that leave at a time: each time takes [`LAST_MESSAGE`], and 10,000 clients a second
/// are to be accepted.
pub const DISCONNECTED_AT_ONCE: usize = 64;

/// Number of rejected clients that are logged as warnings; the others appear only in detailed logs.
pub const WARNED_REJECTIONS: u64 = 8;

/// Number of equal parts in which a limit is waited for. If the process itself is stopped or gets no
/// processor, only one part passes, however long that takes: the other end is not the cause.
pub const PARTS_OF_A_WAIT: u32 = 8;

/// Maximum number of reported errors of an input: a user corrects no more at a time, and with their
/// paths, of 16 KiB each when fully escaped, they fit into a frame many times.
pub const REPORTED_INPUT_ERRORS: usize = 100;

/// Maximum length of a receipt in bytes; a longer file is not a receipt.
pub const RECEIPT_BYTES: u64 = 200;

/// Maximum number of files that a PE reports of the entries which messages replace: 2 MiB of hashes, half
/// of the shortest frame. Further files are sent again.
pub const MOST_PRESENT_FILES: usize = 1 << 18;
