//! A table of a TOML file, whose keys are asked for one by one: each value is what it should
//! be, or a fault with its line. What the file is about is not known here.
//!
//! Nothing is `None` without a fault, but for what may be absent and is. So a reader may go
//! on with as much as it has: [`parse`](super::parse) refuses the whole for one fault.

use std::cell::{Cell, RefCell};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::{Reader, Value};
use crate::files::user_file::Spot;

/// A table and what it is called in messages.
pub struct Table<'a, 't> {
    reader: &'a Reader<'t>,
    values: &'a DeTable<'t>,
    name: String,
    spot: Option<Spot>,
    asked: RefCell<Vec<&'static str>>,
    /// A key that was refused for a reason of its own.
    refused: Cell<Option<&'static str>>,
}

/// A value that is there, at a key or in the list of one.
pub struct Field<'a, 't> {
    reader: &'a Reader<'t>,
    key: String,
    /// The name of its table.
    table: String,
    value: &'a Value<'t>,
}

impl<'a, 't> Table<'a, 't> {
    /// The file as a whole.
    pub fn top_level(reader: &'a Reader<'t>, document: &'a DeTable<'t>) -> Self {
        Table {
            reader,
            values: document,
            name: String::new(),
            spot: None,
            asked: RefCell::default(),
            refused: Cell::default(),
        }
    }

    /// The same, called `name`.
    pub fn named(self, name: String) -> Self {
        Table { name, ..self }
    }

    /// Where it begins; `None` for the file as a whole.
    pub fn spot(&self) -> Option<Spot> {
        self.spot
    }

    /// Reports what is wrong with the table.
    pub fn fault(&self, fault: impl Display) {
        self.reader.fault(self.spot, fault);
    }

    /// That the file says it is of the version that is read here. In another one it is
    /// anybody's guess what the rest means.
    pub fn is_version(&self, reads: u32, kind: &'static str, advice: &'static str) -> bool {
        let Some(version) = self.optional("version") else {
            self.fault(format!("there is no version: this is no {kind}"));
            return false;
        };
        let integer = version.value.get_ref().as_integer();
        if integer.map(|integer| integer.as_str()) == Some(reads.to_string().as_str()) {
            return true;
        }
        let found = self.reader.found(version.value);
        version.fault(format!(
            "version {found}: this flitcast reads version {reads}{advice}"
        ));
        false
    }

    /// What stands at a key, if anything does.
    pub fn optional(&self, key: &'static str) -> Option<Field<'a, 't>> {
        self.asked.borrow_mut().push(key);
        self.values.get(key).map(|value| Field {
            reader: self.reader,
            key: key.to_owned(),
            table: self.name.clone(),
            value,
        })
    }

    /// What stands at a key that has to be there.
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

    /// The tables of a list of such, `[[key]]`; none if the key is absent.
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

    /// A text that has to be there.
    pub fn text(&self, key: &'static str) -> Option<String> {
        self.required(key)?.text()
    }

    /// Whether a flag is there and set.
    pub fn flag(&self, key: &'static str) -> bool {
        self.optional(key).and_then(|field| field.boolean()) == Some(true)
    }

    /// A number in a range, that has to be there.
    pub fn number(&self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        self.required(key)?.number(&range)
    }

    /// Reports a key that may not stand here, for a reason of its own.
    pub fn refuse(&self, key: &'static str, fault: impl Display) {
        if let Some((key, _)) = self.values.get_key_value(key) {
            self.reader.fault(self.reader.spot_of(key), fault);
        }
        self.refused.set(Some(key));
    }

