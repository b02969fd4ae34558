//! Coordinates in meshes and tori.

/// A mesh or a torus; a ring and an array are those of one dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Grid {
    /// Nodes along each axis, the slowest axis first.
    pub sides: Vec<usize>,
    /// Whether lines are rings.
    pub closed: bool,
}

impl Grid {
    pub(crate) fn of(sides: &[u32], closed: bool) -> Grid {
        let sides = sides.iter().map(|side| *side as usize).collect();
        Grid { sides, closed }
    }

    /// Returns the number of nodes.
    pub fn pes(&self) -> usize {
        self.sides.iter().product()
    }

    /// Returns the difference between the numbers of neighbours along an axis.
    pub fn stride(&self, axis: usize) -> usize {
        self.sides[axis + 1..].iter().product()
    }

    /// Returns the coordinate of a node along an axis.
    pub fn coordinate(&self, node: usize, axis: usize) -> usize {
        node / self.stride(axis) % self.sides[axis]
    }

    /// Returns the coordinates of a node.
    pub fn coordinates(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.sides.len()).map(move |axis| self.coordinate(node, axis))
    }

    /// Returns the node `hops` hops away along an axis, around the ring of its line.
    pub fn along(&self, node: usize, axis: usize, hops: i64) -> usize {
        let place = self.coordinate(node, axis);
        let other = (place as i64 + hops).rem_euclid(self.sides[axis] as i64);
        node - place * self.stride(axis) + other as usize * self.stride(axis)
    }
}
