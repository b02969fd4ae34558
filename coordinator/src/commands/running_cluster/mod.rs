//! `flitcast up`, `status` and `down` for running clusters, and `flitcast keep`, their daemon. They
//! are one module because each shows or ends what another has started.

mod daemon;
mod status;
mod up;

pub use daemon::{KeepArgs, keep};
pub use status::{StatusArgs, status};
pub use up::{DownArgs, UpArgs, down, up};
