//! The `flitcast` command.

fn main() {}
