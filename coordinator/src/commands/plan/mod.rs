//! `flitcast plan`: what will happen, step by step, from the schedule that a real
//! run uses, without a network.

mod args;
mod broadcast;
mod command;
mod cover;
mod exchange;
mod gossip;
mod gossip_on_network;
mod gossip_on_tree;
mod gossip_report;
mod gossip_scene;
mod json;
mod ordered;
mod packets;
mod packets_certified;
mod packets_report;
mod packets_scene;
mod scenes;
mod simulate;
mod static_plan;
mod svg;

pub use args::PlanArgs;
pub use command::run;
