//! Bands of a picture: one that would be too crowded to see anything is an error.

use anyhow::ensure;
use flitcast_proto::PeId;

use super::svg::crossings::{Band, MAX_BANDS};

/// The bands of a picture.
#[derive(Default)]
pub struct Bands(pub Vec<Band>);

impl Bands {
    /// Adds a band from one PE to another, with its begin and end at both.
    pub fn add(
        &mut self,
        (class, name): (usize, String),
        [from, to]: [PeId; 2],
        [out, into]: [[f64; 2]; 2],
    ) -> anyhow::Result<()> {
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
    pub fn add_setup(&mut self, [from, to]: [PeId; 2], span: [f64; 2]) -> anyhow::Result<()> {
        self.push(Band {
            class: None,
            name: String::new(),
            from,
            to,
            out: span,
            into: [span[1]; 2],
        })
    }

    fn push(&mut self, band: Band) -> anyhow::Result<()> {
        ensure!(
            self.0.len() < MAX_BANDS,
            "a drawing of more than {MAX_BANDS} crossings shows nothing: use --summary or \
             --format json"
        );
        self.0.push(band);
        Ok(())
    }
}
