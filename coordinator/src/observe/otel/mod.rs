//! What a command does and when, as spans for OpenTelemetry: the command; below it a run for
//! each cluster; below that launching, connecting, measuring the edges, preparing, every round
//! with its messages, and stopping. It is told by who conducts, beside `live`, and only to a
//! collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names. The hot path knows nothing of it.
//!
//! All of it is built only with the feature `otel`; without, [`NOW`] takes the same words and
//! does nothing with them, so nobody else has to ask.
//!
//! Times are the coordinator's. A PE's own are counted from P0's start, by the clocks as they
//! were compared, and P0's start is put where the round was triggered: a message's span is as
//! long as it was, and early by the trigger's way to P0.

#[cfg(feature = "otel")]
mod export;
#[cfg(not(feature = "otel"))]
mod off;
#[cfg(feature = "otel")]
mod spans;

#[cfg(not(feature = "otel"))]
pub use off::NOW;
#[cfg(feature = "otel")]
pub use spans::NOW;
