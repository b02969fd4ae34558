//! What a cluster file says of the cluster as a whole, as if it were typed: an option on
//! the command line overrides it.
//!
//! ```toml
//! link = "rate=200mbit,latency=1ms"   # --link, if all PEs are processes of one host
//! [security]
//! credentials = "credentials"         # --credentials, from where this file is
//! [timeouts]
//! silence = "5s"                      # --timeouts silence=5s
//! [[pe]]
//! link = "rate=50mbit"                # of the edge to its parent
//! ```
//!
//! `--insecure` is not among them: who sends in the clear has to say so each time.

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;

use super::{At, ClusterFileFault, PeEntry, Reader, Value};
use crate::options::link_spec::{EdgeSpec, LinkSpec, Links};
use crate::options::timeouts::{self, Timeout};
use crate::site::settings::Credentials;

/// What may stand in `[security]`.
const SECURITY_KEYS: &str = "credentials";

impl Reader<'_, ClusterFileFault> {
    pub(super) fn security(&mut self, value: &Value<'_>) -> Option<Credentials> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("security", "a table, [security]", value);
            return None;
        };
        let mut credentials = None;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "credentials" => credentials = self.folder(value),
                "insecure" => self.fault(self.spot_of(key), ClusterFileFault::Insecure),
                _ => self.unknown_key(key, SECURITY_KEYS),
            }
        }
        credentials
    }

    fn folder(&mut self, value: &Value<'_>) -> Option<Credentials> {
        let folder = value.get_ref().as_str();
        // A zero byte would end it for the system.
        let folder = folder.filter(|folder| !folder.is_empty() && !folder.contains('\0'));
        let Some(folder) = folder else {
            self.wrong_type("credentials", "a folder, in quotes", value);
            return None;
        };
        Some(Credentials {
            folder: folder.into(),
            spot: self.spot_of(value),
        })
    }

    pub(super) fn timeouts(&mut self, value: &Value<'_>) -> Timeouts {
        let mut said = Timeouts::default();
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("timeouts", "a table, [timeouts]", value);
            return said;
        };
        let before = self.fault_count();
        for (key, value) in table {
            let Some(timeout) = Timeout::named(key.get_ref()) else {
                self.unknown_key(key, timeouts::names());
                continue;
            };
            match value.get_ref().as_str() {
                Some(text) => {
                    if let Err(fault) = timeout.set(&mut said, text) {
                        self.fault(self.spot_of(value), ClusterFileFault::Timeout(fault));
                    }
                }
                None => self.wrong_type(timeout.name, "a time in quotes, like \"5s\"", value),
            }
        }
        // Where nothing else is wrong, so that one mistake is one fault.
        if self.fault_count() == before
            && let Err(fault) = timeouts::check(&said)
        {
            let told = ["silence", "heartbeat"]
                .iter()
                .find_map(|key| table.get(*key));
            self.fault(
                self.spot_of(told.unwrap_or(value)),
                ClusterFileFault::Timeout(fault),
            );
        }
        said
    }

    /// A link, as it is typed behind `--link`.
    pub(super) fn link(&mut self, value: &Value<'_>) -> At<Option<LinkSpec>> {
        let spot = self.spot_of(value);
        let said = match value.get_ref().as_str().map(LinkSpec::parse) {
            Some(Ok(link)) => Some(link),
            Some(Err(faults)) => {
                for fault in faults {
                    self.fault(spot, ClusterFileFault::Link(fault));
                }
                None
            }
            None => {
                let example = "a text like \"rate=200mbit,latency=1ms\"";
                self.wrong_type("link", example, value);
                None
            }
        };
        At { spot, said }
    }

    /// The links to the parents of single PEs; and that links can be shaped here, if any
    /// is to be.
    pub(super) fn links(
        &mut self,
        entries: &[PeEntry],
        everywhere: Option<&At<Option<LinkSpec>>>,
        in_network: bool,
    ) -> Links {
        let first = &entries[0];
        // Whoever else has none is no tree's, which is told; in a network any PE may be
        // the root.
        if let (Some(link), None, false) = (&first.link, &first.parent, in_network) {
            let (name, key) = (first.name(), "link");
            self.fault(link.spot, ClusterFileFault::EdgeWithoutParent { name, key });
        }
        let mut said = everywhere
            .into_iter()
            .chain(entries.iter().filter_map(|entry| entry.link.as_ref()));
        let away = entries.iter().find_map(|entry| {
            let address = entry.address.flatten()?;
            (!address.is_loopback()).then(|| (entry.name(), address))
        });
        if let (Some(link), Some((name, address))) = (said.next(), away) {
            self.fault(
                link.spot,
                ClusterFileFault::LinkAcrossHosts { name, address },
            );
        }
        let links = (0..).map(PeId).zip(entries).filter_map(|(pe, entry)| {
            let link = entry.link.as_ref()?.said?;
            Some((pe, EdgeSpec::alike(link)))
        });
        links.collect()
    }
}
