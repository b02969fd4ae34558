//! The scene of a scatter from P0 or of a gather, in steps: each message on its whole way, and the control
//! items.
//!
//! Column t shows row t of the papers' figures: an item that crosses in step t is in column t at its
//! receiver, and in column t-1 at its sender.

use flitcast_plan::algorithms::plan::{MessagePlan, Plan};
use flitcast_proto::PeId;
use flitcast_proto::ops::Direction;

use super::svg::{Axis, Band, Crossings, Moment, Scene, Sheet};
use flitcast_cluster::text::phrases::counted;

/// Returns the scene of a plan.
pub fn scene(plan: &Plan, title: String) -> Scene {
    let flits = plan.messages.iter().map(|message| message.flits).sum();
    let mut summary = counted(plan.tree.len() as u64, "PE", "PEs");
    summary += &match plan.messages.len() {
        0 => ", nothing to send".to_owned(),
        messages => format!(
            ", {}, {}",
            counted(messages as u64, "message", "messages"),
            counted(flits, "flit", "flits"),
        ),
    };
    if !plan.control.is_empty() {
        let items = counted(plan.control.len() as u64, "control item", "control items");
        summary = format!("{summary}, {items}");
    }
    let control = plan.control.iter().map(|item| item.step).max().unwrap_or(0);
    let mut by_arrival: Vec<&MessagePlan> = plan.messages.iter().collect();
    by_arrival.sort_by_key(|message| (message.arrival_step, message.pe));
    let class = |message: &&MessagePlan| {
        let MessagePlan { pe, flits, .. } = message;
        let (first, last) = (message.first_step, message.arrival_step);
        let flits = counted(*flits, "flit", "flits");
        format!("M{}: {flits}, steps {first} to {last}", pe.0)
    };
    let band = |(class, message): (usize, &&MessagePlan)| {
        let (pe, begin) = (message.pe, message.first_step as f64 - 1.0);
        let end = begin + message.flits as f64;
        let hops = f64::from(plan.tree.depth(pe));
        let [from, to] = match plan.operation.collective().direction() {
            Direction::Up => [pe, PeId::ROOT],
            Direction::Down | Direction::Across => [PeId::ROOT, pe],
        };
        Band {
            class: Some(class),
            name: format!("M{}", pe.0),
            from,
            to,
            out: [begin, end],
            into: [begin + hops, end + hops],
        }
    };
    Scene {
        sheet: Sheet {
            title,
            summary,
            pes: plan.tree.len(),
            tree: Some((*plan.tree).clone()),
            axis: Axis::Steps,
            time: Moment::step(plan.time_steps),
            bound: Some(Moment::step(plan.lower_bound_steps)),
            shown: control as f64,
        },
        crossings: Crossings {
            classes: by_arrival.iter().map(class).collect(),
            what: "message Mi: bars at the PEs it passes, slanted where it crosses",
            bands: by_arrival.iter().enumerate().map(band).collect(),
            has_sources: true,
            control: plan.control.clone(),
            ..Crossings::default()
        },
    }
}
