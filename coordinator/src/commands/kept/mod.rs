//! `flitcast up`, `status` and `down`: clusters that are kept; and `flitcast keep`, the process
//! that does so. One subject: each shows or ends what another has begun.

mod down;
mod keeper;
mod status;
mod up;

pub use down::{DownArgs, down};
pub use keeper::{KeepArgs, keep};
pub use status::{StatusArgs, status};
pub use up::{UpArgs, up};
