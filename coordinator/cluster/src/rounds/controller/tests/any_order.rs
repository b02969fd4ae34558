//! Rounds end for any events in any order.

use proptest::prelude::*;

use super::*;
use crate::tuning::{ANSWER, DEATH_NOTICE, LAST_REPORTS};

#[derive(Clone, Debug)]
enum Input {
    Reply(Box<FromPe>),
    Lost(PeLoss),
}

fn any_pe() -> impl Strategy<Value = PeId> {
    (0..5_u32).prop_map(PeId)
}

fn any_doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        Just(Doing::Idle),
        Just(Doing::Working),
        Just(Doing::Listening),
        any_pe().prop_map(Doing::Sending),
        any_pe().prop_map(Doing::Receiving),
    ]
}

/// Mostly events of successful rounds.
fn any_input() -> impl Strategy<Value = Input> {
    let any_report = (0..4_u64, any_pe(), 0..=BYTES);
    let any_report = any_report.prop_map(|(round, pe, bytes)| report(round, pe, bytes));
    let pong = (0.0..600.0, any_doing()).prop_map(|(quiet, doing)| pong(quiet, doing));
    let progress = any::<u64>().prop_map(|bytes| progress(1, bytes));
    let accused = proptest::option::of(any_pe());
    let reply = prop_oneof![
        8 => Just(FromPe::Prepared),
        8 => any_report,
        4 => pong,
        2 => progress,
        1 => accused.prop_map(|peer| fault(peer, "it is broken")),
        1 => Just(odd()),
    ];
    let lost = prop_oneof![
        Just(killed()),
        Just(silent()),
        Just(PeLoss::Closed),
        Just(PeLoss::Broken("reset".to_owned())),
    ];
    prop_oneof![
        30 => reply.prop_map(|reply| Input::Reply(Box::new(reply))),
        1 => lost.prop_map(Input::Lost),
    ]
}

proptest! {
    /// Events at any times, then none: the rounds end within the limits of an answer, an
    /// explanation of an error, and last reports.
    #[test]
    fn it_ends_within_its_limits(
        inputs in prop::collection::vec((0..20_000_u64, any_pe(), any_input()), 0..60),
        joined in prop::collection::vec(any_pe(), 0..2),
        rounds in 1..3_u64,
    ) {
        let mut scatter = Scatter::new(rounds, &joined);
        let mut now = 0.0;
        for (pause_ms, pe, input) in inputs {
            now += pause_ms as f64 / 1000.0;
            scatter.waits(now);
            match input {
                Input::Reply(reply) => scatter.receives(now, pe, *reply),
                Input::Lost(lost) => scatter.loses(now, pe, lost),
            }
        }
        let timeouts = Timeouts::default();
        let answer = ANSWER.max(timeouts.write);
        let limit = answer + DEATH_NOTICE + LAST_REPORTS;
        scatter.waits(now + limit.as_secs_f64());
        prop_assert!(scatter.controller.is_idle(), "{:?}", scatter.controller.state);
        let begun = scatter.controller.round.0;
        let all = scatter.updates().to_vec();
        let reported = |update: &&ControllerEvent| matches!(update, ControllerEvent::RoundReported(_));
        let reported = all.iter().filter(reported).count() as u64;
        let failed = all.iter().filter(|update| matches!(update, ControllerEvent::Failed { .. })).count();
        match scatter.controller.gave_up() {
            None => {
                prop_assert_eq!(failed, 0);
                prop_assert_eq!(reported, rounds);
            }
            Some(gave_up) => {
                prop_assert_eq!(failed, 1, "it is reported once");
                prop_assert!(reported < rounds || begun == rounds);
                let known = gave_up.delivered.len() + gave_up.lacking.len();
                prop_assert_eq!(known, if gave_up.round.is_some() { 3 } else { 0 });
                let commands = scatter.commands();
                let aborts = commands.iter().filter(|(_, command)| matches!(command, ToPe::Abort { .. }));
                prop_assert_eq!(aborts.count(), 4, "each PE gets it once");
            }
        }
    }
}
