//! The lengths of messages made of files, as the PEs will read them.

use std::path::Path;

use anyhow::anyhow;
use flitcast_node::payload::{self, Others, PayloadError};
use flitcast_plan::Algorithm;
use flitcast_proto::items::Address;
use flitcast_proto::ops::Layout;
use flitcast_proto::{DeliveryId, Tree};

use crate::job::fault::{RequestError, one};
use crate::text::units::{Bytes, MAX_TOTAL_BYTES};

/// Reads the input as the PEs will: on one machine an error for them is an error here. Returns the
/// lengths by delivery, without those that are left out. Entries can be called by the
/// `names` of PEs, if there are any. The distribution of files only repeats if none
/// has changed, so all are checked.
pub fn measure_input(
    input: &Path,
    operation: Algorithm,
    spread: bool,
    tree: &Tree,
    names: &[String],
    left_out: impl Fn(DeliveryId) -> bool,
) -> Result<Vec<u64>, Vec<RequestError>> {
    let of_input = |fault: PayloadError| RequestError::from(anyhow!("--input: {fault}"));
    let all = |faults: Vec<PayloadError>| faults.into_iter().map(of_input).collect::<Vec<_>>();
    let all_pes = Others::all(tree.len()).named(names);
    // By id.
    let contents = match operation.collective().layout() {
        Layout::ByDestination | Layout::BySource => {
            payload::scatter_input(input, spread, Others::of(tree).named(names))
        }
        Layout::Whole => payload::whole_input(input.to_owned())
            .map(|whole| vec![Some(whole)])
            .map_err(|fault| vec![fault]),
        Layout::Shards => payload::read_input_dir(input, all_pes),
        Layout::Pieces => payload::pieces_input(input, all_pes),
    };
    let mut contents = contents.map_err(all)?;
    let owed = |it: &DeliveryId| {
        operation.collective().can_deliver(tree, *it) && (spread || !left_out(*it))
    };
    let owed = |message: Address| -> Vec<DeliveryId> {
        let ends = message.ends(tree);
        let deliveries = ends.map(|at| operation.collective().delivery(tree, message.id, at));
        deliveries.filter(owed).collect()
    };
    for message in operation.collective().messages(tree) {
        contents[message.id.index()].take_if(|_| owed(message).is_empty());
    }
    let measured = payload::measure_all(&contents).map_err(all)?;
    let total = measured
        .iter()
        .try_fold(0u64, |sum, message| sum.checked_add(message.bytes));
    if total.is_none_or(|total| total > MAX_TOTAL_BYTES) {
        let (input, most) = (input.display(), Bytes(MAX_TOTAL_BYTES));
        let fault = anyhow!("the messages below {input} are longer than {most} together");
        return one(fault);
    }
    let mut bytes = vec![0; operation.collective().deliveries(tree)];
    for message in operation.collective().messages(tree) {
        for delivery in owed(message) {
            bytes[delivery.index()] = measured[message.id.index()].bytes;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::job::test_tree::tree;

    const GOSSIP: Algorithm = Algorithm::GOSSIP_FLOOD;
    const EXCHANGE: Algorithm = Algorithm::EXCHANGE_TREE;

    /// Lengths of entries are as in the input; deliveries that are left out have length 0, and their
    /// entries may be missing.
    #[test]
    fn entries_are_measured_by_delivery() {
        let dir = tempfile::tempdir().unwrap();
        let measure = |operation, left_out: &[u32]| {
            let left_out = |it: DeliveryId| left_out.contains(&it.0);
            measure_input(dir.path(), operation, false, &tree("star:3"), &[], left_out)
        };
        // All with one modification time, which is a part of a message: another time could change its
        // length.
        let write = |name: &str| {
            let file = std::fs::File::create(dir.path().join(name)).unwrap();
            (&file).write_all(b"p0").unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        };
        write("p0");
        write("p2");
        let whole = measure(GOSSIP, &[]).unwrap();
        let bytes = whole[1];
        assert!(bytes > 0);
        assert_eq!(whole, [0, bytes, bytes, 0, 0, 0, bytes, bytes, 0]);
        assert_eq!(
            measure(GOSSIP, &[2, 6, 7]).unwrap(),
            [0, bytes, 0, 0, 0, 0, 0, 0, 0]
        );
        for name in ["p0", "p2"] {
            std::fs::remove_file(dir.path().join(name)).unwrap();
        }
        for name in ["p0/p2", "p1/p0"] {
            let path = dir.path().join(name);
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            write(name);
        }
        let pieces = measure(EXCHANGE, &[3]).unwrap();
        assert_eq!(pieces, [0, 0, bytes, 0, 0, 0, 0, 0, 0]);
        std::fs::write(dir.path().join("p1/p1"), "").unwrap();
        let faults = measure(EXCHANGE, &[]).unwrap_err();
        assert!(faults[0].to_string().contains("p1/p1"), "{}", faults[0]);
    }
}
