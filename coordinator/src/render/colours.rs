//! The colours of pictures, for light and for dark backgrounds.

/// Fill of messages in turn by order of arrival, and their ink on a light and on a dark background:
/// Tol's bright and muted schemes, arranged so that neighbours differ in hue and in lightness, also
/// for print without colour.
pub const PALETTE: [[&str; 3]; 10] = [
    ["#4477aa", "#2b4f76", "#9cc0e6"],
    ["#ee7733", "#a84a12", "#ffb78a"],
    ["#228833", "#14591f", "#7fd08d"],
    ["#ee99aa", "#a9475d", "#ffc9d3"],
    ["#aa3377", "#6f1b4b", "#f09cc8"],
    ["#66ccee", "#1f7f9f", "#b5e8fa"],
    ["#999933", "#61611a", "#d8d88a"],
    ["#ddaa33", "#8a6510", "#f6d78c"],
    ["#5544aa", "#1d1257", "#b8aaff"],
    ["#44aa99", "#226b5f", "#9ce0d3"],
];

/// The other colours of an SVG picture, and what replaces them on a dark background.
const OTHERS: [[&str; 2]; 13] = [
    ["#fff", "#14171b"],
    ["#222", "#e7eaee"],
    ["#111", "#f4f6f8"],
    ["#333", "#ccd2da"],
    ["#333333", "#dddddd"],
    ["#444", "#b4bdc9"],
    ["#555", "#a2abb8"],
    ["#666", "#8a94a3"],
    ["#9a9a9a", "#6b7684"],
    ["#d4d4d4", "#3c4550"],
    ["#e4e4e4", "#2b323a"],
    ["#3b2a7a", "#c0adff"],
    ["#b3201c", "#ff8f86"],
];

/// Returns the style of an SVG picture: where the viewer prefers a dark background, its colours are
/// replaced.
pub fn dark_style() -> String {
    let inks = PALETTE.iter().map(|[_, light, dark]| [*light, *dark]);
    let rules = OTHERS.into_iter().chain(inks).map(|[light, dark]| {
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}\n")
    });
    let rules: String = rules.collect();
    format!("<style>@media (prefers-color-scheme:dark){{\n{rules}}}</style>\n")
}
