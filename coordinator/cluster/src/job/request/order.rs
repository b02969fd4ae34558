//! The order of a request's messages, and its errors.

use anyhow::bail;
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;
use flitcast_proto::ops::Direction;

use crate::job::fault::RequestError;
use crate::options::order::MessageOrder;
use crate::site::topology::of_option;

/// Returns the order, or the error that the algorithm `other` has none to choose; `by` names the
/// operation and the algorithms that have one.
pub fn order_by(
    order: MessageOrder,
    other: Option<&str>,
    by: &str,
) -> anyhow::Result<MessageOrder> {
    match (order, other) {
        (MessageOrder::Tail, _) => Ok(MessageOrder::Tail),
        (order, None) => Ok(order),
        (order, Some(algorithm)) => bail!("--order {order} is for {by}, not by {algorithm}"),
    }
}

/// Returns all errors in an order of messages of these lengths, by PE index, as far as they are known.
pub fn order_faults(
    order: &MessageOrder,
    operation: Algorithm,
    tree: &Tree,
    lengths: Option<&[u64]>,
) -> Vec<RequestError> {
    let MessageOrder::Given(given) = order else {
        return Vec::new();
    };
    let faults = match operation.collective().direction() {
        Direction::Up => given.faults_of_gather(tree, lengths),
        Direction::Down | Direction::Across => given.faults(tree, lengths),
    };
    let faults = faults.into_iter().map(of_option("--order"));
    faults.map(RequestError::from).collect()
}
