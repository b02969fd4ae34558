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
    scatter.waits(10.0);
    let gave_up = scatter.gave_up();
    assert_eq!(
        gave_up.trouble.to_string(),
        "P2 ended with exit status 7; its last words: no space / left"
    );
    assert_eq!(gave_up.trouble.failed_pes(), [P2]);
}

#[test]
fn a_death_is_a_better_cause_than_a_neighbours_word_or_a_closed_channel() {
    for (pe, first) in [(P1, true), (P3, true), (P2, false)] {
        let mut scatter = Scatter::begun(1, &[]);
        match first {
            true => scatter.says(2.0, pe, fault(Some(P2), "the connection closed")),
            false => scatter.loses(2.0, P2, PeLoss::Closed),
        }
        assert!(
            scatter.words().is_empty(),
            "nobody is told before it is known"
        );
        scatter.says(2.1, P3, fault(Some(P2), "it is closed here too"));
        scatter.loses(2.2, P2, PeLoss::Closed);
        scatter.loses(2.499, P2, killed());
        scatter.waits(10.0);
        assert_eq!(scatter.cause(), "P2 was killed by signal 9 (SIGKILL)");
    }
}

#[test]
fn so_is_a_fault_of_somebodys_own_but_not_another_ones_suspicion() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, fault(Some(P2), "P2 closed the connection"));
    scatter.says(2.1, P2, fault(Some(P3), "P3 closed the connection"));
    scatter.says(2.2, P3, fault(None, "the disk is full"));
    scatter.waits(10.0);
    let gave_up = scatter.gave_up();
    assert_eq!(gave_up.trouble.to_string(), "P3: the disk is full");
    assert_eq!(gave_up.trouble.failed_pes(), [P3]);
}

/// P1 finds its connection to P2 reset by P2, which had found P1 unreachable.
#[test]
fn who_ended_a_connection_knows_better_why() {
    let hung_up = |peer, reason: &str| {
        let mut word = fault(Some(peer), reason);
        if let FromPe::Fault { hung_up, .. } = &mut word {
            *hung_up = true;
        }
        word
    };
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, hung_up(P2, "P2 reset the connection"));
    scatter.says(2.0, P2, fault(Some(P1), "P1 cannot be reached any more"));
    scatter.says(2.1, P3, hung_up(P2, "P2 closed the connection"));
    scatter.waits(10.0);
    assert_eq!(scatter.cause(), "P2: P1 cannot be reached any more");
    // If two PEs blame each other, the first report counts.
    let mut scatter = Scatter::begun(1, &[]);
    scatter.says(2.0, P1, hung_up(P2, "P2 closed the connection"));
    scatter.says(2.0, P2, hung_up(P1, "P1 closed the connection"));
    scatter.waits(10.0);
    assert_eq!(scatter.cause(), "P1: P2 closed the connection");
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
    scatter.waits(10.0);
    let gave_up = scatter.gave_up();
    assert_eq!(gave_up.trouble.to_string(), "P1: it takes nothing");
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
    scatter.waits(10.0);
    assert_eq!(scatter.gave_up().trouble.failed_pes(), [P2]);
}

#[test]
fn input_that_cannot_be_read_is_nobodys_fault() {
    let mut scatter = Scatter::begun(1, &[]);
    let word = FromPe::Fault {
        round: RoundId(1),
        peer: None,
        reason: "p2: permission denied".to_owned(),
        bad_input: true,
        output_stands: false,
        hung_up: false,
        changed: Vec::new(),
    };
    scatter.says(2.0, P0, word);
    scatter.waits(10.0);
    let gave_up = scatter.gave_up();
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
    let gave_up = scatter.gave_up();
    assert_eq!(gave_up.trouble.to_string(), "P2 has been silent for 3.0 s");
    assert_eq!(gave_up.delivered, [1, 3].map(DeliveryId));
}

#[test]
fn of_who_has_joined_the_channel_s_end_is_all_that_is_heard() {
    for (lost, how) in [
        (
            PeLoss::Closed,
            "its process has ended, or was told to leave by a signal or by `flitcast down`",
        ),
        (
            PeLoss::Broken("connection reset".to_owned()),
            "its channel broke: connection reset",
        ),
    ] {
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
    scatter.waits(10.0);
    let cause = "P1 cannot be understood any more: frame too long";
    assert_eq!(scatter.cause(), cause);
}

#[test]
fn a_word_out_of_turn_ends_it() {
    let say = |begun: bool, pe, word| {
        let mut scatter = match begun {
            true => Scatter::begun(2, &[]),
            false => Scatter::new(2, &[]),
        };
        scatter.says(1.5, pe, word);
        scatter.waits(10.0);
        if !begun {
            scatter.words();
            return scatter
                .controller
                .gave_up()
                .map(|it| it.trouble.to_string());
        }
        Some(scatter.cause())
    };
    let told = |pe: PeId, kind: &str| Some(format!("{pe}: unexpected message: {kind}"));
    assert_eq!(say(true, P2, odd()), told(P2, "Line"));
    assert_eq!(say(true, P1, FromPe::Prepared), told(P1, "Prepared"));
    assert_eq!(say(false, P1, odd()), told(P1, "Line"));
    // Only P0 ends a round before a report is requested.
    let early = say(true, P2, report(1, P2, BYTES));
    assert_eq!(early, told(P2, "Report"));
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
    scatter.waits(60.0);
    let gave_up = scatter.gave_up();
    let cause = gave_up.trouble.to_string();
    assert!(cause.starts_with("the Prepare message for P1 would have "));
    assert!(cause.contains("the limit is 33554432: the schedule has too many crossings there"));
    assert_eq!(gave_up.trouble.failed_pes(), []);
    assert_eq!(gave_up.trouble.pe(), None);
}
