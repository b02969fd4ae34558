//! Ends the build on any system but Linux with a line that says so, instead of a page of what is
//! not there: timers, `/proc` and death signals are Linux's (`src/system`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        println!(
            "cargo::error=Flitcast runs on Linux alone: see src/system of the crate flitcast-node"
        );
    }
}
