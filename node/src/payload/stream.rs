//! Messages as a round reads and writes them: one flit at a time. Another thread reads or writes
//! the disk, one block ahead or behind.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flitcast_proto::DeliveryName;
use flitcast_proto::wire::control::FilePayload;
use flitcast_proto::wire::flit::Digest;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, spawn_blocking};

use super::error::PATH_BYTES_MAX;
use super::others::output_entry;
use super::staging::Staging;
use super::synthetic::Synthetic;
use super::{Outgoing, Packer, PayloadError, Target, Unpacker, create_durable};
use crate::activity_monitor::ActivityMonitor;
use crate::limits::{DISK_BLOCK_BYTES, LONG_BLOCK_BYTES, LONG_MESSAGE_BYTES, MOST_LONG_BLOCKS};
use crate::runtime::joined;
use crate::system::clock;

/// Source of the bytes of an outgoing message.
pub enum Source {
    Synthetic(Synthetic),
    Files(Box<FileSource>),
}

impl Source {
    /// Returns the next `len` bytes of the message; `len` must be a whole flit or the rest. Adds
    /// the time of waiting for files to `waited_ns`.
    pub async fn next(&mut self, len: usize, waited_ns: &mut u64) -> Result<&[u8], PayloadError> {
        match self {
            Source::Synthetic(message) => Ok(message.next(len)),
            Source::Files(files) => files.next(len, waited_ns).await,
        }
    }

    /// Returns the bytes that the last call of [`Source::next`] returned.
    pub fn last(&self) -> &[u8] {
        match self {
            Source::Synthetic(message) => message.last(),
            Source::Files(files) => &files.block[files.last..files.used],
        }
    }

    /// Waits until the first bytes of the message have been read.
    pub async fn opened(&mut self) {
        if let Source::Files(files) = self {
            files.opened().await;
        }
    }
}

/// The messages of this process that may have long blocks.
static LONG_BLOCKS: Semaphore = Semaphore::const_new(MOST_LONG_BLOCKS);

/// The number of bytes of a message that are read or written at once.
struct BlockLength {
    bytes: usize,
    /// Whether the message is long enough for long blocks.
    is_long: bool,
    permit: Option<SemaphorePermit<'static>>,
}

impl BlockLength {
    /// Returns the length for the first block of a message of this length.
    fn of(message_bytes: u64) -> BlockLength {
        BlockLength {
            bytes: DISK_BLOCK_BYTES,
            is_long: message_bytes >= LONG_MESSAGE_BYTES,
            permit: None,
        }
    }

    /// Returns the length for a further block.
    fn next(&mut self) -> usize {
        if self.is_long && self.permit.is_none() {
            self.permit = LONG_BLOCKS.try_acquire().ok();
            self.bytes = match &self.permit {
                Some(_) => LONG_BLOCK_BYTES,
                None => DISK_BLOCK_BYTES,
            };
        }
        self.bytes
    }
}

/// Returns the greatest length of a block that has whole flits only.
fn in_flits(block_bytes: usize, flit_bytes: usize) -> usize {
    (block_bytes / flit_bytes).max(1) * flit_bytes
}

/// The task that reads a block.
type Reading = JoinHandle<Read>;
type Read = Result<(Packer, Vec<u8>), PayloadError>;

/// A message made of files, read one block ahead.
pub struct FileSource {
    /// The current block, the end of the bytes returned from it, and the begin of those returned
    /// last.
    block: Vec<u8>,
    used: usize,
    last: usize,
    reading: Reading,
    /// The first block, if [`FileSource::opened`] has waited for it.
    first: Option<Read>,
    left: u64,
    length: BlockLength,
    flit_bytes: usize,
}

impl FileSource {
    /// Starts to read a message behind its first `skipped` bytes, in blocks of whole flits.
    pub fn open(message: Outgoing, flit_bytes: u32, skipped: u64) -> FileSource {
        let bytes = message.measured.bytes.saturating_sub(skipped);
        // No flit spans two blocks.
        let (flit_bytes, length) = (flit_bytes as usize, BlockLength::of(bytes));
        let block = in_flits(length.bytes, flit_bytes);
        let reading = spawn_blocking(move || {
            let mut packer = Packer::of(&message)?;
            packer.skip(skipped)?;
            read_block(packer, vec![0; block], bytes <= block as u64)
        });
        FileSource {
            block: vec![0; block],
            used: block,
            last: block,
            reading,
            first: None,
            left: bytes,
            length,
            flit_bytes,
        }
    }

    async fn opened(&mut self) {
        if self.first.is_none() {
            let read = (&mut self.reading).await;
            self.first = Some(joined(read));
        }
    }

    async fn next(&mut self, len: usize, waited_ns: &mut u64) -> Result<&[u8], PayloadError> {
        if self.used == self.block.len() {
            let (packer, full) = match self.first.take() {
                Some(first) => first?,
                None => waited(&mut self.reading, waited_ns).await?,
            };
            let mut spare = std::mem::replace(&mut self.block, full);
            self.used = 0;
            self.left = self.left.saturating_sub(self.block.len() as u64);
            if self.left > 0 {
                spare.resize(in_flits(self.length.next(), self.flit_bytes), 0);
                let last = self.left <= spare.len() as u64;
                self.reading = spawn_blocking(move || read_block(packer, spare, last));
            }
        }
        self.last = self.used;
        self.used += len;
        Ok(&self.block[self.last..self.used])
    }
}

