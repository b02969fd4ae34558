//! The values of `--algorithm` with their help, from the algorithms and the baselines.

use anyhow::anyhow;
use clap::ValueEnum as _;
use clap::builder::{PossibleValue, PossibleValuesParser};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{OfferKind, TreeRequirement};
use flitcast_plan::gossip::{COMPLETE_HELP, GossipNetwork};
use flitcast_plan::network::NetworkSpec;
use flitcast_proto::ops::Collective;

use crate::options::baseline::Baseline;

/// The value that leaves the algorithm open.
pub const AUTO: &str = "auto";

/// Returns the values for a collective: its algorithms, `auto` and the baselines.
pub fn values_of(collective: Collective) -> PossibleValuesParser {
    let mut ours: Vec<Algorithm> = Algorithm::offered(collective).collect();
    // An algorithm with several synchronisations has one name.
    ours.dedup_by_key(|one| one.name());
    let has_pacing = |one: &Algorithm| one.offer().ways.iter().any(|(_, pacing)| pacing.is_some());
    let open = match ours.iter().any(has_pacing) {
        true => "trees of the network, pacings and flit sizes",
        false => "trees of the network and flit sizes",
    };
    let auto = format!("The shortest predicted time, over all algorithms, {open}");
    let baselines = Baseline::all().filter(|one| one.operation(collective.name()).is_some());
    let mut values: Vec<PossibleValue> = ours.into_iter().map(value).collect();
    values.push(PossibleValue::new(AUTO).help(auto));
    values.extend(baselines.filter_map(|one| one.to_possible_value()));
    PossibleValuesParser::new(values)
}

fn value(one: Algorithm) -> PossibleValue {
    let is_hidden = one.offer().kind == OfferKind::Hidden;
    PossibleValue::new(one.name())
        .help(one.offer().help)
        .hide(is_hidden)
}

/// Returns the values for the plan of a scatter.
pub fn values_of_planned_scatter() -> PossibleValuesParser {
    let fdf = PossibleValue::new(Algorithm::FARTHEST_FIRST.name());
    let fdf = fdf.help("Each flit on its only way, the farthest destination first");
    let listed = Algorithm::listed(Collective::Scatter).map(value);
    PossibleValuesParser::new([fdf].into_iter().chain(listed))
}

/// Joins names as in "a, b or c", where `conjunction` is "or".
pub fn joined(names: impl IntoIterator<Item = impl Into<String>>, conjunction: &str) -> String {
    let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
    match (names.pop(), names.is_empty()) {
        (Some(last), false) => format!("{} {conjunction} {last}", names.join(", ")),
        (last, _) => last.unwrap_or_default(),
    }
}

/// Returns the names of the algorithms that `flitcast plan` lists, on trees or on complete networks.
pub fn planned_names(collective: Collective, on_trees: bool) -> Vec<&'static str> {
    let listed = Algorithm::listed(collective).filter(|one| is_for_trees(*one) == on_trees);
    listed.map(Algorithm::name).collect()
}

/// Returns whether an algorithm uses the edges of a tree alone.
pub fn is_for_trees(one: Algorithm) -> bool {
    one.fits() == TreeRequirement::Trees
}

/// Returns the phrases about the algorithms of a kind.
fn phrases(collective: Collective, kind: OfferKind, on_trees: bool) -> Vec<&'static str> {
    let all = Algorithm::offered(collective);
    let all = all.filter(|one| one.offer().kind == kind && is_for_trees(*one) == on_trees);
    all.map(|one| one.offer().help)
        .filter(|help| !help.is_empty())
        .collect()
}

pub fn broadcast_help() -> String {
    let of_trees = |kind| phrases(Collective::Broadcast, kind, true).join(", ");
    let among_all = phrases(Collective::Broadcast, OfferKind::Choice, false).join(", ");
    format!(
        "How to broadcast: over the given tree by {} or, as a baseline, {}; in a complete network \
         {among_all}, or path or kary:K, which build their own tree; or auto, the algorithm, tree and flit size with the \
         shortest predicted time [default: rounds on a --tree, else auto]",
        of_trees(OfferKind::Choice),
        of_trees(OfferKind::Baseline),
    )
}

pub fn gossip_help() -> String {
    let phrases = |on_trees| phrases(Collective::Gossip, OfferKind::Choice, on_trees).join(", ");
    format!(
        "How to gossip: {}. In a complete network {}, {COMPLETE_HELP}. On a --network of lines or rings \
         approach1, approach2[:A], circgos:A,a,b, torgos:A;b0,..;x0,.., cubgos, phases:A,a,b/.. or \
         halves, as `flitcast plan gossip` plans them. Or auto, the algorithm, tree and flit size with \
         the shortest predicted time [default: flood on a --tree, else auto]",
        phrases(true),
        phrases(false),
    )
}

/// Parses a network of any size, a value of `--network` for `flitcast plan gossip`.
///
/// # Errors
///
/// Returns an error if the text names no network, or one without a planned gossip.
pub fn gossip_network(text: &str) -> anyhow::Result<GossipNetwork> {
    let spec = text.parse::<NetworkSpec>();
    let spec = spec.map_err(|fault| anyhow!("--network {text}: {fault}"))?;
    GossipNetwork::of(&spec).map_err(|fault| anyhow!("--network {text}: {fault}"))
}
