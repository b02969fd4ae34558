//! OpenTelemetry spans of a command: the command; below it a run for each cluster; below that
//! launching, connecting, measuring the edges, preparing, every round with its messages, and
//! stopping. The spans are made from the events that `live` receives (`event`) and are sent only to
//! the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. The hot path has no code for it.
//!
//! The module is built only with the feature `otel`.
//!
//! Times are the coordinator's. Times of a PE are converted to P0's start by the measured clock
//! offsets, and P0's start is placed at the trigger of the round. So a message's span has its true
//! length, but begins too early by the time that the trigger takes to reach P0.

mod export;
mod spans;

pub use spans::NOW;