fn read_block(mut packer: Packer, mut block: Vec<u8>, last: bool) -> Read {
    let filled = packer.fill(&mut block)?;
    block.truncate(filled);
    if last {
        // Reading beyond the end detects a file that has grown.
        packer.fill(&mut [0])?;
    }
    Ok((packer, block))
}

/// Destination of the bytes of an incoming message.
pub enum Sink {
    /// Comparison with the synthetic pattern.
    Synthetic(Synthetic),
    Files(FileSink),
}

impl Sink {
    /// Writes the next bytes; returns whether they match the pattern of a synthetic message. Adds
    /// the time of waiting for files to `waited_ns`.
    pub async fn write(&mut self, bytes: &[u8], waited_ns: &mut u64) -> Result<bool, PayloadError> {
        match self {
            Sink::Synthetic(message) => Ok(message.next(bytes.len()) == bytes),
            Sink::Files(files) => files.write(bytes, waited_ns).await.map(|()| true),
        }
    }
}

/// The folder of an output, which the first message to arrive creates durably for all of them.
#[derive(Clone, Debug, Default)]
pub struct OutputFolder(Arc<OnceLock<()>>);

impl OutputFolder {
    /// Creates the folder durably, unless that was done.
    fn make(&self, folder: &Path) -> io::Result<()> {
        if self.0.get().is_none() {
            create_durable(folder)?;
            self.0.get_or_init(|| ());
        }
        Ok(())
    }
}

/// The task that writes a block, and returns the empty buffer.
type Writing = JoinHandle<Result<(Unpacker, Vec<u8>), PayloadError>>;

/// A message that is written to files, one block behind.
pub struct FileSink {
    block: Vec<u8>,
    length: BlockLength,
    writing: Writing,
}

impl FileSink {
    /// Starts to stage a message of `bytes` bytes with [`Unpacker::create`], and creates the folder of its
    /// destination.
    pub fn create(
        target: Target,
        bytes: u64,
        folder: OutputFolder,
        pulse: Arc<ActivityMonitor>,
    ) -> FileSink {
        let writing = spawn_blocking(move || {
            if let Some(output) = target.destination.parent() {
                let made = folder.make(output);
                made.map_err(PayloadError::io("create", output))?;
            }
            Ok((Unpacker::create(target, pulse)?, Vec::new()))
        });
        FileSink {
            block: Vec::new(),
            length: BlockLength::of(bytes),
            writing,
        }
    }

    /// Continues a message of `bytes` bytes of which a prefix is staged.
    pub fn resume(unpacker: Unpacker, bytes: u64) -> FileSink {
        FileSink {
            block: Vec::new(),
            length: BlockLength::of(bytes),
            writing: spawn_blocking(move || Ok((unpacker, Vec::new()))),
        }
    }

    async fn write(&mut self, bytes: &[u8], waited_ns: &mut u64) -> Result<(), PayloadError> {
        if self.block.len() + bytes.len() > self.length.bytes && !self.block.is_empty() {
            self.length.next();
            let (mut unpacker, empty) = waited(&mut self.writing, waited_ns).await?;
            let mut full = std::mem::replace(&mut self.block, empty);
            self.writing = spawn_blocking(move || {
                unpacker.write(&full)?;
                full.clear();
                Ok((unpacker, full))
            });
        }
        self.block.extend_from_slice(bytes);
        Ok(())
    }

    /// Makes a complete message durable and visible, and returns the digest of what was written.
    /// The caller has checked the digest of what has arrived.
    pub async fn commit(self) -> Result<Digest, PayloadError> {
        let (mut unpacker, _) = joined(self.writing.await)?;
        let rest = self.block;
        let committed = spawn_blocking(move || {
            unpacker.write(&rest)?;
            unpacker.commit()
        });
        joined(committed.await)
    }
}

/// Returns the destination of a delivery in an output of these files: `p3`, or `p5/p2` for the message
/// of P2 at P5, each by its name if it has one. If PEs are `apart`, the output of P5 takes the place
/// of `p5`.
pub fn delivered_at(output: &Path, delivery: DeliveryName, files: &FilePayload) -> PathBuf {
    let entry = match files.apart {
        true => output.to_owned(),
        false => output_entry(output, delivery.row, &files.output_names),
    };
    match delivery.source {
        None => entry,
        Some(source) => output_entry(&entry, source, &files.output_names),
    }
}

/// Returns the reason why a message cannot be staged beside its destination, if that path is too long
/// or has no name. Entries in a message are created relative to its folder and need no check.
pub fn output_fault(destination: PathBuf) -> Option<String> {
    let target = Target {
        destination,
        is_kept: true,
        ..Target::default()
    };
    match Staging::beside(target) {
        Ok(staged) if staged.path().as_os_str().len() <= PATH_BYTES_MAX => None,
        Ok(_) => Some(format!(
            "with what is staged in it, its path is longer than {PATH_BYTES_MAX} bytes; \
             choose a shorter one"
        )),
        Err(fault) => Some(fault.to_string()),
    }
}

/// Waits for a blocking task, and adds the time of waiting to `waited_ns`.
async fn waited<T>(task: &mut JoinHandle<T>, waited_ns: &mut u64) -> T {
    if task.is_finished() {
        return joined(task.await);
    }
    let began = clock::now();
    let result = task.await;
    *waited_ns += clock::now().0 - began.0;
    joined(result)
}
