//! The names of pacings and of option values on the command line, in files and in results.

use clap::ValueEnum;
use flitcast_proto::schedule::pace::Pacing;

/// Returns a value of an option as users type it.
pub fn typed(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

pub fn pacing_named(name: &str) -> Option<Pacing> {
    let all = [Pacing::Scheduled, Pacing::Turns, Pacing::Eager];
    all.into_iter()
        .find(|pacing| pacing_name(Some(*pacing)) == Some(name))
}

/// Returns the name of a pacing, if the algorithm has one.
pub fn pacing_name(pacing: Option<Pacing>) -> Option<&'static str> {
    pacing.map(|pacing| match pacing {
        Pacing::Scheduled => "scheduled",
        Pacing::Turns => "turns",
        Pacing::Eager => "eager",
    })
}

/// Returns the names of those options that are given.
pub fn given_options<const N: usize>(
    options: [(&'static str, bool); N],
) -> impl Iterator<Item = &'static str> {
    let given = options.into_iter().filter(|(_, given)| *given);
    given.map(|(option, _)| option)
}
