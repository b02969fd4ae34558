//! Table 1 of paper 004 (Kambhatla, 1990) with its right values, its algorithms and its six scheduling
//! disciplines: one flit a message on complete binary trees of n PEs and height h, replayed flit by flit
//! (spec-exchange.md, sections 2 to 6, 9 and 11).

use std::ops::RangeInclusive;

use super::replay::{planned_of, replay};

const GOSSIP: &str = "gossip --lengths equal:1";
const EXCHANGE: &str = "exchange --lengths each:1";

/// Returns the steps of a plan; `LEAF` in the line is the last PE.
#[track_caller]
fn steps(line: &str, pes: u64) -> u64 {
    let line = line.replace("LEAF", &(pes - 1).to_string());
    let (operation, rest) = line.split_once(' ').expect("an operation");
    let rest = format!("{rest} --tree kary:2:{pes}");
    replay(&planned_of(operation, &rest))
}

/// Calls `check` with the number of PEs and the height of trees of these heights.
fn each(heights: RangeInclusive<u64>, check: impl Fn(u64, u64)) {
    for height in heights {
        check((2 << height) - 1, height);
    }
}

#[test]
fn the_four_operations_take_what_they_can() {
    each(1..=5, |n, h| {
        for (line, right) in [
            // The paper: 2 log n and log n.
            ("broadcast --size 1", 2 * h),
            ("broadcast --size 1 --from LEAF", 3 * h - 1),
            ("broadcast --size 1 --ports multi", h),
            ("broadcast --size 1 --ports multi --from LEAF", 2 * h),
            // The paper: n - 1 and (n - 1) / 3. The smallest tree is a star.
            (GOSSIP, 2 * n + 2 * h - 3 - u64::from(h == 1)),
            (&format!("{GOSSIP} --ports multi"), n - 1),
            ("scatter --lengths equal:1 --from 0", n - 1),
            ("scatter --lengths equal:1 --from LEAF", n - 1),
            ("scatter --lengths equal:1 --ports multi", (n - 1) / 2),
            ("scatter --lengths equal:1 --from 0 --ports multi", n / 2),
            ("scatter --lengths equal:1 --from LEAF --ports multi", n - 1),
        ] {
            assert_eq!(steps(line, n), right, "{n} PEs: {line}");
        }
    });
    // The paper: O(n^2).
    each(2..=4, |n, _| {
        let q = (n - 3) / 4;
        let single = n - 1 + (n + 1) * (n - 3) / 2 + 2 * q * q;
        assert_eq!(steps(EXCHANGE, n), single, "{n} PEs");
        let multi = steps(&format!("{EXCHANGE} --ports multi"), n);
        assert_eq!(multi, (n * n - 1) / 4, "{n} PEs");
    });
}

#[test]
fn algorithms_around_the_tree_take_the_time_of_the_reference() {
    // A4, with stops 3 (n - 1).
    each(1..=5, |n, _| {
        let line = format!("{GOSSIP} --ports multi --algorithm ring-emulation");
        assert_eq!(steps(&line, n), 2 * n - 3, "{n} PEs");
    });
    each(2..=4, |n, h| {
        let place = h as usize - 2;
        for (line, right) in [
            // A5, 3 (n - 1) in the paper, and A6, one way.
            ("scatter --lengths equal:1 --from LEAF", [11, 37, 87][place]),
            (
                "scatter --lengths equal:1 --from LEAF --ports multi",
                2 * (n - 1) - 2,
            ),
            // A7 sends n (n - 1) / 2 flits over each arc, three of them from each inner PE.
            (EXCHANGE, [64, 341, 1474][place]),
            (&format!("{EXCHANGE} --ports multi"), n * (n - 1) / 2 + 2),
        ] {
            let line = format!("{line} --algorithm ring-emulation");
            assert_eq!(steps(&line, n), right, "{n} PEs: {line}");
        }
    });
}

/// Result 8: all six disciplines take the same time, and it is not optimal; algorithm A3, which combines
/// messages, takes 2h cycles of four steps, each as long as its longest message.
#[test]
fn six_disciplines_take_twice_the_best_time() {
    each(1..=5, |n, _| {
        for order in ["prl", "plr", "lrp", "rlp", "rpl", "lpr"] {
            let found = steps(&format!("{GOSSIP} --algorithm discipline:{order}"), n);
            let unused = 2 * u64::from(order.ends_with('p'));
            assert_eq!(found, 4 * (n - 1) - unused, "{n} PEs: {order}");
        }
    });
    each(1..=4, |n, h| {
        let combining = steps(&format!("{GOSSIP} --algorithm combining"), n);
        assert_eq!(combining, [12, 72, 239, 664][h as usize - 1], "{n} PEs");
    });
}
