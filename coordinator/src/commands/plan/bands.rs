//! Bands of a picture, as long as it is readable.

use flitcast_proto::PeId;

use super::error::PlanError;
use super::svg::crossings::{Band, MAX_BANDS};

/// The bands of a picture.
#[derive(Default)]
pub struct Bands(pub Vec<Band>);

impl Bands {
    /// Adds a band from one PE to another, with its begin and end at both.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture would be too crowded to see anything.
    pub fn add(
        &mut self,
        (class, name): (usize, String),
        [from, to]: [PeId; 2],
        [out, into]: [[f64; 2]; 2],
    ) -> Result<(), PlanError> {
        let class = Some(class);
        self.push(Band {
            class,
            name,
            from,
            to,
            out,
            into,
        })
    }

    /// Adds the band of a set-up: the sender is busy, and nothing arrives yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture would be too crowded to see anything.
    pub fn add_setup(&mut self, [from, to]: [PeId; 2], span: [f64; 2]) -> Result<(), PlanError> {
        self.push(Band {
            class: None,
            name: String::new(),
            from,
            to,
            out: span,
            into: [span[1]; 2],
        })
    }

    fn push(&mut self, band: Band) -> Result<(), PlanError> {
        if self.0.len() == MAX_BANDS {
            return Err(PlanError::TooMuchToDraw);
        }
        self.0.push(band);
        Ok(())
    }
}
