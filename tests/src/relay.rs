//! A relay between two PEs that forwards frames, or changes them.

use std::io::Write as _;
use std::thread;

use crate::edge::{Edge, is_flit};

type OnWire = dyn FnMut(bool, &mut Vec<u8>) -> bool + Send;

/// The changes of a relay to frames to the parent.
pub enum OnUp {
    /// Sends every frame twice, in both directions.
    Twice,
    /// Returns the frames to send instead of a frame; each gets a seal afterwards.
    Frames(Box<dyn FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send>),
    /// Changes the sealed bytes of a frame, if it is a flit or if it is not, and returns whether anything is
    /// sent after them.
    Wire(Box<OnWire>),
}

impl OnUp {
    /// Changes one flit or control item on the wire, after `skip` of that kind; `change` returns whether
    /// anything is sent after it.
    pub fn one_frame(
        flit: bool,
        mut skip: u32,
        change: impl FnOnce(&mut Vec<u8>) -> bool + Send + 'static,
    ) -> OnUp {
        let mut change = Some(change);
        OnUp::Wire(Box::new(move |is_flit, bytes| {
            if is_flit != flit {
                return true;
            }
            let change = change.take_if(|_| skip == 0);
            skip = skip.saturating_sub(1);
            change.is_none_or(|change| change(bytes))
        }))
    }
}

/// Forwards frames between parent and child in both directions until one of them ends. `on_up`
/// changes the frames to the parent.
pub fn relay(parent: Edge, child: Edge, mut on_up: OnUp) {
    let (mut from_parent, mut to_parent) = (parent.incoming, parent.outgoing);
    let (mut from_child, mut to_child) = (child.incoming, child.outgoing);
    let copies = if matches!(on_up, OnUp::Twice) { 2 } else { 1 };
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
            let frames = match &mut on_up {
                OnUp::Frames(change) => change(frame),
                OnUp::Twice | OnUp::Wire(_) => vec![frame],
            };
            let sealed = frames.iter().map(|frame| to_parent.sealed(frame));
            let mut bytes = sealed.collect::<Vec<_>>().concat().repeat(copies);
            let continues = match &mut on_up {
                OnUp::Wire(change) => change(is_flit, &mut bytes),
                OnUp::Twice | OnUp::Frames(_) => true,
            };
            if to_parent.stream.write_all(&bytes).is_err() || !continues {
                break;
            }
        }
        to_parent.end();
    });
}
