//! The times that PEs compute in a round, from the message lengths that they have received; planners
//! use the same functions.
//!
//! Everywhere in this module `flits[i]` is L_i, the flits of message M_i, and `flits[0]` is 0: P0 has
//! no message. Steps are counted as in ARCHITECTURE.md, "Steps": 1, 2, 3, ..; a flit sent in step t is
//! received in step t, and the time of an operation is the last step in which a flit reaches its
//! destination.

pub mod certification;
pub mod pace;
pub mod shoulder_tap;

/// Returns the number of flits of a message of `bytes` bytes; a null message has none.
pub fn flits_of(bytes: u64, flit_bytes: u32) -> u64 {
    bytes.div_ceil(u64::from(flit_bytes))
}
