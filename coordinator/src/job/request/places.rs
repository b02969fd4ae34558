//! The places where the messages of a request become visible.

use std::path::Path;

use flitcast_node::payload::delivered_at;
use flitcast_proto::{DeliveryId, PeId};

use super::Request;

impl Request {
    /// Names the place where a message is to become visible at a PE: its path, the PE and its host.
    pub fn place_of(&self, of: DeliveryId, at: PeId) -> String {
        let (operation, tree) = (self.way.operation, &self.site.tree);
        // A delivery that does not end at the PE means the output of the gather that follows.
        let ends_there = operation
            .delivered(tree, of)
            .is_some_and(|(_, end)| end == at);
        let output = match ends_there {
            true => self.messages.payload.output(),
            false => self.messages.later_output.as_deref(),
        };
        let path = delivered_at(
            output.unwrap_or(Path::new("")),
            operation.delivery_name(tree, of),
            self.messages.payload.is_apart(),
        );
        let host = self.site.placement.places[at.index()].name.as_ref();
        let host = host.map_or(String::new(), |host| format!(" on {host}"));
        format!("{} at {at}{host}", path.display())
    }
}
