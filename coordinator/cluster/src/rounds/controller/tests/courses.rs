//! The course of rounds: prepared, triggered, watched, reported, or given up.

use super::*;

#[test]
fn rounds_follow_each_other_until_all_are_reported() {
    let mut scatter = Scatter::begun(2, &[]);
    for round in 1..=2 {
        let begins = ControllerEvent::RoundBegins(RoundId(round));
        assert!(scatter.updates().contains(&begins));
        scatter.receives(2.0, P0, progress(round, 700));
        // A report on the previous round does not count.
        scatter.receives(2.1, P0, report(round - 1, P0, 0));
        scatter.receives(2.2, P0, report(round, P0, 0));
        let collect = |pe| {
            let round = RoundId(round);
            (pe, ToPe::Collect { round })
        };
        assert_eq!(scatter.commands(), [P1, P2, P3].map(collect));
        // Reports are long: each gives the next one ten seconds.
        for (pe, seconds) in [(P3, 12.0), (P1, 21.9), (P2, 31.8)] {
            scatter.waits(seconds);
            scatter.receives(seconds, pe, report(round, pe, BYTES));
        }
        let (next, at_ns) = (RoundId(round + 1), 0);
        let trigger = (P0, ToPe::Trigger { round: next, at_ns });
        let expected = if round == 1 { vec![trigger] } else { vec![] };
        assert_eq!(scatter.commands(), expected);
    }
    assert!(scatter.controller.is_idle());
    assert_eq!(scatter.controller.poll_timeout(), None);
    let updates = scatter.updates().iter();
    let reported = updates.filter_map(|update| match update {
        ControllerEvent::RoundReported(all) => Some(all.len()),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), [4, 4]);
}

/// A round that begins by the PEs' clocks counts as given up from the moment at which these are
/// read: deliveries of the round before are not its own.
#[test]
fn a_pe_that_is_lost_between_rounds_fails_the_next_one() {
    let flood = Algorithm::GOSSIP_FLOOD;
    for rounds_before in [0, 1] {
        let mut gossip = Scatter::of(flood, vec![BYTES; 16], 2, &[], |_| {});
        let all = [P0, P1, P2, P3];
        for pe in all {
            gossip.receives(1.0, pe, FromPe::Prepared);
        }
        for round in 1..=rounds_before {
            for pe in all {
                gossip.receives(1.1, pe, FromPe::ClockRead { at_ns: 7 });
            }
            let whole = |at: PeId| {
                let others = all.into_iter().filter(|pe| *pe != at);
                let arrivals = others.map(|source| Arrival {
                    message: source.into(),
                    source,
                    destination: at,
                    ..arrival(at, BYTES)
                });
                FromPe::Report(Report::blank(RoundId(round), arrivals.collect()))
            };
            for pe in all {
                gossip.receives(1.2, pe, whole(pe));
            }
            let reported = |it: &ControllerEvent| matches!(it, ControllerEvent::RoundReported(_));
            assert!(gossip.updates().iter().any(reported));
        }
        gossip.receives(1.3, P1, FromPe::ClockRead { at_ns: 9 });
        gossip.loses(1.4, P2, killed());
        let gave_up = gossip.gave_up();
        assert_eq!(gave_up.delivered, []);
        let received = gave_up.lacking.iter().map(|it| it.received);
        let (round, lacking) = match rounds_before {
            0 => (None, vec![]),
            _ => (Some(RoundId(2)), vec![Some(0); 12]),
        };
        assert_eq!(gave_up.round, round);
        assert_eq!(received.collect::<Vec<_>>(), lacking);
    }
}

#[test]
fn pes_that_do_not_prepare_are_named_after_ten_seconds() {
    let mut scatter = Scatter::new(1, &[]);
    scatter.receives(1.0, P1, FromPe::Prepared);
    scatter.waits(9.999);
    assert!(scatter.controller.gave_up().is_none());
    let silent = "P0, P2, P3 did not answer within 10 s, preparing the rounds";
    let gave_up = scatter.fails(10.0, silent);
    assert_eq!(gave_up.trouble.failed_pes(), [P0, P2, P3]);
    assert_eq!(gave_up.round, None);
    assert!(gave_up.lacking.is_empty(), "nothing was sent");
}

#[test]
fn finished_files_extend_the_time_to_prepare() {
    let mut scatter = Scatter::new(1, &[]);
    for second in 1..100 {
        scatter.waits(f64::from(second));
        scatter.receives(f64::from(second), P2, pong(0.5, Doing::Working));
    }
    scatter.waits(108.4);
    assert!(scatter.controller.gave_up().is_none());
    scatter.waits(108.5);
    assert!(scatter.controller.gave_up().is_some());
}

#[test]
fn pes_that_do_not_report_are_named() {
    let mut scatter = Scatter::begun(1, &[]);
    for pe in [P0, P1, P3] {
        scatter.receives(2.0, pe, report(1, pe, BYTES));
    }
    scatter.commands();
    let gave_up = scatter.fails(14.0, "P2 did not answer within 10 s, reporting the round");
    assert_eq!(gave_up.phase, Phase::Report);
    assert_eq!(gave_up.delivered, [1, 3].map(DeliveryId));
}

