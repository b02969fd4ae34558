//! The `flitcast` binary, and the directories around it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use escargot::CargoBuild;

/// Builds the `flitcast` binary from the present sources, with the profile and the target directory
/// of the test, once per test process, and returns its path.
///
/// It is built with the same features as the tests (including `otel`), so that no dependency is
/// built again.
pub fn flitcast() -> &'static Path {
    static BINARY: LazyLock<PathBuf> = LazyLock::new(build);
    &BINARY
}

fn build() -> PathBuf {
    let build = CargoBuild::new();
    let build = of_cargo().fold(build, CargoBuild::env_remove);
    let build = build
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .args(["--workspace", "--test", "suite", "--bin", "flitcast"])
        .current_release()
        .target_dir(target_dir());
    // The messages also concern the tests' own programs.
    let built = build.exec();
    let built = built.and_then(|mut all| all.try_for_each(|message| message.map(drop)));
    built.unwrap_or_else(|error| panic!("flitcast cannot be built: {error}"));
    above_test(2).join("flitcast")
}

/// Returns the variables that cargo sets for a test of its package. A cargo that the test runs must
/// not get them: a crate that reads them would be rebuilt, and rebuilt again outside of the test.
pub fn of_cargo() -> impl Iterator<Item = OsString> {
    let is_from_cargo = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
    };
    std::env::vars_os()
        .map(|(name, _)| name)
        .filter(is_from_cargo)
}

/// Returns the directory in which commands under test store their measurements of this machine.
pub(crate) fn cache() -> PathBuf {
    target_dir().join("tmp").join("cache")
}

pub(crate) fn target_dir() -> PathBuf {
    above_test(3)
}

/// A test is `TARGET/PROFILE/deps/NAME`.
fn above_test(levels: usize) -> PathBuf {
    let test = std::env::current_exe().expect("the system knows the running program");
    let above = test.ancestors().nth(levels).map(Path::to_owned);
    above.expect("cargo puts tests three levels down")
}
