//! `tree = "kary:2:8"`: a cluster whose PEs are started by others, without a `[[pe]]` for each. The
//! PEs have no names; each has the address that it joins from.
//!
//! ```toml
//! coordinator = "0.0.0.0:7117"
//! tree = "kary:2:8"
//! [launch]
//! kind = "join"
//! ```

use flitcast_proto::Tree;
use flitcast_proto::tree::TreeSpec;

use super::content::{ClusterFile, Edges};
use super::launch::{self, Endpoint, LaunchTable, Launched};
use super::settings::across_hosts;
use super::values::At;
use crate::files::toml_file::{Field, Reader};
use crate::files::user_file::SourcePosition;
use crate::options::link_spec::Links;
use crate::site::placement::{Launch, Placement};
use crate::site::settings::Settings;

/// Returns the cluster of PEs that join, on the named tree.
pub fn cluster(
    reader: &Reader<'_>,
    tree: &Field<'_, '_>,
    launch: Option<LaunchTable>,
    coordinator: Option<&At<Endpoint>>,
    link: Option<SourcePosition>,
    (name, settings): (Option<String>, Settings),
) -> Option<ClusterFile> {
    let named = named_tree(tree);
    let Launched {
        coordinator,
        launch,
        files,
    } = launch::launched(reader, launch, coordinator, &[])?;
    if !matches!(launch, Launch::Join { .. }) {
        tree.fault(
            "a tree alone is for PEs that join: say kind = \"join\" or \"slurm\" in [launch], \
             or give a [[pe]] table for each",
        );
    }
    let tree = named?;
    let placement = Placement::joining(coordinator, launch, tree.len());
    if let (Some(link), Some(place)) = (link, placement.away()) {
        reader.fault(
            link,
            format!("link: {}", across_hosts(None, &place.address)),
        );
    }
    Some(ClusterFile {
        name,
        edges: Edges::Tree(tree),
        placement,
        links: Links::new(),
        settings: Settings { files, ..settings },
    })
}

fn named_tree(field: &Field<'_, '_>) -> Option<Tree> {
    field.parse_as("a tree in quotes, like \"kary:2:8\"", |text| {
        let made = match text.parse() {
            Ok(TreeSpec::File(_)) => Err("write the tree itself, like parents:0,0,1".to_owned()),
            Ok(spec) => spec.build().map_err(|faults| faults.to_string()),
            Err(error) => Err(error.to_string()),
        };
        made.map_err(|why| format!("tree: {why}"))
    })
}
