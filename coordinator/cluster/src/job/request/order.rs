//! The order of a request's messages, and its errors.

use anyhow::bail;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Direction;

use crate::options::order::{GivenOrder, MessageOrder};
use crate::site::topology::of_option;
use crate::text::faults::Faults;

/// Returns the typed order, or the error that the algorithm `other` has none to choose; `by` names the
/// operation and the algorithms that have one.
pub fn order_by(
    order: Option<String>,
    other: Option<&str>,
    by: &str,
) -> anyhow::Result<Option<String>> {
    match (order, other) {
        (Some(order), Some(algorithm)) => bail!("--order {order} is for {by}, not by {algorithm}"),
        (order, _) => Ok(order),
    }
}

/// Parses an order of messages of these lengths, by PE index, as far as they are known; the PEs have these
/// names, or none. Returns all errors in it.
pub fn parse_order(
    text: &str,
    operation: Algorithm,
    (tree, names): (&Tree, &[String]),
    lengths: Option<&[u64]>,
) -> Result<MessageOrder, Faults> {
    let is_gather = operation.collective().direction() == Direction::Up;
    let order = match is_gather {
        true => GivenOrder::parse(text, names).map(MessageOrder::Given),
        false => MessageOrder::parse(text, names),
    };
    let faults = match &order {
        Ok(MessageOrder::Given(given)) if is_gather => given.faults_of_gather(tree, lengths),
        Ok(MessageOrder::Given(given)) => given.faults(tree, lengths),
        Ok(_) => Vec::new(),
        Err(fault) => vec![fault.clone()],
    };
    match order {
        Ok(order) if faults.is_empty() => Ok(order),
        _ => Err(Faults::all(faults.into_iter().map(of_option("--order")))),
    }
}
