//! The first error, and the PEs without which the round could have continued.

use flitcast_proto::MessageId;
use flitcast_proto::items::{Packing, ScheduledHop};

use super::*;

#[test]
fn a_death_is_the_cause_at_once_with_its_last_words() {
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
fn a_death_is_a_better_cause_than_a_neighbours_word_or_a_closed_channel() {
    for first in [Some(P1), Some(P3), None] {
        let mut scatter = Scatter::begun(1, &[]);
        match first {
            Some(pe) => scatter.says(2.0, pe, fault(Some(P2), "the connection closed")),
            None => scatter.loses(2.0, P2, PeLoss::Closed),
        }
        assert_eq!(scatter.words(), [], "the cause is not known yet");
        scatter.says(2.1, P3, fault(Some(P2), "it is closed here too"));
        scatter.loses(2.2, P2, PeLoss::Closed);
        scatter.loses(2.499, P2, killed());
        scatter.fails(10.0, "P2 was killed by signal 9 (SIGKILL)");
    }
}

#[test]
fn so_is_a_fault_of_somebodys_own_but_not_another_ones_suspicion() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, fault(Some(P2), "P2 closed the connection"));
    scatter.says(2.1, P2, fault(Some(P3), "P3 closed the connection"));
    scatter.says(2.2, P3, fault(None, "the disk is full"));
    let gave_up = scatter.fails(10.0, "P3: the disk is full");
    assert_eq!(gave_up.trouble.failed_pes(), [P3]);
}

/// P1 finds its connection to P2 reset by P2, which had found P1 unreachable.
#[test]
fn who_ended_a_connection_knows_better_why() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, hung_up(P2, "P2 reset the connection"));
    scatter.says(2.0, P2, fault(Some(P1), "P1 cannot be reached any more"));
    scatter.says(2.1, P3, hung_up(P2, "P2 closed the connection"));
    scatter.fails(10.0, "P2: P1 cannot be reached any more");
    // If two PEs blame each other, the first report counts.
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, hung_up(P2, "P2 closed the connection"));
    scatter.says(2.0, P2, hung_up(P1, "P1 closed the connection"));
    scatter.fails(10.0, "P1: P2 closed the connection");
}

#[test]
fn without_a_better_one_the_first_cause_holds_after_half_a_second() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, fault(Some(P2), "it takes nothing"));
    scatter.says(2.3, P3, odd());
    scatter.waits(2.499);
    assert!(scatter.words().is_empty());
    scatter.waits(2.5);
    scatter.loses(2.6, P3, killed());
    let gave_up = scatter.fails(10.0, "P1: it takes nothing");
    assert_eq!(gave_up.trouble.pe(), Some(P2), "whom P1 blames");
}

#[test]
fn who_blames_nobody_needs_no_better_cause() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P2, fault(None, "the disk is full"));
    assert_eq!(scatter.words().len(), 4);
    // A process outside the tree may be suspected, but is not at fault.
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P2, fault(Some(PeId(77)), "who is that"));
    let gave_up = scatter.fails(10.0, "P2: who is that");
    assert_eq!(gave_up.trouble.failed_pes(), [P2]);
}

#[test]
fn input_that_cannot_be_read_is_nobodys_fault() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P0, bad_input("p2: permission denied"));
    let gave_up = scatter.fails(10.0, "P0: p2: permission denied");
    assert_eq!(gave_up.trouble.kind(), "input");
    assert!(gave_up.trouble.failed_pes().is_empty());
}

#[test]
fn who_is_silent_is_not_waited_for() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.loses(5.0, P2, silent());
    for pe in [P0, P1, P3] {
        assert!(scatter.controller.gave_up.is_none());
        scatter.says(5.1, pe, report(1, pe, BYTES));
    }
    assert!(scatter.updates().contains(&ControllerEvent::GivesUpOn(P2)));
    let gave_up = scatter.fails(5.1, "P2 has been silent for 3.0 s");
    assert_eq!(gave_up.delivered, [1, 3].map(DeliveryId));
}

#[test]
fn of_who_has_joined_the_channel_s_end_is_all_that_is_heard() {
    let broken = PeLoss::Broken("connection reset".to_owned());
    let reset = "its channel broke: connection reset";
    let left = "its process has ended, or was told to leave by a signal or by `flitcast down`";
    for (lost, how) in [(PeLoss::Closed, left), (broken, reset)] {
        for is_suspected in [false, true] {
            let mut scatter = Scatter::begun(1, &[P2]);
            if is_suspected {
                scatter.says(1.9, P1, fault(Some(P2), "it closed"));
            }
            scatter.loses(2.0, P2, lost.clone());
            assert_eq!(scatter.words().len(), 4, "all are told at once");
            let trouble = match &scatter.controller.state {
                State::GivingUp(trouble, _) => trouble.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(trouble, format!("P2 is gone: {how}"));
        }
    }
}

#[test]
fn a_channel_that_cannot_be_understood_is_told() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.loses(2.0, P1, PeLoss::Broken("frame too long".to_owned()));
    scatter.fails(10.0, "P1 cannot be understood any more: frame too long");
}

#[test]
fn a_word_out_of_turn_ends_it() {
    for (begun, pe, word) in [
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
        let cause = format!("{pe}: unexpected message: {}", word.kind());
        scatter.says(1.5, pe, word);
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
