//! The order of a scatter's or a gather's messages (`--order`).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use flitcast_plan::algorithms::gather_order::{GatherOrderError, child_ranks};
use flitcast_proto::{PeId, Tree};

use crate::options::pes::pe_called;
use crate::text::phrases;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MessageOrder {
    /// In a scatter, the message with the longest remaining time after it has left the source first:
    /// farthest destination first if links and flits are equal. In a gather, each as early as it can
    /// come.
    #[default]
    Tail,
    /// Farthest destination first, whatever links and flits cost.
    Fdf,
    /// The quickest order found for the measured links and hosts.
    Search,
    /// The order of the named PEs.
    Given(GivenOrder),
}

impl MessageOrder {
    /// Parses an order of PEs that have these names, or none.
    pub fn parse(text: &str, names: &[String]) -> Result<MessageOrder, String> {
        match text {
            "tail" => Ok(MessageOrder::Tail),
            "fdf" => Ok(MessageOrder::Fdf),
            "search" => Ok(MessageOrder::Search),
            _ if text.starts_with(GIVEN) => GivenOrder::parse(text, names).map(MessageOrder::Given),
            _ => Err(format!(
                "`{text}` is not an order: write tail, fdf, search or given:3,1,2 with the PEs' \
                 numbers or names"
            )),
        }
    }

    /// Returns the order in which flit sizes and packets are compared; the other orders begin with it.
    pub fn before_others(&self) -> MessageOrder {
        match self {
            MessageOrder::Fdf => MessageOrder::Fdf,
            _ => MessageOrder::Tail,
        }
    }
}

impl fmt::Display for MessageOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageOrder::Tail => f.write_str("tail"),
            MessageOrder::Fdf => f.write_str("fdf"),
            MessageOrder::Search => f.write_str("search"),
            MessageOrder::Given(given) => given.fmt(f),
        }
    }
}

/// The word before the PEs of a given order.
pub const GIVEN: &str = "given:";

/// The PEs whose messages follow each other in this order: destinations of a scatter, sources of a
/// gather.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOrder(Arc<[PeId]>);

/// Describes the error of an order that no gather can follow.
pub fn gather_fault(fault: GatherOrderError) -> String {
    format!("{fault}; a gather takes the messages in the order of a walk down the tree")
}

impl GivenOrder {
    pub fn parse(text: &str, names: &[String]) -> Result<GivenOrder, String> {
        let list = text.strip_prefix(GIVEN).ok_or_else(|| {
            format!("`{text}` is not an order: write given:3,1,2 with the PEs' numbers or names")
        })?;
        let pe = |part: &str| pe_called(part.trim(), names);
        let pes: Result<Arc<[PeId]>, String> = list.split(',').map(pe).collect();
        pes.map(GivenOrder)
    }

    pub fn pes(&self) -> &[PeId] {
        &self.0
    }

    /// Returns all errors in the order for messages of these lengths, by PE index; without lengths, for
    /// messages of unknown length.
    pub fn faults(&self, tree: &Tree, lengths: Option<&[u64]>) -> Vec<String> {
        let mut faults = Vec::new();
        let mut named = BTreeSet::new();
        for &pe in self.pes() {
            if !tree.contains(pe) || pe == tree.root() {
                faults.push(format!("{pe} is not a PE with a message in this tree"));
            } else if lengths.is_some_and(|lengths| lengths[pe.index()] == 0) {
                faults.push(format!("the message of {pe} is null: leave {pe} out"));
            } else if !named.insert(pe) {
                faults.push(format!("{pe} is named twice"));
            }
        }
        faults.extend(lengths.and_then(|lengths| self.missing(tree, lengths)));
        faults
    }

    /// Returns the error that PEs with a nonnull message are not in the order. `lengths` are by PE index.
    pub fn missing(&self, tree: &Tree, lengths: &[u64]) -> Option<String> {
        let named: BTreeSet<PeId> = self.pes().iter().copied().collect();
        let missing = tree.below_root().filter(|pe| lengths[pe.index()] > 0);
        let missing: Vec<PeId> = missing.filter(|pe| !named.contains(pe)).collect();
        let are = match missing.len() {
            0 => return None,
            1 => "is",
            _ => "are",
        };
        Some(format!("{} {are} missing", phrases::names(&missing)))
    }

    /// Returns all errors in the order for a gather.
    pub fn faults_of_gather(&self, tree: &Tree, lengths: Option<&[u64]>) -> Vec<String> {
        let mut faults = self.faults(tree, lengths);
        if faults.is_empty() {
            faults.extend(child_ranks(tree, self.pes()).err().map(gather_fault));
        }
        faults
    }
}

impl fmt::Display for GivenOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(|pe| pe.0.to_string()).collect();
        write!(f, "{GIVEN}{}", numbers.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(text: &str) -> GivenOrder {
        GivenOrder::parse(text, &[]).expect("it is an order")
    }

    #[test]
    fn an_order_is_read_as_it_is_written() {
        for text in ["tail", "fdf", "search", "given:3,1,2"] {
            let order = MessageOrder::parse(text, &[]).expect("it is an order");
            assert_eq!(order.to_string(), text);
        }
        assert_eq!(given("given:P3, 1").pes(), [PeId(3), PeId(1)]);
        let names = ["root", "2", "beta"].map(str::to_owned);
        let named = GivenOrder::parse("given:beta,2,p0", &names).expect("it is an order");
        assert_eq!(named.pes(), [PeId(2), PeId(1), PeId(0)]);
        for text in ["", "given:", "given:1,,2", "given:x", "nearest"] {
            assert!(MessageOrder::parse(text, &names).is_err(), "{text}");
        }
    }

    #[test]
    fn the_root_has_no_message() {
        let tree = Tree::from_parents(vec![None, Some(PeId(0))]).expect("it is a tree");
        let faults = given("given:0,1").faults(&tree, Some(&[0, 5]));
        assert_eq!(faults, ["P0 is not a PE with a message in this tree"]);
    }
}
