//! The crossings of a tree's edges in a round, step by step, in the form of the papers' figures: one
//! row per step, one column per PE.

use flitcast_proto::PeId;
use flitcast_proto::items::{Control, Message};

/// Something that crosses an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing<T = Item> {
    /// The step in which it crosses.
    pub step: u64,
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    pub item: T,
}

impl<T> Crossing<T> {
    pub(crate) fn new(step: u64, [from, to]: [PeId; 2], item: T) -> Crossing<T> {
        Crossing {
            step,
            from,
            to,
            item,
        }
    }
}

/// An item that crosses an edge in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A control item.
    Control(Control),
    /// Flit `index` (from 1) of a message.
    Flit {
        message: Message,
        /// 1 for the head flit.
        index: u64,
    },
}

/// Returns the network traffic of a run, cell by cell, below a header. A cell shows what its PE receives in
/// its step; a message's source shows each flit one step before the neighbour has it, so a scatter's table
/// begins at step 0. `(s)` is an order or wakeup call, `[*]` the token, `<c>` a certificate, `m4,1` the first
/// flit of M_4.
pub fn table(crossings: &[Crossing], pes: usize) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = vec![vec![String::new(); pes]];
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
    for crossing in crossings {
        let text = match crossing.item {
            Item::Control(Control::Token) => "[*]".to_owned(),
            Item::Control(Control::Certificate(it)) => format!("<{}>", it.lag),
            Item::Control(Control::Order { after } | Control::Wakeup { after }) => {
                format!("({after})")
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
    let names = (0..pes).map(|pe| format!("P{pe}"));
    let header = ["Step".to_owned()].into_iter().chain(names).collect();
    let steps = rows.into_iter().enumerate();
    // Nothing happens in step 0 of a gather.
    let steps = steps.filter(|(step, row)| *step > 0 || !row.iter().all(String::is_empty));
    let steps = steps.map(|(step, mut row)| {
        row.insert(0, format!("{step:>4}"));
        row
    });
    [header].into_iter().chain(steps).collect()
}
