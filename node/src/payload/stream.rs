//! Messages as the round reads and writes them: one flit at a time, the disk a
//! block ahead or behind on another thread.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use flitcast_proto::{DeliveryName, PeId};
use tokio::task::{JoinHandle, spawn_blocking};

use super::entry::PATH_BYTES_MAX;
use super::staging::Staging;
use super::synthetic::Synthetic;
use super::{Content, Packer, PayloadError, Unpacker, create_durable};
use crate::blocking::joined;
use crate::limits::DISK_BLOCK_BYTES;
use crate::pulse::Pulse;
use crate::system::clock;

/// Where the bytes of an outgoing message come from.
pub enum Source {
    /// Out of the pattern.
    Synthetic(Synthetic),
    /// From files.
    Files(Box<FileSource>),
}

impl Source {
    /// The next `len` bytes of the message, `len` a whole flit or what is left. Adds to
    /// `waited_ns` for how long files were waited for.
    pub async fn next(&mut self, len: usize, waited_ns: &mut u64) -> Result<&[u8], PayloadError> {
        match self {
            Source::Synthetic(message) => Ok(message.next(len)),
            Source::Files(files) => files.next(len, waited_ns).await,
        }
    }

    /// What [`Source::next`] has given last.
    pub fn last(&self) -> &[u8] {
        match self {
            Source::Synthetic(message) => message.last(),
            Source::Files(files) => &files.block[files.last..files.used],
        }
    }

    /// Waits until its first bytes are here.
    pub async fn opened(&mut self) {
        if let Source::Files(files) = self {
            files.opened().await;
        }
    }
}

/// A block that is being read, and who reads it.
type Reading = JoinHandle<Read>;
type Read = Result<(Packer, Vec<u8>), PayloadError>;

/// A message made of files, read one block ahead.
pub struct FileSource {
    /// The block in use, how much of it is, and from where on that was given last.
    block: Vec<u8>,
    used: usize,
    last: usize,
    reading: Reading,
    /// The first block, if it was waited for before its turn.
    first: Option<Read>,
    left: u64,
}

impl FileSource {
    /// Starts to read `content`, which was measured to have `bytes` bytes.
    pub fn open(content: Content, bytes: u64, flit_bytes: u32) -> FileSource {
        // Whole flits, so that each one lies in one block.
        let flit = flit_bytes as usize;
        let block = (DISK_BLOCK_BYTES / flit).max(1) * flit;
        let reading = spawn_blocking(move || {
            let packer = Packer::open(&content, bytes)?;
            read_block(packer, vec![0; block], bytes <= block as u64)
        });
        FileSource {
            block: vec![0; block],
            used: block,
            last: block,
            reading,
            first: None,
            left: bytes,
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
            let spare = std::mem::replace(&mut self.block, full);
            self.used = 0;
            self.left = self.left.saturating_sub(self.block.len() as u64);
            if self.left > 0 {
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
        // Past the end there is nothing; a file that has grown is noticed there.
        packer.fill(&mut [0])?;
    }
    Ok((packer, block))
}

/// Where the bytes of an incoming message go.
pub enum Sink {
    /// Compared with the pattern.
    Synthetic(Synthetic),
    /// Into files.
    Files(FileSink),
}

impl Sink {
    /// Takes the next bytes; whether they are what they have to be, as far as
    /// that can be told without the digest. Adds to `waited_ns` for how long files were
    /// waited for.
    pub async fn write(&mut self, bytes: &[u8], waited_ns: &mut u64) -> Result<bool, PayloadError> {
        match self {
            Sink::Synthetic(message) => Ok(message.next(bytes.len()) == bytes),
            Sink::Files(files) => files.write(bytes, waited_ns).await.map(|()| true),
        }
    }
}

/// The folder of an output, which the first message that comes makes durable for all of them.
#[derive(Clone, Debug, Default)]
pub struct OutputFolder(Arc<OnceLock<()>>);

impl OutputFolder {
    /// Makes it, unless that was done.
    fn make(&self, folder: &Path) -> io::Result<()> {
        if self.0.get().is_none() {
            create_durable(folder)?;
            self.0.get_or_init(|| ());
        }
        Ok(())
    }
}

/// Blocks that are being written, and by whom.
type Writing = JoinHandle<Result<(Unpacker, Vec<u8>), PayloadError>>;

/// A message that becomes files, written one block behind.
pub struct FileSink {
    block: Vec<u8>,
    writing: Writing,
}

impl FileSink {
    /// Starts to stage a message for `destination`, as [`Unpacker::create`] does, in its folder.
    pub fn create(
        destination: PathBuf,
        folder: OutputFolder,
        replace: bool,
        nonce: u64,
        undertaking: u64,
        pulse: Arc<Pulse>,
    ) -> FileSink {
        let writing = spawn_blocking(move || {
            if let Some(output) = destination.parent() {
                let made = folder.make(output);
                made.map_err(PayloadError::io("create", output))?;
            }
            let unpacker = Unpacker::create(destination, replace, nonce, undertaking, pulse)?;
            Ok((unpacker, Vec::new()))
        });
        FileSink {
            block: Vec::new(),
            writing,
        }
    }

    async fn write(&mut self, bytes: &[u8], waited_ns: &mut u64) -> Result<(), PayloadError> {
        if self.block.len() + bytes.len() > DISK_BLOCK_BYTES && !self.block.is_empty() {
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

    /// The message is whole and its digest matched: makes it durable and visible.
    pub async fn commit(self) -> Result<(), PayloadError> {
        let (mut unpacker, _) = joined(self.writing.await)?;
        let rest = self.block;
        let committed = spawn_blocking(move || {
            unpacker.write(&rest)?;
            unpacker.commit()
        });
        joined(committed.await)
    }
}

/// A file sink's destination for the message of a PE, or for a PE.
pub fn destination(output: &Path, pe: PeId) -> PathBuf {
    output.join(format!("p{}", pe.0))
}

/// A file sink's destination for a delivery: `p3` in the output, or `p5/p2` for P2's at P5. Where
/// PEs are `apart`, what would be `p5` is P5's output itself.
pub fn delivered_at(output: &Path, delivery: DeliveryName, apart: bool) -> PathBuf {
    let entry = match apart {
        true => output.to_owned(),
        false => destination(output, delivery.row),
    };
    match delivery.source {
        None => entry,
        Some(source) => destination(&entry, source),
    }
}

/// Why messages up to that of `last` cannot be staged in `output`, as far as its path tells.
/// What is in a message needs no path from there; it is the message itself that does.
pub fn output_fault(output: &Path, last: PeId) -> Option<String> {
    match Staging::beside(destination(output, last), 0, 0) {
        Ok(staged) if staged.path().as_os_str().len() <= PATH_BYTES_MAX => None,
        Ok(_) => Some(format!(
            "with what is staged in it, its path is longer than {PATH_BYTES_MAX} bytes; \
             choose a shorter one"
        )),
        Err(fault) => Some(fault.to_string()),
    }
}

/// What a blocking task returned; adds for how long it was waited for.
async fn waited<T>(task: &mut JoinHandle<T>, waited_ns: &mut u64) -> T {
    if task.is_finished() {
        return joined(task.await);
    }
    let began = clock::now();
    let result = task.await;
    *waited_ns += clock::now().0 - began.0;
    joined(result)
}
