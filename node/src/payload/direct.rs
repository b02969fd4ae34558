//! Writing of long files without the page cache (`O_DIRECT`).
//!
//! A write to the page cache costs a new page and a copy for each 4 KiB, and the sync at the end waits until
//! the disk has them; with several long files at once, that is more processor time than all else. A direct
//! write is a transfer from the writer's memory to the disk. The kernel takes whole blocks of the file from
//! aligned memory, so the bytes are collected in two buffers: a thread writes one while the other is filled.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Block size of most file systems, in bytes: of what is written directly, and of holes.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Writer of a file that is open for direct writes.
#[derive(Debug)]
pub(super) struct DirectWriter {
    filling: Buffer,
    /// The thread, and the buffers on the way to it and back. It ends when there is no sender, or after an
    /// error.
    thread: Option<JoinHandle<()>>,
    full: Option<SyncSender<Buffer>>,
    written: Receiver<io::Result<Buffer>>,
}

impl DirectWriter {
    /// Creates the writer of an empty file with buffers of `bytes` bytes, a multiple of [`BLOCK_BYTES`].
    /// Fails if the file system has no direct writes.
    pub fn new(file: &File, bytes: usize) -> io::Result<DirectWriter> {
        let of_thread = file.try_clone()?;
        let (full, to_write) = sync_channel::<Buffer>(1);
        let (done, written) = sync_channel(2);
        // The second buffer waits as if it had been written.
        let _ = done.send(Ok(Buffer::new(bytes)));
        let write = move || {
            for mut buffer in to_write {
                let result = buffer.write(&of_thread);
                let is_written = result.is_ok();
                let _ = done.send(result.map(|()| buffer));
                if !is_written {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("direct writer".into());
        let thread = thread.spawn(write)?;
        set_direct(file, true)?;
        Ok(DirectWriter {
            filling: Buffer::new(bytes),
            thread: Some(thread),
            full: Some(full),
            written,
        })
    }

    /// Writes bytes at an offset behind all that were written before; between them, the file reads as
    /// zeros. An error may be that of an earlier call.
    pub fn write(&mut self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            if !self.filling.takes(offset) {
                self.write_out()?;
                self.filling.begin = offset - offset % BLOCK_BYTES;
            }
            let taken = self.filling.fill(bytes, offset);
            bytes = &bytes[taken..];
            offset += taken as u64;
        }
        Ok(())
    }

    /// Returns when all bytes are in `file`, which is as it was before the writer.
    pub fn finish(mut self, file: &File) -> io::Result<()> {
        self.write_out()?;
        self.written_buffer()?;
        set_direct(file, false)
    }

    fn write_out(&mut self) -> io::Result<()> {
        let empty = self.written_buffer()?;
        let full = std::mem::replace(&mut self.filling, empty);
        let sent = self.full.as_ref().map(|thread| thread.send(full));
        sent.and_then(Result::ok).ok_or_else(thread_ended)
    }

    /// Waits until the thread has written its buffer, and returns that.
    fn written_buffer(&mut self) -> io::Result<Buffer> {
        self.written.recv().map_err(|_| thread_ended())?
    }
}

impl Drop for DirectWriter {
    /// Waits for the thread: a later write to the file must not be followed by one of it.
    fn drop(&mut self) {
        drop(self.full.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn thread_ended() -> io::Error {
    io::Error::other("an earlier block of the file was not written")
}

fn set_direct(file: &File, is_direct: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, is_direct);
    Ok(fcntl_setfl(file, flags)?)
}

/// Consecutive bytes of the file, in aligned memory.
#[derive(Debug)]
struct Buffer {
    memory: Vec<u8>,
    /// Index of the first aligned byte of `memory`.
    aligned: usize,
    /// Offset of the first byte in the file, a multiple of [`BLOCK_BYTES`], and the number of bytes.
    begin: u64,
    filled: usize,
}

impl Buffer {
    fn new(bytes: usize) -> Buffer {
        let memory = vec![0; bytes + BLOCK_BYTES as usize];
        Buffer {
            aligned: memory.as_ptr().align_offset(BLOCK_BYTES as usize),
            memory,
            begin: 0,
            filled: 0,
        }
    }

    fn bytes(&self) -> usize {
        self.memory.len() - BLOCK_BYTES as usize
    }

    /// Returns whether the byte at this offset belongs to the buffer: it has room, and no whole block
    /// would be zeros.
    fn takes(&self, offset: u64) -> bool {
        let end = self.begin + self.filled as u64;
        self.filled < self.bytes() && offset < end + (BLOCK_BYTES - end % BLOCK_BYTES)
    }

    /// Adds bytes at an offset that the buffer [takes](Self::takes), with zeros before them; returns how
    /// many it has room for.
    fn fill(&mut self, bytes: &[u8], offset: u64) -> usize {
        let room = self.bytes();
        let memory = &mut self.memory[self.aligned..][..room];
        let at = (offset - self.begin) as usize;
        memory[self.filled..at].fill(0);
        let taken = bytes.len().min(room - at);
        memory[at..at + taken].copy_from_slice(&bytes[..taken]);
        self.filled = at + taken;
        taken
    }

    /// Writes the buffer to the file, and empties it.
    fn write(&mut self, file: &File) -> io::Result<()> {
        let bytes = &self.memory[self.aligned..][..self.filled];
        let (blocks, rest) = bytes.split_at(self.filled - self.filled % BLOCK_BYTES as usize);
        if let Err(error) = file.write_all_at(blocks, self.begin) {
            if error.kind() != io::ErrorKind::InvalidInput {
                return Err(error);
            }
            // The disk has longer blocks than most.
            set_direct(file, false)?;
            file.write_all_at(blocks, self.begin)?;
        }
        // A part of a block is written by way of the page cache.
        if !rest.is_empty() {
            set_direct(file, false)?;
            file.write_all_at(rest, self.begin + blocks.len() as u64)?;
            set_direct(file, true)?;
        }
        self.begin += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a write is that of a later call, and no call waits forever.
    #[test]
    fn an_error_of_the_thread_ends_the_writer() -> io::Result<()> {
        let read_only = File::open(std::env::current_exe()?)?;
        let Ok(mut writer) = DirectWriter::new(&read_only, 4096) else {
            return Ok(());
        };
        let blocks = (0..4).map(|block| writer.write(&[1; 4096], block * 4096));
        assert!(blocks.collect::<io::Result<()>>().is_err());
        assert!(writer.finish(&read_only).is_err());
        Ok(())
    }

    /// A disk with longer blocks refuses direct writes, as this one does from memory that is not aligned.
    #[test]
    fn where_a_direct_write_is_refused_the_page_cache_is_used() -> io::Result<()> {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR"))?;
        let mut writer = DirectWriter::new(&file, 8192)?;
        writer.filling.aligned = 1;
        let content: Vec<u8> = (0..20_000u32).map(|place| place as u8).collect();
        writer.write(&content, 0)?;
        writer.finish(&file)?;
        let mut read = vec![0; content.len()];
        file.read_exact_at(&mut read, 0)?;
        assert_eq!(read, content);
        Ok(())
    }
}
