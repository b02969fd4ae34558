//! The report of a plan: one value that the table, JSON and the picture of any operation are printed
//! from.

use std::io::{self, Write};

use anyhow::ensure;
use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::Tree;
use flitcast_proto::items::Control;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::args::PrintArgs;
use super::svg::{MAX_PES, Scene};
use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::text::figures::{Table, beside, fitted};
use flitcast_cluster::text::pe_names::{self, with_names};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::columns;

type WriteValue<'a> = Box<dyn Fn(&mut dyn Write) -> serde_json::Result<()> + 'a>;

/// A plan as it is printed, in any format. Values of JSON are written piece by piece: a million
/// messages need no second copy of themselves.
pub struct PlanReport<'a> {
    print: PrintArgs,
    heading: String,
    /// The keys and values of the JSON object, in order.
    fields: Vec<(&'static str, WriteValue<'a>)>,
    /// The table of messages, steps or PEs, if it was requested.
    table: Option<String>,
    is_below_table: bool,
    /// The width of a label of a figure.
    label_width: usize,
    /// The figures of the whole, a line for each.
    figures: String,
    /// The lines after the figures.
    remarks: String,
    picture: String,
}

impl<'a> PlanReport<'a> {
    /// Creates a report with a heading above the table.
    pub fn new(heading: String, print: PrintArgs) -> PlanReport<'a> {
        PlanReport {
            print,
            heading,
            fields: Vec::new(),
            table: None,
            is_below_table: false,
            label_width: 13,
            figures: String::new(),
            remarks: String::new(),
            picture: String::new(),
        }
    }

    /// Moves the heading below the table, to the figures, whose labels get this width.
    pub fn below_table(self, label_width: usize) -> PlanReport<'a> {
        PlanReport {
            is_below_table: true,
            label_width,
            ..self
        }
    }

    pub fn field(&mut self, key: &'static str, value: impl Serialize + 'a) {
        let write = move |out: &mut dyn Write| serde_json::to_writer(out, &value);
        self.fields.push((key, Box::new(write)));
    }

    /// Adds a field of JSON if it has a value.
    pub fn optional(&mut self, key: &'static str, value: Option<impl Serialize + 'a>) {
        if let Some(value) = value {
            self.field(key, value);
        }
    }

    /// Adds a field of JSON, unless a summary is requested.
    pub fn detail(&mut self, key: &'static str, value: impl Serialize + 'a) {
        self.optional(key, (!self.print.summary).then_some(value));
    }

    /// Adds an array to the details, whose elements are created one after the other.
    pub fn list<I>(&mut self, key: &'static str, elements: impl Fn() -> I + 'a)
    where
        I: IntoIterator<Item: Serialize>,
    {
        self.detail(key, Each(elements));
    }

    /// Adds a field of JSON that stands for details in a summary.
    pub fn total(&mut self, key: &'static str, value: impl Serialize + 'a) {
        self.optional(key, self.print.summary.then_some(value));
    }

    /// Adds a line to the figures of the text.
    pub fn line(&mut self, label: &str, text: impl AsRef<str>) {
        let text = with_names(text.as_ref());
        self.figures
            .push_str(&beside(label, self.label_width, &text, columns()));
    }

    /// Adds the size of a tree and of the messages over it to the figures.
    pub fn size(&mut self, tree: &Tree, nonnull: usize, flits: u64) {
        let depth = tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0);
        self.line("PEs", format!("{}, depth {depth}", tree.len()));
        let flits = counted(flits, "flit", "flits");
        let messages = format!("{nonnull} nonnull, {flits} together");
        self.line("messages", messages);
    }

    pub fn on_links(&mut self, on_links: Option<OnLinks>) {
        if let Some(on_links) = on_links {
            self.remarks.push_str(&on_links.text());
            self.field("on_links", on_links);
        }
    }

    /// Adds the result of a simulation, which is a line of the text.
    pub fn simulated(&mut self, simulated: &str) {
        self.remarks.push_str(simulated);
    }

    /// Adds the table of the text, if it is requested.
    pub fn table(&mut self, table: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<()> {
        if self.print.format == Format::Table && !self.print.summary {
            self.table = Some(table()?);
        }
        Ok(())
    }

    /// Adds a table with `names` columns of names, and a line below it. A narrow terminal has no room for
    /// the columns of the first headings in `least`.
    pub fn rows(
        &mut self,
        names: usize,
        least: &[&str],
        rows: impl FnOnce() -> (Table, String),
    ) -> anyhow::Result<()> {
        self.table(|| {
            let (table, more) = rows();
            Ok(fitted(table, names, least, columns()) + &more)
        })
    }

    /// Adds the picture, if it is requested.
    pub fn scene(
        &mut self,
        pes: usize,
        scene: impl FnOnce() -> anyhow::Result<Scene>,
    ) -> anyhow::Result<()> {
        if self.print.format == Format::Svg {
            ensure!(
                pes <= MAX_PES,
                "a drawing of {pes} PEs shows nothing, at most {MAX_PES} do: use --summary or \
                 --format json"
            );
            self.picture = scene()?.svg();
        }
        Ok(())
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.print.format {
            Format::Json => self.write_json(out),
            Format::Svg => out.write_all(self.picture.as_bytes()),
            _ => out.write_all(self.text().as_bytes()),
        }
    }

    fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        for (place, (key, write)) in self.fields.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            write!(out, "{before}\"{key}\":")?;
            write(out)?;
        }
        if let names @ [_, ..] = &pe_names::all()[..] {
            write!(out, ",\"names\":{}", json!(names))?;
        }
        out.write_all(b"}\n")
    }

    fn text(&self) -> String {
        let heading = with_names(&self.heading);
        let table = self.table.as_ref();
        let table = table.map_or(String::new(), |table| format!("{table}\n"));
        let above = match self.is_below_table {
            true => format!("{table}{heading}\n"),
            false => format!("{heading}\n\n{table}"),
        };
        above + &self.figures + &self.remarks
    }
}

/// Returns `optimal`, or the distance of a time from the bound.
pub fn proof(time: impl Into<u128>, bound: impl Into<u128>) -> String {
    let (time, bound) = (time.into(), bound.into());
    match time - bound {
        0 => "optimal".to_owned(),
        over => format!("gap {:.1}%", over as f64 * 100.0 / bound as f64),
    }
}

/// A JSON array whose elements are created one after the other.
struct Each<F>(F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}

/// Returns a control item, with the index of its tree if there are several.
pub fn control_item(tree: Option<usize>, control: &ControlPlan) -> Value {
    let mut item = tree.map_or(json!({}), |tree| json!({ "tree": tree }));
    item["step"] = control.step.into();
    item["from"] = control.from.0.into();
    item["to"] = control.to.0.into();
    item["kind"] = control.item.name().into();
    match control.item {
        Control::Certificate(certificate) => {
            item["lag_steps"] = certificate.lag.into();
            item["stream_flits"] = certificate.stream.into();
        }
        Control::Order { after } | Control::Wakeup { after } => item["after_steps"] = after.into(),
        Control::Token | Control::Receipt => {}
    }
    item
}

/// A small JSON object of numbers, of which there may be millions.
pub struct Numbers<const N: usize>(pub [(&'static str, u64); N]);

impl<const N: usize> Serialize for Numbers<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0)
    }
}
