//! The errors in a command line, of which all are reported at once.

use std::fmt;

/// All errors in a command line.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<anyhow::Error>);

impl<E: Into<anyhow::Error>> From<E> for Faults {
    fn from(fault: E) -> Faults {
        Faults(vec![fault.into()])
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join("; "))
    }
}

impl IntoIterator for Faults {
    type Item = anyhow::Error;
    type IntoIter = std::vec::IntoIter<anyhow::Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Faults {
    pub fn all(faults: impl IntoIterator<Item: Into<anyhow::Error>>) -> Faults {
        Faults(faults.into_iter().map(Into::into).collect())
    }

    pub fn add(&mut self, fault: impl Into<anyhow::Error>) {
        self.0.push(fault.into());
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
