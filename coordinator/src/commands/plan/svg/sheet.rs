//! The content of a sheet around its bands. Nothing is drawn here.

use flitcast_proto::Tree;

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
    /// Returns the name of the axis beside its numbers.
    pub fn name(self) -> &'static str {
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

/// The content of all parts around the bands, but for the legend.
#[derive(Default)]
pub struct Sheet {
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
}

impl Sheet {
    /// Returns the last step or time that is shown.
    pub fn last(&self) -> f64 {
        let bound = self.bound.as_ref().map_or(0.0, |bound| bound.at);
        self.time.at.max(bound).max(self.shown)
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

    /// Returns the moment of a step.
    pub fn step(step: u64) -> Moment {
        Moment::new(step as f64, step)
    }
}

/// A line of the legend.
pub struct Entry {
    /// The symbol that is explained.
    pub icon: Icon,
    pub text: String,
}

/// The symbols that the legend can explain.
#[derive(Clone, Copy)]
pub enum Icon {
    /// A band with its bars.
    Band,
    Colour(&'static str),
    /// A control item, by its name among the definitions.
    Mark(&'static str),
}

impl Icon {
    /// Returns the width of the symbol with its gap.
    pub fn width(self) -> f64 {
        match self {
            Icon::Band => 44.0,
            Icon::Colour(_) | Icon::Mark(_) => 14.0,
        }
    }
}
