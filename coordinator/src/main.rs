//! The `flitcast` command.

// Until the command line is there to use them.
#[allow(dead_code)]
mod tree_file;
#[allow(dead_code)]
mod units;
#[allow(dead_code)]
mod workload;

fn main() {}
