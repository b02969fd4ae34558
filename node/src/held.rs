//! Messages for other PEs that a PE stores until it has sent them on, frame by frame: in memory up to a
//! limit, and beyond it in a file without a name, which disappears with the process.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::MessageId;
use flitcast_proto::ops::HELD_IN_MEMORY;
use tokio::task::spawn_blocking;

use crate::runtime::joined;

#[derive(Debug, Default)]
pub struct HeldMessages {
    messages: BTreeMap<MessageId, Frames>,
    /// Bytes of frames in memory.
    in_memory: usize,
    /// Memory of former frames: allocating new memory takes longer than filling it.
    spare: Vec<Vec<u8>>,
    file: Option<Arc<File>>,
    /// The written length of the file, and the number of frames in it.
    file_bytes: u64,
    in_file: usize,
}

/// The stored frames of a message.
#[derive(Debug, Default)]
struct Frames {
    /// The number of received frames, and the index before which none is needed any more.
    received: u64,
    discarded: u64,
    /// The frames from that index on.
    rest: VecDeque<Frame>,
}

/// The body of a frame.
#[derive(Debug)]
enum Frame {
    InMemory(Vec<u8>),
    InFile { at: u64, len: usize },
}

impl HeldMessages {
    /// Has memory ready for two frames, as many as a PE stores at once in most rounds.
    pub fn reserve(&mut self, frame_bytes: usize) {
        while self.spare.len() < 2 {
            let mut frame = vec![u8::MAX; frame_bytes];
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// Stores a frame as the next one of a message. If the memory limit is reached, the frame goes into
    /// a file in `folder`.
    pub async fn hold(&mut self, message: MessageId, body: &[u8], folder: &Path) -> io::Result<()> {
        let frames = self.messages.entry(message).or_default();
        frames.received += 1;
        if frames.received <= frames.discarded {
            return Ok(());
        }
        let frame = if self.in_memory + body.len() <= HELD_IN_MEMORY {
            self.in_memory += body.len();
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.extend_from_slice(body);
            Frame::InMemory(frame)
        } else {
            let file = match &self.file {
                Some(file) => file.clone(),
                None => {
                    let folder = folder.to_owned();
                    let made = joined(spawn_blocking(move || nameless(folder)).await)?;
                    self.file.insert(Arc::new(made)).clone()
                }
            };
            let (at, len, body) = (self.file_bytes, body.len(), body.to_vec());
            joined(spawn_blocking(move || file.write_all_at(&body, at)).await)?;
            self.file_bytes += len as u64;
            self.in_file += 1;
            Frame::InFile { at, len }
        };
        frames.rest.push_back(frame);
        Ok(())
    }

    /// Returns whether no frame has to be read from a file.
    pub fn is_in_memory(&self) -> bool {
        self.in_file == 0
    }

    /// Returns a frame of a message by its index; `None` if it is not stored.
    pub async fn frame(&self, message: MessageId, place: u64) -> io::Result<Option<Cow<'_, [u8]>>> {
        let held = self.messages.get(&message);
        let frame = held.and_then(|frames| {
            let place = place.checked_sub(frames.discarded)?;
            frames.rest.get(place as usize)
        });
        match (frame, &self.file) {
            (Some(Frame::InMemory(body)), _) => Ok(Some(body.into())),
            (Some(&Frame::InFile { at, len }), Some(file)) => {
                let file = file.clone();
                let read = spawn_blocking(move || {
                    let mut body = vec![0; len];
                    file.read_exact_at(&mut body, at).map(|()| body)
                });
                joined(read.await).map(|body| Some(body.into()))
            }
            (Some(Frame::InFile { .. }), None) | (None, _) => Ok(None),
        }
    }

    /// Discards the frames of a message before this index, even those that have yet to arrive.
    pub fn forget_to(&mut self, message: MessageId, place: u64) {
        let Some(frames) = self.messages.get_mut(&message) else {
            return;
        };
        while frames.discarded < place {
            match frames.rest.pop_front() {
                Some(Frame::InMemory(mut body)) => {
                    self.in_memory -= body.len();
                    body.clear();
                    self.spare.push(body);
                }
                Some(Frame::InFile { .. }) => self.in_file -= 1,
                None => {
                    frames.discarded = place;
                    break;
                }
            }
            frames.discarded += 1;
        }
        if self.in_file == 0 {
            self.file_bytes = 0;
        }
    }

    pub fn forget_all(&mut self) {
        while let Some((&message, _)) = self.messages.first_key_value() {
            self.forget_to(message, u64::MAX);
            self.messages.remove(&message);
        }
        self.file = None;
    }
}

/// Creates a file in a folder that disappears with the process. It never has a name (`O_TMPFILE`), or,
/// on a file system without such files, a random name for a moment, which no other process can create
/// before.
fn nameless(folder: PathBuf) -> io::Result<File> {
    std::fs::create_dir_all(&folder)?;
    tempfile::tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_beyond_the_memory_limit_are_read_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut held = HeldMessages::default();
        let frame = |n: usize| vec![n as u8; HELD_IN_MEMORY / 4];
        let [one, other] = [MessageId(1), MessageId(2)];
        for n in 0..8 {
            let message = if n % 2 == 0 { one } else { other };
            held.hold(message, &frame(n), folder.path()).await.unwrap();
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "the file has no name");
        for place in [2, 0, 1, 3] {
            let found = held.frame(one, place).await.unwrap();
            assert!(found.as_deref() == Some(&frame(2 * place as usize)[..]));
        }
        assert!(held.frame(one, 4).await.unwrap().is_none());
        held.forget_to(one, 2);
        assert!(held.frame(one, 1).await.unwrap().is_none());
        let found = held.frame(one, 3).await.unwrap();
        assert!(found.as_deref() == Some(&frame(6)[..]));
        held.hold(one, &frame(9), folder.path()).await.unwrap();
        let three = 3 * HELD_IN_MEMORY / 4;
        assert_eq!(held.in_memory, three, "there is room again");
        let found = held.frame(one, 4).await.unwrap();
        assert!(found.as_deref() == Some(&frame(9)[..]));
        held.forget_to(one, u64::MAX);
        held.hold(one, &frame(9), folder.path()).await.unwrap();
        let unneeded = held.frame(one, 5).await.unwrap();
        assert!(unneeded.is_none());
        held.forget_to(other, 4);
        assert_eq!((held.in_memory, held.file_bytes), (0, 0));
    }
}
