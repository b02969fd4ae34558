//! A run as the papers' figures print it: one row per step, one column per PE.

use std::fmt::Write;

use super::{Item, Run};
use crate::pe::Control;

/// The network traffic of a run, cell by cell. A cell shows what its PE receives
/// in its step; a message's source shows each flit one step before the neighbour
/// has it, so a scatter's table begins at step 0. `(s)` is an order or wakeup
/// call, `[*]` the token, `<c>` a certificate, `m4,1` the first flit of M_4.
pub fn table(run: &Run) -> String {
    let pes = run.arrival_steps.len();
    let mut rows: Vec<Vec<String>> = vec![vec![String::new(); pes]; run.time_steps() as usize + 1];
    let mut put = |step: u64, pe: usize, text: &str| {
        let step = step as usize;
        if rows.len() <= step {
            rows.resize(step + 1, vec![String::new(); pes]);
        }
        let cell = &mut rows[step][pe];
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(text);
    };
    for crossing in &run.crossings {
        let text = match crossing.item {
            Item::Control(Control::Token) => "[*]".to_owned(),
            Item::Control(Control::Certificate(certificate)) => {
                format!("<{}>", certificate.lag_steps)
            }
            Item::Control(Control::Order { after_steps } | Control::Wakeup { after_steps }) => {
                format!("({after_steps})")
            }
            Item::Control(Control::Receipt) => continue,
            Item::Flit { message, index } => format!("m{},{index}", message.pe().0),
        };
        put(crossing.step, crossing.to.index(), &text);
        if let Item::Flit { message, .. } = crossing.item
            && message.source == crossing.from
        {
            put(crossing.step - 1, crossing.from.index(), &text);
        }
    }
    // Nothing happens in step 0 of a gather.
    let first_row = usize::from(
        rows.first()
            .is_some_and(|row| row.iter().all(String::is_empty)),
    );

    let mut widths = vec![0; pes];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.len());
        }
    }
    let mut out = String::from("Step");
    for (pe, width) in widths.iter_mut().enumerate() {
        let name = format!("P{pe}");
        *width = (*width).max(name.len());
        let _ = write!(out, "  {name:<width$}");
    }
    out = out.trim_end().to_owned() + "\n";
    for (step, row) in rows.iter().enumerate().skip(first_row) {
        let mut line = format!("{step:>4}");
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "  {cell:<width$}");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
