//! The errors of algorithms that do not support the requested plan.

use std::fmt::Display;

use anyhow::{Error, anyhow};
use flitcast_plan::algorithms::NotPlanned;

/// Returns the error of an algorithm that does not support these PEs.
pub fn unfit(algorithm: impl Display, why: impl Display) -> Error {
    anyhow!("--algorithm {algorithm}: {why}")
}

/// Returns the error of an algorithm without a static schedule.
pub fn not_planned(algorithm: impl Display, why: NotPlanned) -> Error {
    match why {
        NotPlanned::Unfit(why) => unfit(algorithm, why),
        NotPlanned::TooMuch(fault) => fault.into(),
    }
}
