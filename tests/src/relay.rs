//! A relay between two PEs that forwards frames, or changes them.

use std::io::Write as _;
use std::thread;

use crate::edge::{Edge, is_flit};

/// The changes of a relay to frames to the parent.
pub trait OnUp: Send + 'static {
    /// Returns the frames to send instead of a frame; each gets a seal afterwards.
    fn on_frame(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        vec![frame]
    }

    /// Changes sealed bytes and returns whether anything is sent after them.
    fn on_wire(&mut self, _is_flit: bool, _bytes: &mut Vec<u8>) -> bool {
        true
    }

    /// Returns the number of times that each frame to the child is sent.
    fn copies_down(&self) -> usize {
        1
    }
}

/// Sends every frame twice, in both directions.
pub struct Twice;

impl OnUp for Twice {
    fn on_wire(&mut self, _is_flit: bool, bytes: &mut Vec<u8>) -> bool {
        *bytes = bytes.repeat(2);
        true
    }

    fn copies_down(&self) -> usize {
        2
    }
}

/// Changes frames before they get their seals.
pub struct Frames<F>(pub F);

impl<F: FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static> OnUp for Frames<F> {
    fn on_frame(&mut self, frame: Vec<u8>) -> Vec<Vec<u8>> {
        (self.0)(frame)
    }
}

/// Changes one frame on the wire; `change` returns whether anything is sent after it.
pub struct OneFrame<F> {
    /// Whether to change a flit or a control item.
    pub is_flit: bool,
    /// Number of frames of that kind to forward before.
    pub skip: u32,
    pub change: Option<F>,
}

impl<F: FnOnce(&mut Vec<u8>) -> bool + Send + 'static> OnUp for OneFrame<F> {
    fn on_wire(&mut self, is_flit: bool, bytes: &mut Vec<u8>) -> bool {
        if is_flit != self.is_flit {
            return true;
        }
        match self.change.take_if(|_| self.skip == 0) {
            Some(change) => change(bytes),
            None => {
                self.skip = self.skip.saturating_sub(1);
                true
            }
        }
    }
}

/// Forwards frames between parent and child in both directions until one of them ends. `on_up`
/// changes the frames to the parent.
pub fn relay(parent: Edge, child: Edge, mut on_up: impl OnUp) {
    let (mut from_parent, mut to_parent) = (parent.incoming, parent.outgoing);
    let (mut from_child, mut to_child) = (child.incoming, child.outgoing);
    let copies = on_up.copies_down();
    thread::spawn(move || {
        while let Ok(frame) = from_parent.frame() {
            let sealed = to_child.sealed(&frame).repeat(copies);
            if to_child.stream.write_all(&sealed).is_err() {
                break;
            }
        }
        to_child.end();
    });
    thread::spawn(move || {
        while let Ok(frame) = from_child.frame() {
            let is_flit = is_flit(&frame);
            let frames = on_up.on_frame(frame);
            let sealed = frames.iter().map(|frame| to_parent.sealed(frame));
            let mut bytes = sealed.collect::<Vec<_>>().concat();
            let continues = on_up.on_wire(is_flit, &mut bytes);
            if to_parent.stream.write_all(&bytes).is_err() || !continues {
                break;
            }
        }
        to_parent.end();
    });
}
