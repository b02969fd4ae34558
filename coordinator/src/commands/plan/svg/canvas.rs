//! SVG text: numbers, escaping, and the few elements of the picture. The callers decide the content and
//! the positions.

use std::fmt::{self, Write as _};

use crate::render::colours::dark_style;

/// A coordinate with at most two decimals, and without trailing zeros.
#[derive(Clone, Copy)]
pub struct Num(pub f64);

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// A text in which characters that are markup or invalid in XML are replaced.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

pub struct Canvas {
    out: String,
}

impl Canvas {
    /// Creates a sheet with a title that viewers show. It is white, or dark where the viewer prefers
    /// that.
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        let mut canvas = Canvas { out: String::new() };
        let (w, h) = (Num(width), Num(height));
        canvas.put(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"sans-serif\" fill=\"#222\">\n\
             <title>{}</title>\n{}\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>\n",
            Escaped(title),
            dark_style()
        ));
        canvas
    }

    pub fn put(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.out.write_fmt(text);
    }

    pub fn open(&mut self, attributes: fmt::Arguments<'_>) {
        self.put(format_args!("<g {attributes}>\n"));
    }

    pub fn close(&mut self) {
        self.out.push_str("</g>\n");
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.put(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
            Num(from.0),
            Num(from.1),
            Num(to.0),
            Num(to.1)
        ));
    }

    /// Draws a rectangle by its upper left corner and its size.
    pub fn rect(&mut self, (x, y): (f64, f64), width: f64, height: f64) {
        let [x, y, width, height] = [x, y, width, height].map(Num);
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n"
        ));
    }

    /// Draws a text whose baseline is at `at`, its `anchor` (start, middle or end) there; its size is
    /// the group's.
    pub fn text(&mut self, at: (f64, f64), anchor: &str, text: &str) {
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\">{}</text>\n",
            Num(at.0),
            Num(at.1),
            Escaped(text)
        ));
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

/// Returns an upper estimate of the width of a text: the viewer's font is unknown, and DejaVu Sans is
/// the widest of the usual ones.
pub fn text_width(text: &str, size: f64) -> f64 {
    let width = |letter| if letter == '→' { 0.84 } else { 0.63 };
    text.chars().map(width).sum::<f64>() * size
}

pub fn bold_width(text: &str, size: f64) -> f64 {
    1.12 * text_width(text, size)
}

/// The areas of texts and marks, so that none covers another.
#[derive(Default)]
pub struct Taken {
    boxes: Vec<[f64; 4]>,
}

impl Taken {
    /// Occupies the rectangle of this centre and size, even if it is not free.
    pub fn take(&mut self, centre: (f64, f64), width: f64, height: f64) {
        self.boxes.push(around(centre, width, height));
    }

    /// Occupies the rectangle if it is free, and returns whether it was.
    pub fn try_take(&mut self, centre: (f64, f64), width: f64, height: f64) -> bool {
        let [left, top, right, bottom] = around(centre, width, height);
        let free = self
            .boxes
            .iter()
            .all(|&[l, t, r, b]| right <= l || r <= left || bottom <= t || b <= top);
        if free {
            self.take(centre, width, height);
        }
        free
    }
}

fn around((x, y): (f64, f64), width: f64, height: f64) -> [f64; 4] {
    [
        x - width / 2.0,
        y - height / 2.0,
        x + width / 2.0,
        y + height / 2.0,
    ]
}
