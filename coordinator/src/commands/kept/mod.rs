//! `flitcast up`, `status` and `down` for running clusters, and `flitcast keep`, their daemon. They
//! are one module because each shows or ends what another has started.

mod down;
mod keeper;
mod status;
mod up;

pub use down::{DownArgs, down};
pub use keeper::{KeepArgs, keep};
pub use status::{StatusArgs, status};
pub use up::{UpArgs, up};
