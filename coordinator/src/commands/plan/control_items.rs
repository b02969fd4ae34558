//! Control items of a plan as JSON.

use flitcast_plan::algorithms::plan::ControlPlan;
use flitcast_proto::items::Control;

use super::report::Object;

/// Returns a control item, with the index of its tree if there are several.
pub fn control_item(tree: Option<usize>, control: &ControlPlan) -> Object {
    let (kind, more) = match control.item {
        Control::Token => ("token", vec![]),
        Control::Certificate(certificate) => (
            "certificate",
            vec![
                ("lag_steps", certificate.lag),
                ("stream_flits", certificate.stream),
            ],
        ),
        Control::Order { after } => ("order", vec![("after_steps", after)]),
        Control::Wakeup { after } => ("wakeup", vec![("after_steps", after)]),
        // Follows the data, outside the plan.
        Control::Receipt => ("receipt", vec![]),
    };
    let mut item = Vec::with_capacity(7);
    item.extend(tree.map(|tree| ("tree", tree.into())));
    item.push(("step", control.step.into()));
    item.push(("from", control.from.0.into()));
    item.push(("to", control.to.0.into()));
    item.push(("kind", kind.into()));
    item.extend(more.into_iter().map(|(key, value)| (key, value.into())));
    Object(item)
}
