//! See the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    flitcast_coordinator::main()
}