    /// Reports each key that nobody has asked for; whether there is none.
    pub fn refuse_others(&self) -> bool {
        let known = self.asked.borrow();
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
    /// Where it stands.
    pub fn spot(&self) -> Spot {
        self.reader.spot_of(self.value)
    }

    /// The value itself.
    pub fn value(&self) -> &'a DeValue<'t> {
        self.value.get_ref()
    }

    /// Reports what is wrong with it.
    pub fn fault(&self, fault: impl Display) {
        self.reader.fault(self.spot(), fault);
    }

    /// The same, called `key`.
    pub fn called(self, key: impl Into<String>) -> Self {
        let key = key.into();
        Field { key, ..self }
    }

    /// Reports that it is not what is expected, unless it is there.
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

    /// What `parse` makes of a text, or the faults that it finds.
    pub fn parse<T, E: IntoIterator<Item: Display>>(
        &self,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.parse_as("a text", parse)
    }

    /// The same, where a text is expected of such.
    pub fn parse_as<T, E: IntoIterator<Item: Display>>(
        &self,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let read = parse(self.expect(expected, self.value().as_str())?);
        let read = read.map_err(|faults| faults.into_iter().for_each(|fault| self.fault(fault)));
        read.ok()
    }

    /// A text.
    pub fn text(&self) -> Option<String> {
        self.text_where("a text", |_| true)
    }

    /// A text that is what is expected.
    pub fn text_where(&self, expected: &str, is_one: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.value().as_str().filter(|text| is_one(text));
        self.expect(expected, text.map(str::to_owned))
    }

    /// A list of texts that are what is expected.
    pub fn texts_where(
        &self,
        expected: &str,
        is_one: impl Fn(&[String]) -> bool,
    ) -> Option<Vec<String>> {
        let list = self
            .value()
            .as_array()
            .into_iter()
            .flat_map(|list| list.iter());
        let texts = list.map(|value| value.get_ref().as_str().map(str::to_owned));
        let texts: Option<Vec<String>> = texts.collect();
        let texts = texts.filter(|texts| self.value().is_array() && is_one(texts));
        self.expect(expected, texts)
    }

    /// Yes or no.
    pub fn boolean(&self) -> Option<bool> {
        self.expect("true or false", self.value().as_bool())
    }

    /// A table of this name.
    pub fn table(&self) -> Option<Table<'a, 't>> {
        self.table_of("a table")
    }

    /// The same, where a table is expected of such.
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
            asked: RefCell::default(),
            refused: Cell::default(),
        })
    }

    /// The values of a list, each called as the list is.
    pub fn list(&self) -> Option<impl Iterator<Item = Field<'a, 't>>> {
        self.list_of("a list")
    }

    /// The same, where a list is expected of such.
    pub fn list_of(&self, expected: &str) -> Option<impl Iterator<Item = Field<'a, 't>>> {
        let list = self.expect(expected, self.value().as_array())?;
        Some(list.iter().map(|value| Field {
            reader: self.reader,
            key: self.key.clone(),
            table: self.table.clone(),
            value,
        }))
    }

    /// How many values a list has.
    pub fn count_values(&self) -> usize {
        self.value().as_array().map_or(0, |list| list.len())
    }

    /// What `read` makes of each value of a list; `None` if one of them is nothing.
    pub fn each<T>(&self, read: impl Fn(Self) -> Option<T>) -> Option<Vec<T>> {
        let all: Vec<Option<T>> = self.list()?.map(read).collect();
        all.into_iter().collect()
    }

    /// A whole number of bytes, PEs and the like.
    pub fn count(&self) -> Option<u64> {
        let integer = self.value().as_integer();
        let integer = integer.filter(|integer| integer.radix() == 10);
        let count = integer.and_then(|integer| integer.as_str().parse().ok());
        self.expect("a whole number, not below 0", count)
    }

    /// A time on somebody's clock, of any size: hosts can be up for years.
    pub fn nanoseconds<T: FromStr>(&self) -> Option<T> {
        let integer = self.value().as_integer();
        let number = integer.and_then(|integer| integer.as_str().parse().ok());
        self.expect_in_table("a whole number of nanoseconds", number)
    }

    /// A number in a range; TOML's `nan` and `inf` are in none.
    pub fn number(&self, range: &RangeInclusive<f64>) -> Option<f64> {
        let number = self.any_number().filter(|number| range.contains(number));
        self.expect_in_table(&in_range("number", range), number)
    }

    /// A whole number in a range.
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

    /// What it is called in messages that name its table as well.
    pub fn name_in_table(&self) -> String {
        match self.table.as_str() {
            "" => self.key.clone(),
            table => format!("{} in {table}", self.key),
        }
    }

    /// As [`expect`](Field::expect), in a message that names the table as well.
    pub fn expect_in_table<T>(&self, expected: &str, read: Option<T>) -> Option<T> {
        self.expect_of(&self.name_in_table(), expected, read)
    }
}

fn in_range(kind: &str, range: &RangeInclusive<f64>) -> String {
    format!("a {kind} from {} to {}", range.start(), range.end())
}
