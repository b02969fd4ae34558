//! The space-time diagram of a plan: a row for each PE, a column for each step, or a time axis.
//!
//! The picture is SVG without fonts and scripts, with colours for light and dark backgrounds, and the
//! same plan always gives the same bytes.

pub mod bands;
mod canvas;
mod control;
mod crossings;
mod frame;
mod layout;
mod places;
pub mod scene;
pub mod sheet;

#[cfg(test)]
mod tests;
