#!/usr/bin/env python3
"""Compares what flitcast chooses with every alternative, each of which is run.

run.py FLITCAST [--csv FILE] [--only SUBSTRING] [--rounds N]

Prints one row for each situation: an operation on a network, with a message size and a link. The
alternatives are those of `flitcast compare`, baselines as well, without those that are predicted to
take more than FAR times as long as the best. All runs of a situation follow each other, the choice
once at the beginning and once at the end; the time of a run is the median of its rounds. Where another
one seems quicker, the quickest three and the choice run five times more, in turns, and their medians count.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys

FAR = 2.5
# The choice and the quickest AGAIN alternatives run TURNS times more if the choice took longer by this factor.
NEAR, AGAIN, TURNS = 1.05, 3, 5
# Rounds that take longer are run fewer times.
LONG_US = 400_000
SLOW, FAST, FASTER = "rate=100mbit,latency=10ms", "rate=1gbit,latency=1ms", "rate=1gbit,latency=100us"
LOOPBACK = None
BASELINES = ["linear", "window", "binomial", "adaptive"]
SITUATIONS = {
    "scatter": [
        ("complete:8", [("1KiB", SLOW), ("1MiB", FAST), ("64MiB", LOOPBACK)]),
        ("hypercube:3", [("64KiB", SLOW), ("4MiB", FAST), ("16KiB", LOOPBACK)]),
        ("torus:3x3", [("16KiB", FAST), ("1MiB", FASTER), ("4MiB", LOOPBACK)]),
        ("ring:8", [("1KiB", FAST), ("256KiB", SLOW), ("1MiB", LOOPBACK)]),
    ],
    "gather": [
        ("complete:8", [("1KiB", SLOW), ("1MiB", FAST), ("64MiB", LOOPBACK)]),
        ("hypercube:3", [("64KiB", SLOW), ("4MiB", FAST), ("16KiB", LOOPBACK)]),
        ("torus:3x3", [("16KiB", FAST), ("1MiB", FASTER), ("4MiB", LOOPBACK)]),
        ("ring:8", [("1KiB", FAST), ("256KiB", SLOW), ("1MiB", LOOPBACK)]),
    ],
    "broadcast": [
        ("complete:8", [("4KiB", SLOW), ("4MiB", FAST), ("64MiB", LOOPBACK)]),
        ("hypercube:3", [("64KiB", SLOW), ("16MiB", FAST), ("16KiB", LOOPBACK)]),
        ("torus:3x3", [("16KiB", FAST), ("1MiB", FASTER), ("4MiB", LOOPBACK)]),
        ("ring:8", [("1KiB", FAST), ("1MiB", SLOW), ("1MiB", LOOPBACK)]),
    ],
    "gossip": [
        ("complete:8", [("1KiB", SLOW), ("1MiB", FAST), ("8MiB", LOOPBACK)]),
        ("hypercube:3", [("64KiB", SLOW), ("256KiB", FAST), ("16KiB", LOOPBACK)]),
        ("torus:3x3", [("16KiB", FAST), ("1MiB", FASTER), ("1MiB", LOOPBACK)]),
        ("ring:8", [("1KiB", FAST), ("64KiB", SLOW), ("1MiB", LOOPBACK)]),
    ],
    "exchange": [
        ("complete:8", [("1KiB", SLOW), ("1MiB", FAST), ("4MiB", LOOPBACK)]),
        ("hypercube:3", [("64KiB", SLOW), ("256KiB", FAST), ("16KiB", LOOPBACK)]),
        ("torus:3x3", [("16KiB", FAST), ("256KiB", FASTER), ("256KiB", LOOPBACK)]),
        ("ring:8", [("1KiB", FAST), ("64KiB", SLOW), ("256KiB", LOOPBACK)]),
    ],
}


def flitcast(binary, words):
    """Returns the JSON that a command prints."""
    done = subprocess.run([binary, *words, "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def options_of(operation, network, row):
    """Returns the options that name an alternative."""
    name, tree = row["algorithm"], row["tree"]
    options = ["--flit-size", str(row["flit_bytes"])]
    if name in BASELINES:
        return ["--network", network, "--algorithm", name, *options]
    if name.startswith("certification-"):
        _, sync, *pacing = name.split("-")
        options += ["--algorithm", "certification", "--sync", sync, "--pacing", *(pacing or ["scheduled"])]
    elif name.startswith("orders"):
        options += ["--algorithm", "orders", "--pacing", name.removeprefix("orders").strip("-") or "scheduled"]
    elif name.startswith("shoulder-tap"):
        pacing = name.removeprefix("shoulder-tap").strip("-")
        options += ["--algorithm", "shoulder-tap", "--pacing", pacing or "scheduled"]
    else:
        options += ["--algorithm", name]
    if tree.startswith(network):
        return ["--network", network, "--spanning", tree.split()[-1], *options]
    return ["--tree", tree, *options]


def median_us(binary, words, rounds):
    """Returns the measured and the predicted time of a command's rounds."""
    report = flitcast(binary, [*words, "--rounds", str(rounds)])
    return report["round"]["measured_us"]["median"], report["round"]["predicted_us"], report


