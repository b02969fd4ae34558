//! A plan as one JSON object, written piece by piece: a million messages need no
//! second copy of themselves.

use std::io::{self, Write};

use flitcast_proto::PeId;
use flitcast_proto::items::Control;
use flitcast_proto::ops::UpperBound;
use flitcast_proto::ops::plan::{ControlPlan, MessagePlan, Plan};
use serde::{Serialize, Serializer};

use super::command::Planned;
use crate::job::on_links::OnLinks;

/// Writes the plan; with `summary` without its messages and control items.
pub fn write(
    planned: &Planned,
    on_links: Option<OnLinks>,
    summary: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Planned { plan, flits, .. } = planned;
    let whole = (!summary).then_some(plan);
    let whole = PlanReport {
        operation: plan.operation.name(),
        algorithm: planned.algorithm,
        sync: planned.sync,
        parents: whole,
        lengths: (!summary).then_some(flits),
        order: (!summary && !planned.order.is_empty()).then_some(&planned.order),
        time_steps: plan.time_steps,
        lower_bound_steps: plan.lower_bound_steps,
        upper: plan.upper_bound().map(Upper::from),
        single_port_time_steps: planned.single_port_steps,
        port_each_time_steps: planned.port_each_steps,
        pes: summary.then(|| plan.tree.len()),
        nonnull_messages: summary.then_some(plan.messages.len()),
        flits: summary.then(|| flits.iter().sum()),
        control_items: summary.then_some(plan.control.len()),
        on_links,
        messages: whole,
        control: whole,
    };
    serde_json::to_writer(&mut *out, &whole)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct PlanReport<'a> {
    operation: &'static str,
    algorithm: &'static str,
    sync: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "parents")]
    parents: Option<&'a Plan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lengths: Option<&'a Vec<u64>>,
    /// The order in which messages leave the source of a scatter; in a gather, the given order in which
    /// P0 takes them.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "order")]
    order: Option<&'a Vec<PeId>>,
    time_steps: u64,
    lower_bound_steps: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    upper: Option<Upper>,
    #[serde(skip_serializing_if = "Option::is_none")]
    single_port_time_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_each_time_steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonnull_messages: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flits: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    control_items: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_links: Option<OnLinks>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "messages")]
    messages: Option<&'a Plan>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "control")]
    control: Option<&'a Plan>,
}

/// An upper bound of the time by a theorem of paper 000.
#[derive(Serialize)]
struct Upper {
    upper_bound_steps: u64,
    upper_bound_theorem: &'static str,
    upper_bound_formula: &'static str,
    /// The formula that the paper prints, if it does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_bound_printed: Option<&'static str>,
}

impl From<UpperBound> for Upper {
    fn from(bound: UpperBound) -> Upper {
        Upper {
            upper_bound_steps: bound.steps,
            upper_bound_theorem: bound.theorem,
            upper_bound_formula: bound.formula,
            upper_bound_printed: bound.printed,
        }
    }
}

#[derive(Serialize)]
struct Message {
    pe: u32,
    flits: u64,
    first_step: u64,
    arrival_step: u64,
}

/// A control item of a plan.
#[derive(Serialize)]
pub struct Item {
    step: u64,
    from: u32,
    to: u32,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Kind {
    Token,
    Certificate { lag_steps: u64, stream_flits: u64 },
    Order { after_steps: u64 },
    Wakeup { after_steps: u64 },
    Receipt,
}

fn parents<S: Serializer>(plan: &Option<&Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    let parents = plan.iter().flat_map(|plan| {
        let parent = |pe| plan.tree.parent(pe).map(|PeId(parent)| parent);
        plan.tree.pes().map(parent)
    });
    serializer.collect_seq(parents)
}

fn order<S: Serializer>(order: &Option<&Vec<PeId>>, serializer: S) -> Result<S::Ok, S::Error> {
    let pes = order.iter().flat_map(|pes| pes.iter());
    serializer.collect_seq(pes.map(|pe| pe.0))
}

fn messages<S: Serializer>(plan: &Option<&Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    let messages = plan.iter().flat_map(|plan| &plan.messages);
    serializer.collect_seq(messages.map(|message: &MessagePlan| Message {
        pe: message.pe.0,
        flits: message.flits,
        first_step: message.first_step,
        arrival_step: message.arrival_step,
    }))
}

fn control<S: Serializer>(plan: &Option<&Plan>, serializer: S) -> Result<S::Ok, S::Error> {
    let control = plan.iter().flat_map(|plan| &plan.control);
    serializer.collect_seq(control.map(Item::from))
}

impl From<&ControlPlan> for Item {
    fn from(control: &ControlPlan) -> Item {
        Item {
            step: control.step,
            from: control.from.0,
            to: control.to.0,
            kind: match control.item {
                Control::Token => Kind::Token,
                Control::Certificate(certificate) => Kind::Certificate {
                    lag_steps: certificate.lag,
                    stream_flits: certificate.stream,
                },
                Control::Order { after } => Kind::Order { after_steps: after },
                Control::Wakeup { after } => Kind::Wakeup { after_steps: after },
                // Follows the data, outside the plan.
                Control::Receipt => Kind::Receipt,
            },
        }
    }
}
