//! How a command that runs is seen from outside: on the terminal, by `flitcast watch`, in
//! metrics and traces.

pub mod console;
pub mod live;
pub mod metrics;
pub mod otel;
pub mod phase;
