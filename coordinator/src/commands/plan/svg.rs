//! The space-time diagram of a plan: a row for each PE, a column for each step, or a time axis.
//!
//! The picture is SVG without fonts and scripts, with colours for light and dark backgrounds, and the
//! same plan always gives the same bytes.

mod bands;
mod canvas;
mod control;
mod crossings;
mod frame;
mod layout;
mod places;
mod scene;
mod sheet;

pub use bands::{Band, Crossings, MAX_BANDS, SETUP};
pub use scene::{MAX_PES, Scene};
pub use sheet::{Axis, Moment, Sheet};

#[cfg(test)]
mod tests;
