//! Plans in packets, as they are reported.

use flitcast_plan::packets::PacketPlan;
use flitcast_plan::packets::certification::Certified;
use flitcast_plan::packets::model::{LinkCost, Ticks};

use super::asked::AskedPlan;

/// A scatter in packets, or its mirror, a gather, with its names.
pub struct PlanInPackets<'a> {
    /// The name of the operation.
    pub operation: &'static str,
    /// The tree and the lengths.
    pub asked: &'a AskedPlan,
    /// The cost of links.
    pub cost: LinkCost,
    /// The name of the order, or of how the sequence was found.
    pub method: &'static str,
    /// The scatter.
    pub plan: PacketPlan,
    /// The time with one packet for each message, and with one for each flit.
    pub unplanned: [Ticks; 2],
}

impl PlanInPackets<'_> {
    /// Returns whether the operation is a gather.
    pub fn is_gather(&self) -> bool {
        self.operation == "gather"
    }

    /// Returns the title.
    pub fn heading(&self) -> String {
        let (operation, name, method) = (self.operation, &self.asked.name, self.method);
        let by = if self.is_gather() {
            "mirror of a scatter, "
        } else {
            ""
        };
        format!("{operation} on {name} in packets: {by}{method}")
    }

    /// Returns the number of packets.
    pub fn count(&self) -> u64 {
        self.plan.sequence.iter().map(|run| run.packets).sum()
    }
}

/// A gather by certification with its names.
pub struct CertifiedPlan<'a> {
    /// The tree and the lengths.
    pub asked: &'a AskedPlan,
    /// The cost of links.
    pub cost: LinkCost,
    /// The gather.
    pub certified: Certified,
    /// A lower bound for any gather, even if P0 knew all lengths; `None` if it takes too long to
    /// compute.
    pub bound: Option<Ticks>,
}

impl CertifiedPlan<'_> {
    /// Returns the title.
    pub fn heading(&self) -> String {
        format!("gather on {} in packets: certification", self.asked.name)
    }
}