#[test]
fn survivors_have_two_seconds_to_report_deliveries() {
    let mut scatter = Scatter::begun(1, &[]);
    scatter.receives(2.0, P0, progress(1, 1700));
    scatter.loses(3.0, P3, killed());
    scatter.receives(3.1, P1, report(1, P1, BYTES));
    scatter.receives(4.9, P2, report(1, P2, 700));
    scatter.waits(4.999);
    assert!(scatter.controller.gave_up.is_none(), "P0 may report yet");
    let gave_up = scatter.fails(5.0, "P3 was killed by signal 9 (SIGKILL)");
    let (moved, of) = (1700, 3 * BYTES);
    assert_eq!(gave_up.phase, Phase::Round { moved, of });
    assert_eq!(gave_up.round, Some(RoundId(1)));
    assert_eq!(gave_up.delivered, [DeliveryId(1)]);
    let lacking = gave_up.lacking.iter();
    let lacking = lacking.map(|it| (it.delivery.0, it.bytes, it.received));
    let expected = [(2, BYTES, Some(700)), (3, BYTES, None)];
    assert_eq!(lacking.collect::<Vec<_>>(), expected);
    // Later events do not count.
    scatter.receives(5.1, P0, report(1, P0, 0));
    scatter.loses(5.1, P0, killed());
    assert!(scatter.controller.gave_up().is_none());
    assert!(scatter.commands().is_empty());
}

#[test]
fn pes_that_are_lost_meanwhile_are_not_awaited() {
    let mut scatter = Scatter::begun(1, &[P1]);
    scatter.loses(3.0, P3, killed());
    scatter.loses(3.1, P0, PeLoss::Broken("reset".to_owned()));
    scatter.loses(3.2, P1, PeLoss::Closed);
    // The process of a PE that was started here reports its end.
    scatter.loses(3.3, P2, PeLoss::Closed);
    assert!(scatter.controller.gave_up.is_none());
    scatter.loses(3.4, P2, killed());
    scatter.fails(3.4, "P3 was killed by signal 9 (SIGKILL)");
}

#[test]
fn a_stalled_round_is_given_up_with_the_pe_at_fault() {
    let mut scatter = Scatter::begun(1, &[]);
    for second in 2..20 {
        let now = f64::from(second);
        let quiet = f64::from(second - 4).max(0.0);
        scatter.waits(now);
        scatter.receives(now, P0, pong(quiet, Doing::Sending(P1)));
        scatter.receives(now, P2, pong(quiet, Doing::Receiving(P1)));
        scatter.receives(now, P1, pong(quiet, Doing::Idle));
        let wants_look = second >= 5;
        if second < 13 {
            assert_eq!(scatter.controller.wants_look(), wants_look, "at {now}");
        }
    }
    let cause = "P1 at 10.0.0.1:7 takes nothing from P0; nothing has moved for 9.0 s";
    scatter.fails(30.0, cause);
    assert!(scatter.updates().contains(&ControllerEvent::GivesUpOn(P1)));
}

/// The timeout of a channel is detected elsewhere; here, time passes without events.
#[test]
fn a_round_without_any_events_is_given_up() {
    let cause = "every PE waits for another; nothing has moved for 9.0 s";
    Scatter::begun(1, &[]).fails(100.0, cause);
}

#[test]
fn a_slow_round_is_reported_each_time_that_its_duration_doubles() {
    let mut scatter = Scatter::begun(1, &[]);
    for tenth in 11..=100 {
        let now = f64::from(tenth) / 10.0;
        scatter.receives(now, P0, pong(0.0, Doing::Working));
    }
    let slow = scatter.updates().iter().filter_map(|update| match update {
        ControllerEvent::Slow { times, .. } => Some(*times),
        _ => None,
    });
    assert_eq!(slow.collect::<Vec<_>>(), [2.0, 4.0, 8.0]);
}

#[test]
fn requests_before_the_rounds_have_their_own_limits() {
    let requested = |pe, command| {
        let Scatter { controller, .. } = Scatter::new(1, &[]);
        let mut controller = RoundController::new(at(0.0), controller.setting);
        controller.request(at(0.0), pe, command);
        controller
    };
    let probe = |budget_ns| {
        let child = P2;
        ToPe::ProbeEdge { child, budget_ns }
    };
    let host = ToPe::MeasureHost { encrypted: false };
    for (pe, command, seconds, doing) in [
        (P1, probe(0), 30, "measuring its edges"),
        (P2, ToPe::MeasureFiles, 10, "measuring what files cost"),
        (P2, host, 10, "measuring what processes cost"),
    ] {
        let mut controller = requested(pe, command);
        let until = at(f64::from(seconds));
        assert_eq!(controller.poll_timeout(), Some(until));
        controller.handle_timeout(until);
        let why = format!("{pe} did not answer within {seconds} s, {doing}");
        let gave_up = controller.gave_up().unwrap();
        assert_eq!(gave_up.trouble.to_string(), why);
    }
    let longer = requested(P1, probe(2_000_000_000));
    assert_eq!(longer.poll_timeout(), Some(at(32.0)));
    let result = |child| FromPe::ProbeResult {
        child,
        exchanges: Vec::new(),
    };
    let mut answered = requested(P1, probe(0));
    answered.handle_reply(at(1.0), P1, result(P2));
    assert!(answered.is_idle());
    let update = ControllerEvent::Answered(P1, result(P2));
    assert_eq!(answered.poll_update(), Some(update));
    let mut wrong = requested(P1, probe(0));
    wrong.handle_reply(at(1.0), P1, result(P3));
    let gave_up = wrong.gave_up().unwrap();
    assert_eq!(gave_up.trouble.kind(), "protocol");
}
