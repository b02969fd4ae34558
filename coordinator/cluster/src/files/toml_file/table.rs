//! A table of a TOML file whose keys are read one by one: each value is valid, or an error with its
//! line. The content of the file is not known here.
//!
//! A result is `None`, or a default value, only with an error, or if the value may be absent and is. So a
//! reader continues with the values that it has: [`parse`] refuses the whole file for one
//! error.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::reader::{Reader, Value};
use crate::files::user_file::{PositionedError, SourcePosition};

/// Reads the document in `text` with `read`; returns at least one error otherwise, in the order of the
/// file. `read` returns `None` only after it has reported one.
pub fn parse<T>(
    text: &str,
    read: impl FnOnce(&Reader<'_>, &Table<'_, '_>) -> Option<T>,
) -> Result<T, Vec<PositionedError>> {
    let reader = Reader::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = error.span().map(|span| reader.spot(span.start));
        reader.fault(spot, error.message());
    }
    // After a syntax error the structure of the rest is unknown.
    let value = match errors.is_empty() {
        true => read(&reader, &Table::top_level(&reader, document.get_ref())),
        false => None,
    };
    let mut faults = reader.faults.into_inner();
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => {
            faults.sort_by_key(|fault| fault.spot);
            Err(faults)
        }
    }
}

/// A table with its name in messages.
pub struct Table<'a, 't> {
    reader: &'a Reader<'t>,
    values: &'a DeTable<'t>,
    name: String,
    spot: Option<SourcePosition>,
    known_keys: RefCell<Vec<&'static str>>,
    /// The key that was refused for a special reason.
    refused: Cell<Option<&'static str>>,
}

/// A value at a key or in a list.
pub struct Field<'a, 't> {
    reader: &'a Reader<'t>,
    key: String,
    table: String,
    value: &'a Value<'t>,
}

impl<'a, 't> Table<'a, 't> {
    /// Returns the file as a whole.
    pub fn top_level(reader: &'a Reader<'t>, document: &'a DeTable<'t>) -> Self {
        Table {
            reader,
            values: document,
            name: String::new(),
            spot: None,
            known_keys: RefCell::default(),
            refused: Cell::default(),
        }
    }

    pub fn named(self, name: String) -> Self {
        Table { name, ..self }
    }

    /// Returns the position of the table; `None` for the file as a whole.
    pub fn spot(&self) -> Option<SourcePosition> {
        self.spot
    }

    pub fn fault(&self, fault: impl Display) {
        self.reader.fault(self.spot, fault);
    }

    /// Checks that the file has the version that is read here; with another version the meaning of
    /// the rest is unknown.
    pub fn check_version(&self, reads: u32, kind: &str, advice: &str) -> Option<()> {
        let Some(version) = self.optional("version") else {
            self.fault(format!("there is no version: this is no {kind}"));
            return None;
        };
        let integer = version.value().as_integer();
        if integer.is_some_and(|integer| integer.as_str() == reads.to_string()) {
            return Some(());
        }
        let found = self.reader.found(version.value);
        version.fault(format!(
            "version {found}: this flitcast reads version {reads}{advice}"
        ));
        None
    }

    pub fn optional(&self, key: &'static str) -> Option<Field<'a, 't>> {
        let mut known_keys = self.known_keys.borrow_mut();
        if !known_keys.contains(&key) {
            known_keys.push(key);
        }
        self.values.get(key).map(|value| Field {
            reader: self.reader,
            key: key.to_owned(),
            table: self.name.clone(),
            value,
        })
    }

    pub fn required(&self, key: &'static str) -> Option<Field<'a, 't>> {
        let field = self.optional(key);
        if field.is_none() {
            let table = match self.name.as_str() {
                "" => String::new(),
                table => format!(" in {table}"),
            };
            self.fault(format!("`{key}` is missing{table}"));
        }
        field
    }

