//! Bands over the edges of a tree or network, in any order.

use anyhow::ensure;
use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::PeId;

use super::sheet::Moment;

/// Limit of bands in a readable picture: 2 MB.
pub const MAX_BANDS: usize = 20_000;

/// Bands over the edges of a tree or network, and what they mean.
#[derive(Default)]
pub struct Crossings {
    /// The successive phases, each by its end.
    pub phases: Vec<Moment>,
    /// Whether a PE receives from several neighbours at once.
    pub is_multi_port: bool,
    pub classes: Vec<String>,
    /// The legend of a band.
    pub what: &'static str,
    pub bands: Vec<Band>,
    /// Whether a band also has a bar where it is sent first.
    pub has_sources: bool,
    /// Control items that cross in steps.
    pub control: Vec<ControlPlan>,
}

/// Something that crosses an edge, or several edges of a tree without a stop.
pub struct Band {
    /// The colour; `None` for the set-up of a packet.
    pub class: Option<usize>,
    pub name: String,
    pub from: PeId,
    pub to: PeId,
    /// Begin and end at the sender,
    pub out: [f64; 2],
    /// and at the receiver.
    pub into: [f64; 2],
}

impl Crossings {
    /// Adds a band from one PE to another, with its begin and end at both. That of a set-up has no class: the
    /// sender is busy, and nothing arrives yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture would be too crowded to see anything.
    pub fn add(
        &mut self,
        (class, name): (Option<usize>, String),
        [from, to]: [PeId; 2],
        [out, into]: [[f64; 2]; 2],
    ) -> anyhow::Result<()> {
        ensure!(
            self.bands.len() < MAX_BANDS,
            "a drawing of more than {MAX_BANDS} crossings shows nothing: use --summary or \
             --format json"
        );
        self.bands.push(Band {
            class,
            name,
            from,
            to,
            out,
            into,
        });
        Ok(())
    }
}

/// The band of a set-up, which has no name.
pub const SETUP: (Option<usize>, String) = (None, String::new());
