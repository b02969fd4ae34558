//! The matrix of a total exchange: a row for each sender and a column for each receiver, in flits or
//! bytes.
//!
//! ```text
//! 0,3,0,5
//! 1,0,2,2
//! 4,4,0,1
//! 0,0,7,0
//! ```
//!
//! The diagonal is 0. Blank lines are skipped. All errors are reported at once, each with its row and
//! column.

use std::path::Path;

use crate::files::user_file::{
    self, FileError, FileKind, PositionedError, accepted, beginning, whole_number,
};

const FILE: FileKind = FileKind {
    name: "matrix",
    // A thousand rows of a thousand numbers of 15 digits.
    max_bytes: 16 << 20,
};

/// The unit and the limit of a matrix's cells.
#[derive(Clone, Copy)]
pub struct Cells {
    /// "flits" or "bytes".
    pub unit: &'static str,
    /// The largest permitted value.
    pub most: u64,
}

pub fn load(path: &Path, cells: Cells) -> Result<Vec<Vec<u64>>, FileError> {
    user_file::load(FILE, path, |text| parse(text, cells))
}

fn parse(text: &str, of: Cells) -> Result<Vec<Vec<u64>>, Vec<PositionedError>> {
    let lines = (1..).zip(text.lines());
    let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.trim().is_empty()).collect();
    let rows = lines.len();
    let mut faults = Vec::new();
    if rows == 0 {
        let fault = "no rows: give each PE one, like `0,3,5`";
        faults.push(PositionedError::new(None, fault));
    }
    let mut matrix = Vec::new();
    for (row, (line, text)) in lines.into_iter().enumerate() {
        let mut on_line = |fault: String| faults.push(PositionedError::new(Some(line), fault));
        let texts: Vec<&str> = text.split(',').map(str::trim).collect();
        if texts.len() != rows {
            on_line(format!(
                "row {} has {} columns, but the matrix has {rows} rows: it needs as many of both",
                row + 1,
                texts.len()
            ));
        }
        let mut cells = Vec::new();
        for (column, text) in texts.into_iter().enumerate() {
            match cell(text, row == column, of) {
                Ok(count) => cells.push(count),
                Err(why) => on_line(format!(
                    "row {}, column {} (P{row} to P{column}): {why}",
                    row + 1,
                    column + 1
                )),
            }
        }
        matrix.push(cells);
    }
    accepted(matrix, faults)
}

fn cell(text: &str, is_own: bool, of: Cells) -> Result<u64, String> {
    let Cells { unit, most } = of;
    match whole_number(text).filter(|count| *count <= most) {
        Some(count) if is_own && count > 0 => Err(format!(
            "{count} {unit} of a PE for itself; the diagonal is 0"
        )),
        Some(count) => Ok(count),
        None => Err(format!(
            "`{}` is not a number of {unit}, a whole number from 0 to {most}",
            beginning(text)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLITS: Cells = Cells {
        unit: "flits",
        most: 99,
    };

    fn faults(text: &str) -> Vec<String> {
        let faults = parse(text, FLITS).unwrap_err();
        let line = |fault: &PositionedError| fault.spot.map_or(0, |spot| spot.line);
        let describe = |it: &PositionedError| format!("{}: {}", line(it), it.fault);
        faults.iter().map(describe).collect()
    }

    #[test]
    fn rows_of_numbers() {
        let rows = parse("0,1,2\r\n\n 3, 0,4\n5,99,0\n\n", FLITS).unwrap();
        assert_eq!(rows, [[0, 1, 2], [3, 0, 4], [5, 99, 0]]);
        assert_eq!(parse("0", FLITS).unwrap(), [[0]]);
    }

    #[test]
    fn all_faults_with_their_cells() {
        let number = "is not a number of flits, a whole number from 0 to 99";
        let columns = "but the matrix has 3 rows: it needs as many of both";
        assert_eq!(
            faults("0,-1,x\n\n1,7\n100,+1,0,2\n"),
            [
                format!("1: row 1, column 2 (P0 to P1): `-1` {number}"),
                format!("1: row 1, column 3 (P0 to P2): `x` {number}"),
                format!("3: row 2 has 2 columns, {columns}"),
                "3: row 2, column 2 (P1 to P1): 7 flits of a PE for itself; the diagonal is 0"
                    .to_owned(),
                format!("4: row 3 has 4 columns, {columns}"),
                format!("4: row 3, column 1 (P2 to P0): `100` {number}"),
                format!("4: row 3, column 2 (P2 to P1): `+1` {number}"),
            ]
        );
        let none = "0: no rows: give each PE one, like `0,3,5`";
        assert_eq!(faults(" \n"), [none]);
        let empty = format!("1: row 1, column 2 (P0 to P1): `` {number}");
        assert_eq!(faults("0,\n0,0")[0], empty);
    }
}