    /// Reads the value at a required key; returns a default one if there is none or `read` has reported
    /// an error.
    pub fn get<T: Default>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Field<'a, 't>) -> Option<T>,
    ) -> T {
        let field = self.required(key);
        field.and_then(|field| read(&field)).unwrap_or_default()
    }

    /// Reads the value at a key, if there is one.
    pub fn find<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Field<'a, 't>) -> Option<T>,
    ) -> Option<T> {
        self.optional(key).and_then(|field| read(&field))
    }

    /// Returns the tables of a list `[[key]]`; none if the key is absent.
    pub fn tables(&self, key: &'static str) -> Vec<Table<'a, 't>> {
        let Some(field) = self.optional(key) else {
            return Vec::new();
        };
        let expected = format!("[[{key}]] tables, in double brackets");
        let list = field.list_of(&expected).into_iter().flatten();
        let tables = list.filter_map(|each| each.table());
        tables
            .map(|table| table.named(format!("this [[{key}]]")))
            .collect()
    }

    /// Returns a required text.
    pub fn text(&self, key: &'static str) -> String {
        self.get(key, |field| field.text())
    }

    pub fn flag(&self, key: &'static str) -> bool {
        let is_set = |field: &Field<'_, '_>| {
            let value = field.value().as_bool();
            field.expect("true or false", value)
        };
        self.find(key, is_set) == Some(true)
    }

    /// Returns a required number in a range.
    pub fn number(&self, key: &'static str, range: RangeInclusive<f64>) -> f64 {
        self.get(key, |field| field.number(&range))
    }

    /// Returns a required integer in a range.
    pub fn whole_number(&self, key: &'static str, range: RangeInclusive<f64>) -> u64 {
        self.get(key, |field| field.whole_number(&range)) as u64
    }

    /// Reports a key that is not permitted here, with a special reason.
    pub fn refuse(&self, key: &'static str, fault: impl Display) {
        if let Some((key, _)) = self.values.get_key_value(key) {
            self.reader.fault(self.reader.spot_of(key), fault);
        }
        self.refused.set(Some(key));
    }

    /// Reports each key that was not read, and returns whether there is none.
    pub fn refuse_others(&self) -> bool {
        let known = self.known_keys.borrow();
        let before = self.reader.fault_count();
        for key in self.values.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) && self.refused.get() != Some(name) {
                let known = known.join(", ");
                let fault = format!("unknown key `{name}`; known here: {known}");
                self.reader.fault(self.reader.spot_of(key), fault);
            }
        }
        self.reader.fault_count() == before
    }
}

impl<'a, 't> Field<'a, 't> {
    pub fn spot(&self) -> SourcePosition {
        self.reader.spot_of(self.value)
    }

    pub fn value(&self) -> &'a DeValue<'t> {
        self.value.get_ref()
    }

    pub fn fault(&self, fault: impl Display) {
        self.reader.fault(self.spot(), fault);
    }

    pub fn called(self, key: impl Into<String>) -> Self {
        let key = key.into();
        Field { key, ..self }
    }

    /// Reports that the value is not what is expected, if `read` is `None`.
    pub fn expect<T>(&self, expected: &str, read: Option<T>) -> Option<T> {
        self.expect_of(&self.key, expected, read)
    }

    fn expect_of<T>(&self, name: &str, expected: &str, read: Option<T>) -> Option<T> {
        if read.is_none() {
            let found = self.reader.found(self.value);
            self.fault(format!("{name} must be {expected}, not {found}"));
        }
        read
    }

    /// Parses a text, or reports the error of `parse`.
    pub fn parse<T, E: Display>(&self, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        self.parse_as("a text", parse)
    }

