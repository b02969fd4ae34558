//! The order in which a scatter's messages leave their source (`--order`).

use clap::ValueEnum;

/// An order of a scatter's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MessageOrder {
    /// The message with the longest remaining time after it has left the source first: farthest
    /// destination first if links and flits are equal.
    Tail,
    /// Farthest destination first, whatever links and flits cost.
    Fdf,
    /// The quickest order found for the measured links and hosts.
    Search,
}

impl MessageOrder {
    /// Returns the order in which flit sizes and packets are compared; a search begins with it.
    pub fn before_search(self) -> MessageOrder {
        match self {
            MessageOrder::Search => MessageOrder::Tail,
            order => order,
        }
    }
}
