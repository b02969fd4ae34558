//! Bands of a picture, as long as it is readable.

use flitcast_proto::PeId;

use super::error::PlanError;
use super::svg::crossings::{Band, MAX_BANDS};

/// Adds a band, as long as the picture is still readable.
pub fn add(bands: &mut Vec<Band>, band: Band) -> Result<(), PlanError> {
    if bands.len() == MAX_BANDS {
        return Err(PlanError::TooMuchToDraw);
    }
    bands.push(band);
    Ok(())
}

/// Creates the band of a set-up: the sender is busy, and nothing arrives yet.
pub fn setup(from: PeId, to: PeId, span: [f64; 2]) -> Band {
    Band {
        class: None,
        name: String::new(),
        from,
        to,
        out: span,
        into: [span[1]; 2],
    }
}
