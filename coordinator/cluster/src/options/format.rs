//! `--format`: how a result is printed. There is one list of formats for all commands; each
//! offers some of them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error, ValueEnum};

use crate::options::names::typed;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Human-readable rows and columns.
    #[default]
    Table,
    /// A drawing for terminals.
    Text,
    Json,
    /// Values for spreadsheets.
    Csv,
    /// A drawing.
    Svg,
    /// For Graphviz.
    Dot,
    /// A tree file for Flitcast.
    Toml,
}

/// The formats that a command offers, each with its help text.
#[derive(Clone, Copy, Debug)]
pub struct Formats(pub &'static [(Format, &'static str)]);

/// The formats of most commands.
pub const TABLE_OR_JSON: Formats =
    Formats(&[(Format::Table, "For eyes"), (Format::Json, "For programs")]);

impl Formats {
    fn possible(self) -> impl Iterator<Item = PossibleValue> {
        let value = |(format, help): &(Format, _)| Some(format.to_possible_value()?.help(*help));
        self.0.iter().filter_map(value)
    }
}

impl TypedValueParser for Formats {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Format, Error> {
        let names = PossibleValuesParser::new(self.possible());
        let name = names.parse_ref(command, arg, value)?;
        let named = self.0.iter().find(|(format, _)| typed(format) == name);
        // The parser of names accepts no other value.
        Ok(named.map_or(Format::Table, |(format, _)| *format))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.possible()))
    }
}
