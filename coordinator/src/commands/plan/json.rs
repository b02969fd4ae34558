//! A plan as one JSON object, written piece by piece: a million messages need no
//! second copy of themselves.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::items::Control;
use flitcast_proto::ops::plan::{ControlPlan, MessagePlan, Plan};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::command::Planned;

/// Writes the plan; with `summary` without its messages and control items.
pub fn write(planned: &Planned, summary: bool, out: &mut dyn Write) -> io::Result<()> {
    let whole = Whole { planned, summary };
    serde_json::to_writer(&mut *out, &whole)?;
    out.write_all(b"\n")
}

struct Whole<'a> {
    planned: &'a Planned,
    summary: bool,
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Planned {
            plan,
            flits,
            algorithm,
            sync,
            single_port_steps,
            ..
        } = self.planned;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("operation", plan.operation.name())?;
        map.serialize_entry("algorithm", algorithm)?;
        map.serialize_entry("sync", sync)?;
        if !self.summary {
            map.serialize_entry("parents", &Parents(plan))?;
            map.serialize_entry("lengths", flits)?;
        }
        map.serialize_entry("time_steps", &plan.time_steps)?;
        map.serialize_entry("lower_bound_steps", &plan.lower_bound_steps)?;
        if let Some(steps) = single_port_steps {
            map.serialize_entry("single_port_time_steps", steps)?;
        }
        if self.summary {
            map.serialize_entry("pes", &plan.tree.len())?;
            map.serialize_entry("nonnull_messages", &plan.messages.len())?;
            map.serialize_entry("flits", &flits.iter().sum::<u64>())?;
            map.serialize_entry("control_items", &plan.control.len())?;
        } else {
            map.serialize_entry("messages", &MessageList(plan))?;
            map.serialize_entry("control", &ControlItems(plan))?;
        }
        map.end()
    }
}

struct Parents<'a>(&'a Plan);

impl Serialize for Parents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tree = &self.0.tree;
        serializer.collect_seq(
            tree.pes()
                .map(|pe| tree.parent(pe).map(|PeId(parent)| parent)),
        )
    }
}

struct MessageList<'a>(&'a Plan);

impl Serialize for MessageList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.messages.iter().map(OneMessage))
    }
}

struct OneMessage<'a>(&'a MessagePlan);

impl Serialize for OneMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MessagePlan {
            pe,
            flits,
            first_step,
            arrival_step,
        } = self.0;
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("pe", &pe.0)?;
        map.serialize_entry("flits", flits)?;
        map.serialize_entry("first_step", first_step)?;
        map.serialize_entry("arrival_step", arrival_step)?;
        map.end()
    }
}

struct ControlItems<'a>(&'a Plan);

impl Serialize for ControlItems<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.control.iter().map(OneControl))
    }
}

struct OneControl<'a>(&'a ControlPlan);

impl Serialize for OneControl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ControlPlan {
            step,
            from,
            to,
            item,
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("step", step)?;
        map.serialize_entry("from", &from.0)?;
        map.serialize_entry("to", &to.0)?;
        match item {
            Control::Token => map.serialize_entry("kind", "token")?,
            Control::Certificate(certificate) => {
                map.serialize_entry("kind", "certificate")?;
                map.serialize_entry("lag_steps", &certificate.lag)?;
                map.serialize_entry("stream_flits", &certificate.stream)?;
            }
            Control::Order { after } => {
                map.serialize_entry("kind", "order")?;
                map.serialize_entry("after_steps", after)?;
            }
            Control::Wakeup { after } => {
                map.serialize_entry("kind", "wakeup")?;
                map.serialize_entry("after_steps", after)?;
            }
            // Follows the data, outside the plan.
            Control::Receipt => map.serialize_entry("kind", "receipt")?,
        }
        map.end()
    }
}
