#!/usr/bin/env python3
"""Plans what table 1 and the algorithms of paper 004 (Kambhatla, 1990) describe.

run.py FLITCAST

Complete binary trees of n PEs and height h, one flit a message. For each cell: the paper's value, the
right one, and the planned steps for n = 7, 15, 31, 63. The exit status is 1 if a plan takes other steps.
"""

import json
import subprocess
import sys

PES = [7, 15, 31, 63]
GOSSIP, EXCHANGE = "gossip --lengths equal:1", "exchange --lengths each:1"
SCATTER, BROADCAST = "scatter --lengths equal:1", "broadcast --size 1"
MULTI, RING = "--ports multi", "--algorithm ring-emulation"


def height(n):
    return (n + 1).bit_length() - 2


def exchange(n):
    q = (n - 3) // 4
    return n - 1 + (n + 1) * (n - 3) // 2 + 2 * q * q


def scatter_by_ring(n):
    return {7: 11, 15: 37, 31: 87, 63: 198}[n]


# What, the paper's value, the right one as text and as a function, the command line; {leaf} is the last PE.
TABLE_1 = [
    ("broadcast, single ports, from the root", "2 log n", "2h", lambda n: 2 * height(n), BROADCAST),
    ("the same from a leaf", "2 log n", "3h - 1", lambda n: 3 * height(n) - 1, f"{BROADCAST} --from {{leaf}}"),
    ("broadcast, multi ports, from the root", "log n", "h", height, f"{BROADCAST} {MULTI}"),
    ("the same from a leaf", "log n", "2h", lambda n: 2 * height(n), f"{BROADCAST} {MULTI} --from {{leaf}}"),
    ("gossip, single ports", "n - 1", "2n + 2h - 3", lambda n: 2 * n + 2 * height(n) - 3, GOSSIP),
    ("gossip, multi ports", "(n - 1) / 3", "n - 1", lambda n: n - 1, f"{GOSSIP} {MULTI}"),
    ("scatter, single ports, from a leaf", "n - 1", "n - 1", lambda n: n - 1, f"{SCATTER} --from {{leaf}}"),
    ("scatter, multi ports, from the root", "(n - 1) / 3", "(n - 1) / 2", lambda n: (n - 1) // 2, f"{SCATTER} {MULTI}"),
    ("the same from a leaf", "(n - 1) / 3", "n - 1", lambda n: n - 1, f"{SCATTER} {MULTI} --from {{leaf}}"),
    ("exchange, single ports", "O(n^2)", "n - 1 + (n + 1)(n - 3) / 2 + 2q^2", exchange, EXCHANGE),
    ("exchange, multi ports", "O(n^2)", "(n^2 - 1) / 4", lambda n: (n * n - 1) // 4, f"{EXCHANGE} {MULTI}"),
]

ALGORITHMS = [
    ("A3, combining", "2h repetitions of 3 steps", "2h of 4 with growing messages", None, f"{GOSSIP} --algorithm combining"),
    ("A4, gossip around the tree, multi ports", "3(n - 1)", "2n - 3", lambda n: 2 * n - 3, f"{GOSSIP} {MULTI} {RING}"),
    ("A5, scatter around the tree, single ports", "3(n - 1)", "no formula", scatter_by_ring, f"{SCATTER} {RING} --from {{leaf}}"),
    ("A6, the same with multi ports, one way", "3n / 2 both ways", "2(n - 1) - 2", lambda n: 2 * n - 4, f"{SCATTER} {RING} {MULTI} --from {{leaf}}"),
    ("A7, exchange around the tree, single ports", "-", "at least 3n(n - 1) / 2", None, f"{EXCHANGE} {RING}"),
    ("A7, multi ports", "-", "at least n(n - 1) / 2", None, f"{EXCHANGE} {RING} {MULTI}"),
]

DISCIPLINES = [
    (f"s{order.upper()}", "the same for all six", "n - 1 cycles of 4 steps", None, f"{GOSSIP} --algorithm discipline:{order}")
    for order in ["prl", "plr", "lrp", "rlp", "rpl", "lpr"]
]


def steps(flitcast, line, n):
    """Returns the steps of a plan and its bound."""
    line = line.format(leaf=n - 1)
    words = f"plan {line} --tree kary:2:{n} --summary --format json".split()
    printed = subprocess.run([flitcast, *words], check=True, capture_output=True).stdout
    plan = json.loads(printed)
    return plan["time_steps"], plan["bound_steps"]


def main():
    flitcast = sys.argv[1]
    all_right = True
    for title, rows in [("Table 1", TABLE_1), ("algorithms", ALGORITHMS), ("disciplines of a gossip, single ports", DISCIPLINES)]:
        print(f"| {title} | paper | right | " + " | ".join(f"n = {n}" for n in PES) + " |")
        print("| --- " * (3 + len(PES)) + "|")
        for what, paper, right, expected, line in rows:
            cells = []
            for n in PES:
                planned, bound = steps(flitcast, line, n)
                wanted = expected(n) if expected else planned
                # The right values of the largest exchange are bounds.
                is_right = wanted in (planned, bound)
                all_right &= is_right
                cells.append(str(planned) if wanted == planned else f"{planned} (not {wanted})")
                if is_right and wanted != planned:
                    cells[-1] = f"{planned} (bound {bound})"
            print(f"| {what} | {paper} | {right} | " + " | ".join(cells) + " |")
        print()
    sys.exit(0 if all_right else 1)


main()
