//! The first error, and the PEs without which the round could have continued.

use flitcast_proto::MessageId;
use flitcast_proto::items::{Packing, ScheduledHop};

use super::*;

#[test]
fn a_death_is_the_cause_at_once_with_the_last_lines() {
    let mut scatter = Scatter::begun(1, &[]);
    let last_words = vec!["no space".to_owned(), "left".to_owned()];
    let how = "ended with exit status 7".to_owned();
    scatter.loses(2.0, P2, PeLoss::Exited { how, last_words });
    let gave_up = scatter.fails(
        10.0,
        "P2 ended with exit status 7; it last printed: no space / left",
    );
    assert_eq!(gave_up.trouble.failed_pes(), [P2]);
}

#[test]
fn a_death_is_a_better_cause_than_a_suspicion_or_a_closed_channel() {
    for first in [Some(P1), Some(P3), None] {
        let mut scatter = Scatter::begun(1, &[]);
        match first {
            Some(pe) => scatter.receives(2.0, pe, fault(Some(P2), "the connection closed")),
            None => scatter.loses(2.0, P2, PeLoss::Closed),
        }
        assert_eq!(scatter.commands(), [], "the cause is not known yet");
        scatter.receives(2.1, P3, fault(Some(P2), "it is closed here too"));
        scatter.loses(2.2, P2, PeLoss::Closed);
        scatter.loses(2.499, P2, killed());
        scatter.fails(10.0, "P2 was killed by signal 9 (SIGKILL)");
    }
}

#[test]
fn a_fault_without_a_suspect_is_a_better_cause_than_a_suspicion() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P1, fault(Some(P2), "P2 closed the connection"));
    scatter.receives(2.1, P2, fault(Some(P3), "P3 closed the connection"));
    scatter.receives(2.2, P3, fault(None, "the disk is full"));
    let gave_up = scatter.fails(10.0, "P3: the disk is full");
    assert_eq!(gave_up.trouble.failed_pes(), [P3]);
}

/// P1 finds its connection to P2 reset by P2, which had found P1 unreachable.
#[test]
fn the_pe_that_ended_a_connection_has_the_better_cause() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P1, hung_up(P2, "P2 reset the connection"));
    scatter.receives(2.0, P2, fault(Some(P1), "P1 cannot be reached any more"));
    scatter.receives(2.1, P3, hung_up(P2, "P2 closed the connection"));
    scatter.fails(10.0, "P2: P1 cannot be reached any more");
    // If two PEs blame each other, the first report counts.
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P1, hung_up(P2, "P2 closed the connection"));
    scatter.receives(2.0, P2, hung_up(P1, "P1 closed the connection"));
    scatter.fails(10.0, "P1: P2 closed the connection");
}

#[test]
fn the_first_cause_holds_after_half_a_second_without_a_better_one() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P1, fault(Some(P2), "it takes nothing"));
    scatter.receives(2.3, P3, odd());
    scatter.waits(2.499);
    assert!(scatter.commands().is_empty());
    scatter.waits(2.5);
    scatter.loses(2.6, P3, killed());
    let gave_up = scatter.fails(10.0, "P1: it takes nothing");
    assert_eq!(gave_up.trouble.pe(), Some(P2), "whom P1 blames");
}

#[test]
fn a_fault_without_a_suspect_is_the_cause_at_once() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P2, fault(None, "the disk is full"));
    assert_eq!(scatter.commands().len(), 4);
    // A process outside the tree may be suspected, but is not at fault.
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P2, fault(Some(PeId(77)), "who is that"));
    let gave_up = scatter.fails(10.0, "P2: who is that");
    assert_eq!(gave_up.trouble.failed_pes(), [P2]);
}

#[test]
fn unreadable_input_is_no_fault_of_a_pe() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P0, bad_input("p2: permission denied"));
    let gave_up = scatter.fails(10.0, "P0: p2: permission denied");
    assert_eq!(gave_up.trouble.kind(), "input");
    assert!(gave_up.trouble.failed_pes().is_empty());
}

#[test]
fn silent_pes_are_not_awaited() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.loses(5.0, P2, silent());
    for pe in [P0, P1, P3] {
        assert!(scatter.controller.gave_up.is_none());
        scatter.receives(5.1, pe, report(1, pe, BYTES));
    }
    assert!(scatter.updates().contains(&ControllerEvent::GivesUpOn(P2)));
    let gave_up = scatter.fails(5.1, "P2 has been silent for 3.0 s");
    assert_eq!(gave_up.delivered, [1, 3].map(DeliveryId));
}

#[test]
fn the_end_of_its_channel_is_the_death_of_a_joined_pe() {
    let broken = PeLoss::Broken("connection reset".to_owned());
    let reset = "its channel broke: connection reset";
    let left = "its process has ended, or was told to leave by a signal or by `flitcast down`";
    for (lost, how) in [(PeLoss::Closed, left), (broken, reset)] {
        for is_suspected in [false, true] {
            let mut scatter = Scatter::begun(1, &[P2]);
            if is_suspected {
                scatter.receives(1.9, P1, fault(Some(P2), "it closed"));
            }
            scatter.loses(2.0, P2, lost.clone());
            assert_eq!(scatter.commands().len(), 4, "all PEs get it at once");
            let trouble = match &scatter.controller.state {
                State::GivingUp(trouble, _) => trouble.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(trouble, format!("P2 is gone: {how}"));
        }
    }
}

#[test]
fn broken_channels_are_reported() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.loses(2.0, P1, PeLoss::Broken("frame too long".to_owned()));
    scatter.fails(10.0, "P1 cannot be understood any more: frame too long");
}

#[test]
fn unexpected_replies_end_the_rounds() {
    for (begun, pe, reply) in [
        (true, P2, odd()),
        (true, P1, FromPe::Prepared),
        (false, P1, odd()),
        // Only P0 ends a round before a report is requested.
        (true, P2, report(1, P2, BYTES)),
    ] {
        let mut scatter = match begun {
            true => Scatter::begun(2, &[]),
            false => Scatter::new(2, &[]),
        };
        let cause = format!("{pe}: unexpected message: {}", reply.kind());
        scatter.receives(1.5, pe, reply);
        scatter.fails(10.0, &cause);
    }
}

/// No PE is at fault, so none is excluded from a retry.
#[test]
fn a_schedule_that_no_frame_can_carry_is_not_sent() {
    let mut scatter = Scatter::with(1, &[], |schedules| {
        let crossing = ScheduledHop {
            message: MessageId(u64::MAX),
            offset: u64::MAX,
            flits: u64::MAX,
            from: P1,
            to: P2,
            first_step: u64::MAX,
            every: u64::MAX,
            packing: Packing::Flits,
        };
        schedules[1].hops = vec![crossing; 600_000];
    });
    let gave_up = scatter.gave_up();
    let cause = gave_up.trouble.to_string();
    assert!(cause.starts_with("the Prepare message for P1 would have "));
    assert!(cause.contains("the limit is 33554432: the schedule has too many crossings there"));
    assert_eq!(gave_up.trouble.failed_pes(), []);
    assert_eq!(gave_up.trouble.pe(), None);
}
