#!/usr/bin/env python3
"""Prints what flitcast chooses by prediction, and how long that takes, without running it.

predicted.py FLITCAST.. [--times N] [--pes N,N..]

First the situations of run.py: the time of each choice, the least of N, and how many take more than
20 ms and a twentieth of the predicted time. Then choices among many PEs of a complete network: the
predicted time of the choice, as a multiple of the least one that `flitcast compare` predicts. Several
binaries are called in turns.
"""

import argparse

from run import FAST, SITUATIONS, flitcast

UNNOTICED_US, PART = 20_000, 0.05
AMONG_MANY = [
    ("scatter", "64KiB"),
    ("gather", "1KiB"),
    ("gather", "64KiB"),
    ("broadcast", "4KiB"),
    ("broadcast", "1MiB"),
    ("gossip", "1KiB"),
    ("gossip", "64KiB"),
    ("exchange", "64"),
    ("exchange", "4KiB"),
]
FASTER = "rate=10gbit,latency=100us"


def choice_of(binary, words):
    """Returns what a command would choose."""
    return flitcast(binary, [*words, "--dry-run"])["choice"]


def time_choices(binaries, times):
    """Prints the time of each choice of run.py."""
    long = [0] * len(binaries)
    print("| situation |" + " choosing | of predicted |" * len(binaries))
    print("| --- |" + " --- | --- |" * len(binaries))
    for operation, networks in SITUATIONS.items():
        for network, cases in networks:
            for size, link in cases:
                words = [operation, "--network", network, "--size", size]
                words += ["--link", link] if link else []
                all_choices = [[choice_of(binary, words) for binary in binaries] for _ in range(times)]
                cells = []
                for place, choices in enumerate(zip(*all_choices)):
                    took, predicted = min((one["took_us"], one["chosen"]["predicted_us"]) for one in choices)
                    long[place] += took > max(UNNOTICED_US, PART * predicted)
                    cells.append(f" {took / 1000:.1f} ms | {predicted / 1000:.1f} ms |")
                print(f"| {operation} {network} {size} {link or 'loopback'} |" + "".join(cells), flush=True)
    print(f"\nMore than 20 ms and a twentieth of the predicted time: {', '.join(map(str, long))}.\n")


def compare_choices(binaries, numbers):
    """Prints the choices among many PEs."""
    print("| situation |" + " chosen | of the best |" * len(binaries))
    print("| --- |" + " --- | --- |" * len(binaries))
    worst = [0.0] * len(binaries)
    for pes in numbers:
        for operation, size in AMONG_MANY:
            for link in (FAST, FASTER):
                words = [operation, "--network", f"complete:{pes}", "--size", size, "--link", link]
                cells = []
                for place, binary in enumerate(binaries):
                    chosen = choice_of(binary, words)["chosen"]
                    best = flitcast(binary, ["compare", *words])["results"][0]
                    ratio = chosen["predicted_us"] / best["predicted_us"]
                    worst[place] = max(worst[place], ratio)
                    cells.append(f" {chosen['algorithm']} | {ratio:.2f} |")
                print(f"| {operation} complete:{pes} {size} {link} |" + "".join(cells), flush=True)
    print(f"\nThe worst: {', '.join(f'{ratio:.2f}' for ratio in worst)} times the best.")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--pes", default="32,64,128")
    args = parser.parse_args()
    if args.times:
        time_choices(args.binaries, args.times)
    if args.pes:
        compare_choices(args.binaries, [int(pes) for pes in args.pes.split(",")])


if __name__ == "__main__":
    main()
