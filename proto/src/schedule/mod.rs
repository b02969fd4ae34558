//! Who sends which message when: pure arithmetic over a tree and its message
//! lengths, in flits and steps. The PE state machine, the predictor and the
//! closed forms that tests hold them against all read it from here.
//!
//! Everywhere in this module `flits[i]` is L_i, the flits of message M_i, and
//! `flits[0]` is 0: P0 has no message. Steps are counted as in ARCHITECTURE.md,
//! "Steps": 1, 2, 3, ..; a flit sent in step t is received in step t, and the
//! time of an operation is the last step in which a flit reaches its destination.

pub mod certification;
pub mod scatter;
pub mod shoulder_tap;

/// The flits of a message of `bytes` bytes; a null message has none.
pub fn flits_of(bytes: u64, flit_bytes: u32) -> u64 {
    bytes.div_ceil(u64::from(flit_bytes))
}
