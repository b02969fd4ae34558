//! Tests that lengths match the MPI program, and that invalid ones are refused.

use proptest::prelude::*;

use super::*;

fn deal(text: &str, n: usize) -> Vec<u64> {
    text.parse::<Lengths>().unwrap().deal(n).unwrap()
}

fn message(text: &str) -> String {
    text.parse::<Lengths>().unwrap_err()
}

#[test]
fn a_list_is_taken_as_it_stands() {
    assert_eq!(deal("64KiB, 0,3MiB", 3), [65_536, 0, 3 << 20]);
    assert_eq!(deal("7", 1), [7]);
    for n in [0, 2, 4] {
        let error = Lengths::List(vec![1, 2, 3]).deal(n).unwrap_err();
        let expected =
            format!("3 lengths are given, but {n} needed: one for each PE from P1 to P{n} ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn patterns_are_those_of_the_mpi_program() {
    // Printed by mpi_collectives.c's own loop, compiled by itself.
    assert_eq!(deal("equal:1000", 6), [1000, 1000, 1000, 1000, 1000, 1000]);
    assert_eq!(deal("equal:65536", 5), [65536, 65536, 65536, 65536, 65536]);
    assert_eq!(deal("ramp:1000", 6), [285, 571, 857, 1142, 1428, 1714]);
    assert_eq!(deal("ramp:65536", 5), [21845, 43690, 65536, 87381, 109226]);
    assert_eq!(deal("onebig:1000", 6), [100, 100, 100, 100, 100, 5400]);
    assert_eq!(deal("onebig:65536", 5), [6553, 6553, 6553, 6553, 294912]);
    assert_eq!(deal("halfnull:1000", 6), [2000, 0, 2000, 0, 2000, 0]);
    assert_eq!(deal("halfnull:65536", 5), [131072, 0, 131072, 0, 131072]);
    assert_eq!(deal("onebig:49", 3), [4, 4, 132]);
    assert_eq!(deal("ramp:1", 4), [0, 0, 1, 1]);
    assert_eq!(deal("ramp:0", 2), [0, 0]);
    assert_eq!(deal("onebig:1000000", 1), [900000]);
    // Where doubles fall one byte short of the true quotient.
    assert_eq!(deal("ramp:10000", 124)[101], 16_319);
    assert_eq!(deal("ramp:1000000", 159)[81], 1_024_999);
}

#[test]
fn a_size_is_equal_lengths() {
    assert_eq!(Lengths::of_size(1 << 20), "equal:1MiB".parse().unwrap());
    assert_eq!(deal("equal:1.5KiB", 3), [1536; 3]);
    assert_eq!(deal("equal:9007199254740993", 1), [(1 << 53) + 1]);
    assert!(deal("ramp:1MiB", 0).is_empty());
}

#[test]
fn uniform_reaches_both_bounds_and_never_changes() {
    let lengths = deal("uniform:3..5:1", 100);
    for bytes in 3..=5 {
        assert!(lengths.contains(&bytes));
    }
    assert!(lengths.iter().all(|l| (3..=5).contains(l)));
    assert_eq!(deal("uniform:8KiB..8KiB:9", 2), [8192, 8192]);
    assert_eq!(deal("uniform:0..1MiB:7", 3), [408_766, 17_603, 944_516]);
}

#[test]
fn what_is_together_too_much_is_refused() {
    let most = format!("{MAX_TOTAL_BYTES},0");
    assert_eq!(deal(&most, 2), [MAX_TOTAL_BYTES, 0]);
    for text in [
        "equal:4EiB",
        "halfnull:15EiB",
        "ramp:15EiB",
        "onebig:15EiB",
        "uniform:0..18446744073709551615:1",
    ] {
        let error = text.parse::<Lengths>().unwrap().deal(9).unwrap_err();
        assert!(
            error.starts_with("the lengths add up to "),
            "{text}: {error}"
        );
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    assert!(message("").contains("no lengths are given; write a list"));
    assert!(message("1,x,3").contains("length 2 of the list: `x` is not a size"));
    assert!(message("1,,3").contains("length 2 of the list: `` is not a size"));
    assert!(message("ramp").contains("`ramp` is neither a size nor a pattern"));
    assert!(message("rmap:3").contains("`rmap` is neither a size nor a pattern"));
    assert!(message("ramp:3Q").contains("the mean length: `3Q`: unknown unit `Q`"));
    assert!(message("uniform:3:1").contains("form uniform:LO..HI:SEED"));
    assert!(message("uniform:3..4").contains("form uniform:LO..HI:SEED"));
    assert!(message("uniform:3..4:x").contains("form uniform:LO..HI:SEED"));
    assert!(message("uniform:5..4:1").contains("5 bytes, is more than the greatest, 4 bytes"));
    assert!(message("uniform:5..4e:1").contains("the greatest length: `4e`"));
}

proptest! {
    #[test]
    fn lengths_read_back(list in prop::collection::vec(any::<u64>(), 1..5), a: u64, b: u64) {
        let uniform = Lengths::Uniform { low: a.min(b), high: a.max(b), seed: a };
        let dealt = Pattern::value_variants().iter().map(|&pattern| Lengths::Dealt { pattern, mean: a });
        for lengths in [Lengths::List(list), uniform].into_iter().chain(dealt) {
            prop_assert_eq!(lengths.to_string().parse(), Ok(lengths));
        }
    }
}