def situation(binary, operation, network, size, link, rounds):
    """Runs the choice and all alternatives of a situation; returns its row."""
    common = ["--size", size] + (["--link", link] if link else [])
    compared = flitcast(binary, ["compare", operation, "--network", network, *common])["results"]
    least = compared[0]["predicted_us"]
    near = [row for row in compared if row["predicted_us"] <= FAR * least]
    rounds = max(3, rounds // 3) if least > LONG_US else rounds
    line = [operation, "--network", network, *common]
    first, predicted, report = median_us(binary, line, rounds)
    measured = []
    for row in near:
        words = [operation, *options_of(operation, network, row), *common]
        try:
            took, _, _ = median_us(binary, words, rounds)
        except RuntimeError as error:
            # Only the choice sees all PEs of a network as each other's neighbours.
            print(error, file=sys.stderr)
            continue
        measured.append((took, row))
    last, _, _ = median_us(binary, line, rounds)
    chosen = report["choice"]["chosen"]
    took = min(first, last)
    measured.sort(key=lambda it: it[0])
    best, row = measured[0] if measured else (took, chosen)
    if took > NEAR * best:
        # The least of many single runs is lucky: the quickest and the choice run again, in turns.
        lines = [(line, chosen)] + [([operation, *options_of(operation, network, row), *common], row)
                                    for _, row in measured[:AGAIN]]
        again = [[median_us(binary, words, rounds)[0] for words, _ in lines] for _ in range(TURNS)]
        took, *others = (statistics.median(column) for column in zip(*again))
        best, row = min(zip(others, (row for _, row in lines[1:])), key=lambda it: it[0])
    return {
        "operation": operation,
        "network": network,
        "size": size,
        "link": link or "loopback",
        "alternatives": len(measured),
        "chosen": f"{chosen['algorithm']} on {chosen['tree']}, {chosen['flit_bytes']} B",
        "choosing_ms": round(report["choice"]["took_us"] / 1000, 2),
        "predicted_ms": round(predicted / 1000, 3),
        "chosen_ms": round(took / 1000, 3),
        "best": f"{row['algorithm']} on {row['tree']}, {row['flit_bytes']} B",
        "best_ms": round(best / 1000, 3),
        "over_best_pct": round((took / best - 1) * 100, 1),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--csv")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    rows = []
    for operation, networks in SITUATIONS.items():
        for network, cases in networks:
            for size, link in cases:
                if args.only not in f"{operation} {network} {size} {link or 'loopback'}":
                    continue
                row = situation(args.binary, operation, network, size, link, args.rounds)
                rows.append(row)
                print(f"{' '.join(str(value) for value in row.values())}", file=sys.stderr, flush=True)
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    print("| operation | network | size | link | alternatives | chosen | choosing | took | best | took | over it |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        print(
            f"| {row['operation']} | {row['network']} | {row['size']} | {row['link']} | {row['alternatives']} "
            f"| {row['chosen']} | {row['choosing_ms']} ms | {row['chosen_ms']} ms "
            f"| {row['best']} | {row['best_ms']} ms | {row['over_best_pct']} % |"
        )
    for most in (5, 15):
        within = sum(row["over_best_pct"] <= most for row in rows)
        print(f"\nWithin {most} % of the best: {within} of {len(rows)}.")


if __name__ == "__main__":
    main()
