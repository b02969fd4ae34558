//! The `flitcast` binary, and where the tests put their files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use escargot::CargoBuild;
use tempfile::TempDir;

/// The `flitcast` binary, built from the sources as they are, in the profile and the
/// target directory of the test that asks. It is built once in a test process.
///
/// It is built with what the tests were built with, so that nothing that it is made of is built anew:
/// with the feature `otel`, that is, which this package asks for.
///
/// # Panics
///
/// If it cannot be built: a test of a binary that is not there, or is an old one,
/// says nothing.
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
    // What it says is of the tests' own programs, too.
    let built = build
        .exec()
        .and_then(|mut all| all.try_for_each(|said| said.map(drop)));
    match built {
        Ok(()) => profile_dir().join("flitcast"),
        Err(error) => panic!("flitcast cannot be built: {error}"),
    }
}

/// What cargo tells a test of its package. It is not for a cargo that the test runs: a
/// crate that looks at it would be built anew, and once more by the next one outside.
pub fn of_cargo() -> impl Iterator<Item = OsString> {
    let is_told = |name: &OsString| {
        let name = name.as_encoded_bytes();
        name.starts_with(b"CARGO_PKG_") || name.starts_with(b"CARGO_MANIFEST_")
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_told)
}

/// An empty directory, removed at the end. It is in the target directory, since what
/// is at `/tmp` may be in memory, and some tests write much.
pub fn scratch() -> TempDir {
    let parent = target_dir().join("tmp");
    std::fs::create_dir_all(&parent).expect("the target directory can be written to");
    let dir = tempfile::Builder::new()
        .prefix("flitcast-")
        .tempdir_in(parent);
    dir.expect("the target directory can be written to")
}

/// Where commands under test keep what they learn of this machine.
pub(crate) fn cache() -> PathBuf {
    target_dir().join("tmp").join("cache")
}

fn target_dir() -> PathBuf {
    above_test(3)
}

fn profile_dir() -> PathBuf {
    above_test(2)
}

/// A test is `TARGET/PROFILE/deps/NAME`.
fn above_test(levels: usize) -> PathBuf {
    let test = std::env::current_exe().expect("the system knows the running program");
    let above = test.ancestors().nth(levels);
    above
        .expect("cargo puts tests three levels down")
        .to_owned()
}
