//! What a command does and when, as spans for OpenTelemetry: the command; below it a run for
//! each cluster; below that launching, connecting, measuring the edges, preparing, every round
//! with its messages, and stopping. It hears what `live` hears (`event`), and tells only a
//! collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. The hot path knows nothing of it.
//!
//! All of it is built only with the feature `otel`.
//!
//! Times are the coordinator's. A PE's own are counted from P0's start, by the clocks as they
//! were compared, and P0's start is put where the round was triggered: a message's span is as
//! long as it was, and early by the trigger's way to P0.

mod export;
mod spans;

pub use spans::NOW;
