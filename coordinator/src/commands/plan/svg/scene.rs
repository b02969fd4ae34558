//! A picture of any plan: its sheet, and what is drawn on it.

use flitcast_plan::algorithms::plan::Plan;

use super::crossings::Crossings;
use super::layout::Layout;
use super::sheet::Sheet;
use super::{frame, messages};

/// Limit of PEs in a readable picture: with more, a row is thinner than half a pixel, and the paths of
/// the bands take long to compute (n^2 on a path).
pub const MAX_PES: usize = 4096;

/// The content of a picture. It is meant for up to [`MAX_PES`] PEs.
pub struct Scene<'a> {
    /// The parts around the bands.
    pub sheet: Sheet,
    pub drawing: Drawing<'a>,
}

/// The messages or crossings that a picture shows.
pub enum Drawing<'a> {
    /// Messages between P0 and each PE that do not wait on their way, and control items.
    Messages(&'a Plan),
    Crossings(Crossings),
}

impl Scene<'_> {
    /// Draws the picture.
    pub fn svg(mut self) -> String {
        let sheet = &self.sheet;
        let (legend, head, is_crowded) = match &mut self.drawing {
            Drawing::Messages(plan) => (messages::legend(plan), 0.0, false),
            Drawing::Crossings(crossings) => {
                crossings.merge();
                let is_crowded = crossings.is_crowded(sheet);
                (crossings.legend(is_crowded), crossings.head(), is_crowded)
            }
        };
        let layout = Layout::new(sheet, frame::HEAD + head, is_crowded);
        let mut canvas = frame::canvas(sheet, &legend, &layout);
        match &self.drawing {
            Drawing::Messages(plan) => messages::draw(&mut canvas, &layout, sheet, plan),
            Drawing::Crossings(crossings) => crossings.draw(&mut canvas, &layout, sheet),
        }
        frame::legend(&mut canvas, &layout, &legend);
        canvas.finish()
    }
}
