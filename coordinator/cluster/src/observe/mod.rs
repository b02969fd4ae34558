//! Views of a running command from outside: on the terminal, by `flitcast watch`, in metrics and in
//! traces.

pub mod console;
pub mod emit;
pub mod event;
pub mod live;
pub mod metrics;
#[cfg(feature = "otel")]
mod otel;
pub mod phase;
