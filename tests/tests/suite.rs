//! The end-to-end tests as one program, so that the code under test is linked once: a module for
//! each subject. The table of faults is a separate program, since its bounds are measured while
//! nothing else runs.
//!
//! Tests that need more than README's test command promises are `#[ignore]`d, and run by the name
//! of their module:
//!
//!     cargo test --workspace --test suite ssh:: -- --ignored

mod among_all;
mod architecture;
mod archive;
mod bad_input;
mod baselines;
mod bench;
mod broadcast;
mod brute_force;
mod calibrate;
mod certificates;
mod check;
mod choose;
mod clock_jumps;
mod cluster_file;
mod compare;
mod compress;
mod containers;
mod divided;
mod documents;
mod dry_run;
mod examples;
mod exhaustive;
mod faults;
mod faults_files;
mod files;
mod fuzz;
mod gossip;
mod gossip_on_network;
mod join;
mod kept;
mod kubernetes;
mod lab;
mod lanes;
mod leftovers;
mod limits;
mod links;
mod manual;
mod map;
mod metrics;
mod otel;
mod output;
mod pacing;
mod packets;
mod pictures;
mod pins;
mod plan;
mod plan_cover;
mod plan_exchange;
mod plan_links;
mod plan_simulated;
mod plan_static;
mod plans;
mod ports;
mod promtool;
mod refusals;
mod replay;
mod retry;
mod roots;
mod roundtrip;
mod schedules;
mod schema;
mod security;
mod selection;
mod slurm;
mod ssh;
mod standstill;
mod storm;
mod table_1;
mod terminal;
mod timed;
mod trees;
mod update;
mod watch;
mod wildcards;
mod wire;
