//! The space-time diagram of a plan: a row for each PE, a column for each step, or a time axis.
//!
//! The picture is SVG without fonts and scripts, with colours for light and dark backgrounds, and the
//! same plan always gives the same bytes.

mod canvas;
mod crossings;
mod frame;
mod layout;

use anyhow::ensure;
use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::{PeId, Tree};
use layout::Layout;

/// Limit of PEs in a readable picture: with more, a row is thinner than half a pixel, and the paths of
/// the bands take long to compute (n^2 on a path).
pub const MAX_PES: usize = 4096;
/// Limit of bands in a readable picture: 2 MB.
pub const MAX_BANDS: usize = 20_000;

/// The content of a picture, for up to [`MAX_PES`] PEs: bands over the edges of a tree or network, in any order,
/// what they mean, and the parts around them.
#[derive(Default)]
pub struct Scene {
    /// Operation, tree or network, and algorithm.
    pub title: String,
    /// The size of the operation.
    pub summary: String,
    pub pes: usize,
    /// The tree drawn at the side, which also sorts the rows: all crossings are over its edges.
    pub tree: Option<Tree>,
    pub axis: Axis,
    pub time: Moment,
    pub bound: Option<Moment>,
    /// A step or time that is shown, even if it is behind these two.
    pub shown: f64,
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

/// Class and name of the band of a set-up, which has neither.
pub const SETUP: (Option<usize>, String) = (None, String::new());

impl Scene {
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

    pub fn svg(mut self) -> String {
        self.merge();
        let is_crowded = self.is_crowded();
        let legend = self.legend(is_crowded);
        let layout = Layout::new(&self, is_crowded);
        let mut canvas = frame::canvas(&self, &legend, &layout);
        self.draw(&mut canvas, &layout);
        frame::legend(&mut canvas, &layout, &legend);
        canvas.finish()
    }

    /// Returns the last step or time that is shown.
    fn last(&self) -> f64 {
        let bound = self.bound.as_ref().map_or(0.0, |bound| bound.at);
        self.time.at.max(bound).max(self.shown)
    }
}

/// The unit of the horizontal axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Columns, the first for step 0.
    #[default]
    Steps,
    /// Any unit.
    Time,
}

impl Axis {
    fn name(self) -> &'static str {
        match self {
            Axis::Steps => "step",
            Axis::Time => "time",
        }
    }

    /// Returns the end of a step, or the time itself.
    pub fn behind(self, last: f64) -> f64 {
        match self {
            Axis::Steps => last + 1.0,
            Axis::Time => last,
        }
    }
}

/// A time with its text.
#[derive(Default)]
pub struct Moment {
    pub at: f64,
    /// The exact time as text.
    pub name: String,
}

impl Moment {
    pub fn new(at: f64, name: impl ToString) -> Moment {
        let name = name.to_string();
        Moment { at, name }
    }

    pub fn step(step: u64) -> Moment {
        Moment::new(step as f64, step)
    }
}

/// A line of the legend.
struct Entry {
    /// The symbol that is explained.
    icon: Icon,
    text: String,
}

/// The symbols that the legend can explain.
#[derive(Clone, Copy)]
enum Icon {
    /// A band with its bars.
    Band,
    Colour(&'static str),
    /// A control item, by its name among the definitions.
    Mark(&'static str),
}

#[cfg(test)]
mod tests;
