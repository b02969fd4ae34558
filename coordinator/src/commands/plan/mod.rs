//! `flitcast plan`: what will happen, step by step, from the schedule that a real
//! run uses, without a network.

mod args;
mod broadcast;
mod command;
mod cover;
mod error;
mod exchange;
mod gossip_on_network;
mod gossip_on_tree;
mod gossip_report;
mod gossip_scene;
mod input;
mod ordered;
mod packet_args;
mod packets;
mod packets_certified;
mod packets_report;
mod packets_scene;
mod report;
mod scatter_from;
mod simulate;
mod static_plan;
mod static_report;
mod static_scene;
mod steps;
mod steps_report;
mod steps_scene;
mod svg;

pub use args::PlanArgs;
pub use command::run;
