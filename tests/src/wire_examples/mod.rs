//! All messages of the protocol, in which no field has its default. The tests of
//! compatibility encode and parse them, and fuzzing starts from them.

mod edge;
mod from_pe;
mod parts;
mod to_pe;

pub use edge::{edge_frames, hello};
pub use from_pe::from_pe;
pub use parts::register;
pub use to_pe::{assignment, to_pe};

/// Returns the frame that `put` appends.
pub fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    put(&mut frame);
    frame
}
