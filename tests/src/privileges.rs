//! What only root can make of this machine for a test: hosts, disks, clocks. All of it stands in
//! `tests/needs-root.txt`, so that whoever runs the suite without root hears all of it at once.

/// What is needed, and which tests need it.
const NEEDED: &str = include_str!("../needs-root.txt");

/// That this process is root's, for `what` of the list to be made.
///
/// # Panics
///
/// If it is not, with the whole list: the other tests of it fail as well.
#[track_caller]
pub fn needs_root(what: &str) {
    if let Err(complaint) = granted(what, rustix::process::geteuid().is_root()) {
        panic!("{complaint}");
    }
}

fn granted(what: &str, is_root: bool) -> Result<(), String> {
    let mut known = NEEDED.lines().filter_map(|line| line.split_once(": "));
    if !known.any(|(known, _)| known == what) {
        return Err(format!("`{what}` is missing in tests/needs-root.txt"));
    }
    match is_root {
        true => Ok(()),
        false => Err(format!(
            "{what} needs root. Without it these tests fail, and `cargo test --no-fail-fast` runs \
             the others:\n{NEEDED}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These tests run ahead of all others of the whole: what will fail is told at the start, and
    /// not by one test after the other.
    #[test]
    fn a_suite_without_root_says_first_what_will_fail() {
        needs_root("the network lab");
    }

    #[test]
    fn without_root_one_complaint_tells_of_all_tests_that_fail() {
        for line in NEEDED.lines() {
            let (what, tests) = line.split_once(": ").expect("what, and which tests");
            assert_eq!(granted(what, true), Ok(()));
            let complaint = granted(what, false).unwrap_err();
            assert!(complaint.starts_with(what), "{complaint}");
            assert!(complaint.contains(tests) && complaint.ends_with(NEEDED));
        }
        assert!(
            granted("a palace", true)
                .unwrap_err()
                .contains("needs-root.txt")
        );
    }
}
