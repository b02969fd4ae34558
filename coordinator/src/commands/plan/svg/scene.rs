//! A picture of any plan: its sheet, and what is drawn on it.

use super::bands::Crossings;
use super::frame;
use super::layout::Layout;
use super::sheet::Sheet;

/// Limit of PEs in a readable picture: with more, a row is thinner than half a pixel, and the paths of
/// the bands take long to compute (n^2 on a path).
pub const MAX_PES: usize = 4096;

/// The content of a picture. It is meant for up to [`MAX_PES`] PEs.
pub struct Scene {
    /// The parts around the bands.
    pub sheet: Sheet,
    pub crossings: Crossings,
}

impl Scene {
    /// Draws the picture.
    pub fn svg(mut self) -> String {
        let Scene { sheet, crossings } = &mut self;
        crossings.merge();
        let is_crowded = crossings.is_crowded(sheet);
        let legend = crossings.legend(is_crowded);
        let layout = Layout::new(sheet, frame::HEAD + crossings.head(), is_crowded);
        let mut canvas = frame::canvas(sheet, &legend, &layout);
        crossings.draw(&mut canvas, &layout, sheet);
        frame::legend(&mut canvas, &layout, &legend);
        canvas.finish()
    }
}
