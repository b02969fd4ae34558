#!/usr/bin/env python3
"""Runs the experiment of Juurlink, Rao and Sibeyn (1996, section 7) with 81 processes.

run.py FLITCAST [--csv FILE] [--rounds N] [--slower FACTOR]

The paper measured a step of a Paragon with 0.3 ms and 22 ns per byte. The links here have a set-up time
and a rate of that ratio, FACTOR times slower, so that 81 processes on few cores do not decide; times are
divided by FACTOR in the table.
"""

import argparse
import csv
import json
import subprocess
import sys

STEP_US, BYTE_NS = 300, 22
SIZES = ["256", "1KiB", "4KiB", "16KiB", "32KiB"]
NETWORKS = {
    "torus:9x9": {
        "1-1": "approach1",
        "2-2": "approach2:3",
        "2-1": "phases:3,3,1/9,3,1",
        "TORGOS(3,3,1)": "torgos:3;3;1",
    },
    "mesh:9x9": {
        "1-1": "approach1",
        "2-2": "approach2:3",
        "2-1": "phases:3,3,1/9,3,1",
        "TORGOS(3,3,1)": "torgos:3;3;1",
    },
}
# What is done without these algorithms: each PE sends its block to all others, or along a spanning tree.
NAIVE = {"direct": "--network complete:81 --algorithm direct", "flood": "--network {} --algorithm flood"}


def alternatives(network):
    """Returns the options for each algorithm on a network."""
    ours = f"--network {network} --ports multi --flit-size 64KiB --algorithm"
    named = {name: f"{ours} {algorithm}" for name, algorithm in NETWORKS[network].items()}
    return named | {name: options.format(network) for name, options in NAIVE.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--csv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slower", type=float, default=50)
    args = parser.parse_args()
    rate_kbit = round(8e6 / BYTE_NS / args.slower)
    link = f"setup={round(STEP_US * args.slower)}us,rate={rate_kbit}kbit"
    rows = []
    for network in NETWORKS:
        for size in SIZES:
            for name, options in alternatives(network).items():
                command = [args.binary, "gossip", *options.split(), "--size", size, "--link", link,
                           "--rounds", str(args.rounds), "--format", "json"]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    print(network, size, name, done.stderr.strip(), file=sys.stderr)
                    continue
                report = json.loads(done.stdout)["round"]
                row = {
                    "network": network,
                    "size": size,
                    "algorithm": name,
                    "predicted_ms": round(report["predicted_us"] / 1000 / args.slower, 3),
                    "measured_ms": round(report["measured_us"]["median"] / 1000 / args.slower, 3),
                }
                rows.append(row)
                print(*row.values(), file=sys.stderr, flush=True)
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    print(f"Links: `{link}`; times are divided by {args.slower:g}.\n")
    for network in NETWORKS:
        algorithms = alternatives(network)
        print(f"**{network}**, ms measured (predicted)\n")
        print("| size | " + " | ".join(algorithms) + " | quickest | direct takes |")
        print("| --- |" + " --- |" * (len(algorithms) + 2))
        for size in SIZES:
            here = {row["algorithm"]: row for row in rows if (row["network"], row["size"]) == (network, size)}
            if not here:
                continue
            cells = [f"{here[name]['measured_ms']} ({here[name]['predicted_ms']})" if name in here else "-"
                     for name in algorithms]
            ours = [row for name, row in here.items() if name not in NAIVE]
            best = min(ours, key=lambda row: row["measured_ms"])
            naive = here.get("direct")
            times = f"{naive['measured_ms'] / best['measured_ms']:.1f} times as long" if naive else "-"
            print(f"| {size} | " + " | ".join(cells) + f" | {best['algorithm']} | {times} |")
        print()


if __name__ == "__main__":
    main()
