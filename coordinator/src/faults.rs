//! The errors in a command line, of which all are reported at once.

/// All errors in a command line.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<anyhow::Error>);

impl<E: Into<anyhow::Error>> From<E> for Faults {
    fn from(fault: E) -> Faults {
        Faults(vec![fault.into()])
    }
}

impl Faults {
    /// Creates the list of these errors.
    pub fn all(faults: impl IntoIterator<Item: Into<anyhow::Error>>) -> Faults {
        Faults(faults.into_iter().map(Into::into).collect())
    }

    /// Returns the value, or adds its errors to the others.
    pub fn take<T>(&mut self, read: Result<T, impl Into<Faults>>) -> Option<T> {
        read.map_err(|faults| self.0.extend(faults.into().0)).ok()
    }

    /// Returns these errors, if there are any.
    pub fn check(self) -> Result<(), Faults> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self),
        }
    }
}