    /// Parses a text that `expected` describes in messages.
    pub fn parse_as<T, E: Display>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let read = parse(self.expect(expected, self.value().as_str())?);
        read.map_err(|fault| self.fault(fault)).ok()
    }

    /// Parses a text, or reports the error of `parse` behind the key.
    pub fn parse_keyed<T, E: Display>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let key = &self.key;
        self.parse(|text| parse(text).map_err(|fault| format!("{key}: {fault}")))
    }

    /// Parses a text that `expected` describes in messages, or reports all errors of `parse`, each
    /// behind the key.
    pub fn parse_parts<T>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, Vec<String>>,
    ) -> Option<T> {
        let key = &self.key;
        let read = parse(self.expect(expected, self.value().as_str())?);
        let report = |fault| self.fault(format!("{key}: {fault}"));
        read.map_err(|faults| faults.into_iter().for_each(report))
            .ok()
    }

    pub fn text(&self) -> Option<String> {
        self.text_where("a text", |_| true)
    }

    pub fn text_where(&self, expected: &str, is_one: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.value().as_str().filter(|text| is_one(text));
        self.expect(expected, text.map(str::to_owned))
    }

    /// Returns a list of texts that are what is expected.
    pub fn texts_where(
        &self,
        expected: &str,
        is_one: impl Fn(&[String]) -> bool,
    ) -> Option<Vec<String>> {
        let text = |value: &Value<'t>| Some(value.get_ref().as_str()?.to_owned());
        let list = self.value().as_array();
        let texts = list.and_then(|list| list.iter().map(text).collect::<Option<Vec<_>>>());
        self.expect(expected, texts.filter(|texts| is_one(texts)))
    }

    pub fn table(&self) -> Option<Table<'a, 't>> {
        self.table_of("a table")
    }

    /// Returns a table that `expected` describes in messages.
    pub fn table_of(&self, expected: &str) -> Option<Table<'a, 't>> {
        let values = self.expect(expected, self.value().as_table())?;
        Some(Table {
            reader: self.reader,
            values,
            name: match self.table.as_str() {
                "" => self.key.clone(),
                outer => format!("{} of {outer}", self.key),
            },
            spot: Some(self.spot()),
            known_keys: RefCell::default(),
            refused: Cell::default(),
        })
    }

    /// Reads a table with `read`, and reports each key that was not read.
    pub fn inside<T>(&self, read: impl FnOnce(&Table<'a, 't>) -> T) -> Option<T> {
        let table = self.table()?;
        let value = read(&table);
        table.refuse_others();
        Some(value)
    }

    /// Returns the values of a list, each with the list's name.
    pub fn list(&self) -> Option<impl Iterator<Item = Field<'a, 't>>> {
        self.list_of("a list")
    }

    /// Returns the values of a list that `expected` describes in messages.
    pub fn list_of(&self, expected: &str) -> Option<impl Iterator<Item = Field<'a, 't>>> {
        let list = self.expect(expected, self.value().as_array())?;
        Some(list.iter().map(|value| Field {
            reader: self.reader,
            key: self.key.clone(),
            table: self.table.clone(),
            value,
        }))
    }

    pub fn count_values(&self) -> usize {
        self.value().as_array().map_or(0, |list| list.len())
    }

    /// Reads each value of a list with `read`; returns `None` if it fails for one of them.
    pub fn each<T>(&self, read: impl Fn(Self) -> Option<T>) -> Option<Vec<T>> {
        let all: Vec<Option<T>> = self.list()?.map(read).collect();
        all.into_iter().collect()
    }

    /// Returns an integer: a number of bytes, PEs and the like.
    pub fn count(&self) -> Option<u64> {
        let integer = self.value().as_integer();
        let integer = integer.filter(|integer| integer.radix() == 10);
        let count = integer.and_then(|integer| integer.as_str().parse().ok());
        self.expect("a whole number, not below 0", count)
    }

    /// Returns a reading of a clock, of any size: hosts can be up for years.
    pub fn nanoseconds<T: FromStr>(&self) -> Option<T> {
        let integer = self.value().as_integer();
        let number = integer.and_then(|integer| integer.as_str().parse().ok());
        self.expect_in_table("a whole number of nanoseconds", number)
    }

    /// Returns a number in a range; TOML's `nan` and `inf` are in none.
    pub fn number(&self, range: &RangeInclusive<f64>) -> Option<f64> {
        let number = self.any_number().filter(|number| range.contains(number));
        self.expect_in_table(&in_range("number", range), number)
    }

    pub fn whole_number(&self, range: &RangeInclusive<f64>) -> Option<f64> {
        let number = self.any_number();
        let number = number.filter(|number| range.contains(number) && number.fract() == 0.0);
        self.expect_in_table(&in_range("whole number", range), number)
    }

    fn any_number(&self) -> Option<f64> {
        match self.value() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            DeValue::Float(float) => float.as_str().parse().ok(),
            _ => None,
        }
    }

    /// Returns the name for messages that mention its table as well.
    pub fn name_in_table(&self) -> String {
        match self.table.as_str() {
            "" => self.key.clone(),
            table => format!("{} in {table}", self.key),
        }
    }

    /// Reports an unexpected value as [`expect`](Field::expect) does, in a message that names the
    /// table as well.
    pub fn expect_in_table<T>(&self, expected: &str, read: Option<T>) -> Option<T> {
        self.expect_of(&self.name_in_table(), expected, read)
    }
}

fn in_range(kind: &str, range: &RangeInclusive<f64>) -> String {
    format!("a {kind} from {} to {}", range.start(), range.end())
}
