//! The text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

/// A page of metrics.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'a str, &'a dyn Display)];

impl Exposition {
    /// Starts a metric family of a type of Prometheus; its samples follow.
    pub fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { page: self, name }
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// The metrics of one name.
#[derive(Debug)]
pub struct Family<'a> {
    page: &'a mut Exposition,
    name: &'static str,
}

impl Family<'_> {
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.part("", labels, value);
    }

    /// Writes one sample of a histogram or a summary; `suffix` is appended to the metric's name.
    pub fn part(&mut self, suffix: &str, labels: Labels<'_>, value: impl Display) {
        let text = &mut self.page.0;
        let _ = write!(text, "{}{suffix}", self.name);
        for (i, (name, value)) in labels.iter().enumerate() {
            let value = value.to_string();
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            let value = value.replace('\n', "\\n");
            let before = if i == 0 { '{' } else { ',' };
            let _ = write!(text, "{before}{name}=\"{value}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(text, "{end} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_may_contain_any_text() {
        let mut page = Exposition::default();
        let mut family = page.family("a_total", "counter", "Two\nlines, one \\.");
        family.sample(&[], 1);
        family.sample(&[("pe", &"P1"), ("kind", &"a \"b\"\\\n")], 0.5);
        let expected = concat!(
            "# HELP a_total Two\\nlines, one \\\\.\n# TYPE a_total counter\n",
            "a_total 1\na_total{pe=\"P1\",kind=\"a \\\"b\\\"\\\\\\n\"} 0.5\n"
        );
        assert_eq!(page.text(), expected);
    }
}
