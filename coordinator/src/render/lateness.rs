//! The parts of a report about a late round and about packets that TCP retransmitted, which are the
//! usual reason.

use std::cmp::Reverse;

use flitcast_proto::PeId;

use flitcast_cluster::text::phrases::counted;

/// Returns the end of the line with a round's times, and what was retransmitted if that line does not
/// contain it. `times` is the slowdown against the prediction, if it is worth reporting; `resent` is the
/// number of packets that TCP retransmitted at each PE.
pub fn lateness(
    times: Option<f64>,
    resent: impl Iterator<Item = (PeId, u64)> + Clone,
) -> (Option<String>, Option<String>) {
    let resent = retransmissions(resent);
    match times {
        None => (None, resent),
        Some(times) => {
            let why = resent.as_deref().unwrap_or("slow");
            let end = format!("; {why}, x {times:.1} against the prediction");
            (Some(end), None)
        }
    }
}

/// Describes the retransmitted packets: their number and the PE with most of them; `None` if there
/// were none.
fn retransmissions(resent: impl Iterator<Item = (PeId, u64)> + Clone) -> Option<String> {
    let all: u64 = resent.clone().map(|(_, packets)| packets).sum();
    let (pe, most) = resent.max_by_key(|(pe, packets)| (*packets, Reverse(*pe)))?;
    if all == 0 {
        return None;
    }
    let packets = counted(all, "packet", "packets");
    Some(match most == all {
        true => format!("TCP retransmitted {packets}, at {pe}"),
        false => format!("TCP retransmitted {packets}, most ({most}) at {pe}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lateness_of(times: Option<f64>, resent: &[u64]) -> (Option<String>, Option<String>) {
        lateness(times, (0..).map(PeId).zip(resent.iter().copied()))
    }

    #[test]
    fn retransmissions_name_the_pe_with_most() {
        for (resent, line) in [
            (&[0, 0, 1][..], "TCP retransmitted 1 packet, at P2"),
            (&[0, 41], "TCP retransmitted 41 packets, at P1"),
            (
                &[2, 0, 1, 38],
                "TCP retransmitted 41 packets, most (38) at P3",
            ),
            (&[0, 2, 2], "TCP retransmitted 4 packets, most (2) at P1"),
        ] {
            assert_eq!(lateness_of(None, resent), (None, Some(line.to_owned())));
        }
        assert_eq!(lateness_of(None, &[0, 0, 0]), (None, None));
        assert_eq!(lateness_of(None, &[]), (None, None));
    }

    #[test]
    fn a_late_round_is_slow_only_if_nothing_was_lost() {
        let slow = "; slow, x 4.1 against the prediction";
        let end = |text: &str| (Some(text.to_owned()), None);
        assert_eq!(lateness_of(Some(4.09), &[0, 0]), end(slow));
        let lost = "; TCP retransmitted 3 packets, most (2) at P1, x 4.1 against the prediction";
        assert_eq!(lateness_of(Some(4.09), &[1, 2]), end(lost));
    }
}
