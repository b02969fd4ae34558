//! The time of a plan on links (`--link`): that of a round whose processes cost nothing.

use clap::Args;
use flitcast_plan::cost::{Model, Ports};
use flitcast_plan::on_links::{Sent, course};
use flitcast_plan::timing::Timing;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use crate::algorithms::plan_limits::{PlanTooLarge, check_crossings};
use crate::job::model::links_alone;
use crate::job::request::flit_size;
use crate::options::link_spec::LinkSpec;
use crate::text::figures::as_micros;
use crate::text::phrases::counted;
use crate::text::units::{Bytes, Nanos};
use crate::tuning::USUAL_FLIT_BYTES;

/// The links for which a plan's time is computed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct LinkArgs {
    /// Also compute the time of the plan on such links: rate=RATE, latency=TIME, setup=TIME, or several,
    /// separated by commas. A run emulates them in the same way.
    #[arg(long, value_name = "LINK", value_parser = parse_link)]
    pub link: Option<LinkSpec>,
    /// Payload of a flit on these links [default: 64KiB].
    #[arg(long, value_name = "SIZE", requires = "link", value_parser = parse_flit_size)]
    pub link_flit: Option<u32>,
}

/// A plan's time on links.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OnLinks {
    #[serde(serialize_with = "as_written")]
    link: LinkSpec,
    flit_bytes: u32,
    #[serde(rename = "time_us", serialize_with = "as_micros")]
    pub time_ns: u64,
    /// Packets, without control items.
    packets: u64,
}

fn as_written<S: serde::Serializer>(link: &LinkSpec, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&link.written())
}

fn parse_link(text: &str) -> Result<LinkSpec, String> {
    LinkSpec::parse(text).map_err(|faults| faults.join("; "))
}

fn parse_flit_size(text: &str) -> Result<u32, String> {
    flit_size(text).map_err(|fault| fault.to_string())
}

impl LinkArgs {
    /// Returns the set-up time of a packet on the requested links as a number of flits, or 0.
    pub fn setup_flits(&self) -> u64 {
        let timing = self
            .link
            .map(|link| self.timing(&links_alone(1, link.link(), Ports::Single)));
        timing.map_or(0, |timing| timing.setup_flits)
    }

    fn flit_bytes(&self) -> u32 {
        self.link_flit.unwrap_or(USUAL_FLIT_BYTES)
    }

    fn timing(&self, model: &Model) -> Timing {
        Timing::of(model, self.flit_bytes(), Pacing::default())
    }

    /// Returns the time of a plan between `pes` PEs on the requested links, if there are any. `crossings`
    /// is the number of flits times edges of the plan that `sent` lists.
    ///
    /// # Errors
    ///
    /// Returns an error if there are too many crossings.
    pub fn time(
        &self,
        pes: usize,
        ports: Ports,
        crossings: u64,
        sent: impl FnOnce(&Timing) -> Vec<Sent>,
    ) -> Result<Option<OnLinks>, PlanTooLarge> {
        let Some(link) = self.link else {
            return Ok(None);
        };
        check_crossings(crossings)?;
        let flit_bytes = self.flit_bytes();
        let model = links_alone(pes, link.link(), ports);
        // All links are alike, whatever the tree.
        let parents = (0..pes).map(|pe| (pe > 0).then_some(PeId::ROOT)).collect();
        let Ok(tree) = Tree::from_parents(parents) else {
            unreachable!("a star is a tree")
        };
        let sent = sent(&self.timing(&model));
        let course = course(&sent, &tree, &model, flit_bytes);
        Ok(Some(OnLinks {
            link,
            flit_bytes,
            time_ns: course.time_ns.round() as u64,
            packets: course.packets,
        }))
    }
}

impl OnLinks {
    /// Returns the time as a line of a table.
    pub fn text(&self) -> String {
        format!(
            "  on links     {} in {} with flits of {}, {}\n",
            Nanos(self.time_ns),
            counted(self.packets, "packet", "packets"),
            Bytes(self.flit_bytes.into()),
            self.link,
        )
    }
}
