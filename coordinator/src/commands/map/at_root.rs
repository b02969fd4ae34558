//! Requests to P0 beside the runs, if the files of PEs are on other hosts: the shards of its input, and
//! the places of results.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::Duration;

use anyhow::anyhow;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Payload, ToPe};
use tokio::time::Instant;

use super::args::Map;
use super::shards::Shards;
use flitcast_cluster::launch::cluster::{Cluster, PeEvent};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::options::tree::TreeArgs;
use flitcast_cluster::rounds::run::{RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::phrases::last_words;

/// Time for P0 to answer: to list an input, or to move results.
const ANSWER: Duration = Duration::from_secs(600);

/// Sends a request to P0 on a new cluster, and returns its answer, or the reason why there is none.
///
/// # Errors
///
/// Returns an error if partial output could not be removed.
pub async fn query_root(
    map: &Map,
    command: ToPe,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Result<FromPe, String>> {
    let site = &map.scatter.site;
    let root = site.tree.root();
    // PEs that join are all present.
    let pes: Vec<PeId> = match site.placement.is_joined() {
        true => site
            .tree
            .pes()
            .filter(|pe| !dead_pes.contains(pe))
            .collect(),
        false => vec![root],
    };
    let done = async |cluster: &mut Cluster, _: &Console, _, _: &_| {
        cluster.send_command(root, command).await;
        Ok(answer(cluster, root).await)
    };
    let result = on_a_cluster(&map.scatter, &pes, logs, interrupts, done, |_| true).await?;
    Ok(match result {
        RunResult::Done(answer) => answer,
        RunResult::Failed(failure) => Err(failure.cause),
        RunResult::Interrupted(_) => Err("interrupted".to_owned()),
    })
}

/// Waits for the answer of P0.
async fn answer(cluster: &mut Cluster, root: PeId) -> Result<FromPe, String> {
    let deadline = Instant::now() + ANSWER;
    loop {
        match cluster.next_event(deadline).await {
            Some((_, PeEvent::Reply(FromPe::Pong(_)))) => {}
            Some((pe, PeEvent::Reply(reply))) if pe == root => return Ok(reply),
            Some((pe, PeEvent::Exited(exit, lines))) if pe == root => {
                let printed = last_words("; it last printed: ", &lines);
                return Err(format!("{root} {exit}{printed}"));
            }
            Some((pe, PeEvent::ChannelEnded(_))) if pe == root => {
                if cluster.joined_from(root).is_some() {
                    return Err(format!("{root} is gone"));
                }
                // The end of its process is reported next.
                cluster.give_up_on(root);
            }
            Some(_) => {}
            None => return Err(format!("{root} does not answer")),
        }
    }
}

/// Completes the map by the shards that P0 lists.
///
/// # Errors
///
/// Returns the reasons why these shards cannot be scattered.
pub async fn look(
    map: &mut Map,
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Result<(), Vec<anyhow::Error>>> {
    let command = ToPe::ListShards {
        input: map.args.input.clone(),
        output: map.args.output.clone(),
    };
    let root = map.scatter.site.tree.root();
    let listed = match query_root(map, command, &[], logs, interrupts).await? {
        Ok(FromPe::ShardsListed {
            names,
            sizes,
            results,
            fault,
        }) if fault.is_empty() => (names.into_iter().zip(sizes).collect(), results),
        Ok(FromPe::ShardsListed { fault, .. }) => {
            return Ok(Err(vec![anyhow!("--input: {root}: {fault}")]));
        }
        Ok(other) => anyhow::bail!("{root}: unexpected answer: {}", other.kind()),
        Err(why) => anyhow::bail!("the shards cannot be listed: {why}"),
    };
    Ok(complete(map, listed.0, listed.1))
}

/// Completes the map by the shards in its input and the entries in its output.
fn complete(
    map: &mut Map,
    shards: Vec<(OsString, u64)>,
    results: Vec<OsString>,
) -> Result<(), Vec<anyhow::Error>> {
    let results: BTreeSet<OsString> = results.into_iter().collect();
    let done = map.args.done(|shard| results.contains(shard));
    let done = done.map_err(|fault| vec![fault])?;
    let tree: &TreeArgs = &map.args.tree;
    map.shards = Shards::listed(shards, tree, done.as_ref())?;
    let names = map.shards.names();
    if map.shards.are_of_pes() {
        return Ok(());
    }
    let in_the_way = names.iter().filter(|name| results.contains(*name));
    let output = &map.args.output;
    let fault = |name: &OsString| {
        let path = output.join(name);
        anyhow!(
            "--output: {} exists already; --force replaces it",
            path.display()
        )
    };
    let faults: Vec<anyhow::Error> = in_the_way.map(fault).collect();
    if !faults.is_empty() && !map.args.replaces() {
        return Err(faults);
    }
    map.scatter.messages.later_output = None;
    if let Payload::Files(files) = &mut map.scatter.messages.payload {
        files.spread = true;
        files.shards = names;
    }
    Ok(())
}
