//! `flitcast up`, `status` and `down` for running clusters, and `flitcast keep`, their daemon. They
//! are one module because each shows or ends what another has started.

mod daemon;
mod down;
mod status;
mod up;

pub use daemon::{KeepArgs, keep};
pub use down::{DownArgs, down};
pub use status::{StatusArgs, status};
pub use up::{UpArgs, up};
