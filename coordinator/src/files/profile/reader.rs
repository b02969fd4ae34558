//! Values of a TOML file, each of which is what it should be or a fault with its line.
//! What the file is about is not known here.

use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::fault::Fault;
use crate::files::toml_file::{self, Spot, Value};

/// What a number may be.
pub type Range = RangeInclusive<f64>;

/// Collects faults on the way from text to profile.
pub type Reader<'t> = toml_file::Reader<'t, Fault>;

/// A table of the file and what it is called in messages.
pub struct Section<'a, 't> {
    /// What stands there.
    pub table: &'a DeTable<'t>,
    /// Empty for the file as a whole.
    pub name: String,
    /// The line in which it begins; `None` for the file as a whole.
    pub spot: Option<Spot>,
}

impl Reader<'_> {
    /// Notes every key that is not one of these.
    pub fn known(&mut self, section: &Section<'_, '_>, known: &[&str]) {
        for key in section.table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                self.unknown_key(key, known.join(", "));
            }
        }
    }

    /// What stands at a key that has to be there.
    pub fn value<'a, 't>(
        &mut self,
        section: &Section<'a, 't>,
        key: &'static str,
    ) -> Option<&'a Value<'t>> {
        let value = section.table.get(key);
        if value.is_none() {
            let table = section.name.clone();
            self.fault(section.spot, Fault::Missing { key, table });
        }
        value
    }

    /// What `read` makes of a key, if it is there.
    pub fn optional<'a, 't, T>(
        &mut self,
        section: &Section<'a, 't>,
        key: &'static str,
        read: fn(&mut Self, &Section<'a, 't>, &'static str) -> Option<T>,
    ) -> Option<T> {
        section.table.get(key)?;
        read(self, section, key)
    }

    /// The table at a key that has to be there.
    pub fn section<'a, 't>(
        &mut self,
        section: &Section<'a, 't>,
        key: &'static str,
    ) -> Option<Section<'a, 't>> {
        let value = self.value(section, key)?;
        match value.get_ref().as_table() {
            Some(table) => Some(Section {
                table,
                name: match section.name.as_str() {
                    "" => key.to_owned(),
                    outer => format!("{key} of {outer}"),
                },
                spot: Some(self.spot_of(value)),
            }),
            None => {
                self.wrong_type(key, "a table", value);
                None
            }
        }
    }

    /// A text.
    pub fn string(&mut self, section: &Section<'_, '_>, key: &'static str) -> Option<String> {
        let value = self.value(section, key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            self.wrong_type(key, "a text", value);
        }
        text.map(str::to_owned)
    }

    /// Yes or no.
    pub fn boolean(&mut self, section: &Section<'_, '_>, key: &'static str) -> Option<bool> {
        let value = self.value(section, key)?;
        let said = value.get_ref().as_bool();
        if said.is_none() {
            self.wrong_type(key, "true or false", value);
        }
        said
    }

    /// A number in its range.
    pub fn number(
        &mut self,
        section: &Section<'_, '_>,
        key: &'static str,
        range: Range,
        whole: bool,
    ) -> Option<f64> {
        let value = self.value(section, key)?;
        let name = match section.name.as_str() {
            "" => key.to_owned(),
            table => format!("{key} in {table}"),
        };
        self.number_in(&name, value, &range, whole)
    }

    /// A number in its range; TOML's `nan` and `inf` are in none.
    pub fn number_in(
        &mut self,
        name: &str,
        value: &Value<'_>,
        range: &Range,
        whole: bool,
    ) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let sound = |number: &f64| range.contains(number) && (!whole || number.fract() == 0.0);
        let number = number.filter(sound);
        if number.is_none() {
            let kind = if whole { "whole number" } else { "number" };
            let expected = format!("a {kind} from {} to {}", range.start(), range.end());
            self.wrong_type(name, expected, value);
        }
        number
    }

    /// A list.
    pub fn list<'a, 't>(
        &mut self,
        section: &Section<'a, 't>,
        key: &'static str,
    ) -> Option<&'a [Value<'t>]> {
        let value = self.value(section, key)?;
        let list = value.get_ref().as_array();
        if list.is_none() {
            self.wrong_type(key, "a list", value);
        }
        list.map(|list| list.as_ref())
    }

    /// A whole number of any size: hosts can be up for years.
    pub fn integer<T: FromStr>(
        &mut self,
        section: &Section<'_, '_>,
        key: &'static str,
    ) -> Option<T> {
        let value = self.value(section, key)?;
        let integer = value.get_ref().as_integer();
        let number = integer.and_then(|integer| integer.as_str().parse().ok());
        if number.is_none() {
            let name = format!("{key} in {}", section.name);
            self.wrong_type(&name, "a whole number of nanoseconds", value);
        }
        number
    }
}
