#!/usr/bin/env python3
"""How far apart two sittings measured the same thing: what no prediction can be better than.

    again.py ONE.csv OTHER.csv

Both are of `run.sh`, or both of `files.sh`. Prints the median and the worst difference, in percent
of the second, over the cases that both have.
"""
import csv
import statistics
import sys

KEYS = ["operation", "tree", "lengths", "algorithm", "place", "workload", "cache"]


def measured(row):
    """What was measured, in microseconds."""
    if "median_us" in row:
        return float(row["median_us"])
    return float(row["transfer_us"]) + float(row["commit_us"])


def cases(path):
    with open(path, newline="", encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        return {tuple(row.get(key) for key in KEYS): measured(row) for row in rows}


one, other = (cases(path) for path in sys.argv[1:3])
off = sorted(abs(one[case] / other[case] - 1) * 100 for case in one.keys() & other.keys())
ninety = off[int(len(off) * 0.9)]
print(f"{len(off)} cases measured twice: median {statistics.median(off):.1f} % apart, "
      f"90 of 100 below {ninety:.1f} %, worst {off[-1]:.1f} %")
