#!/usr/bin/env python3
"""Predicted beside measured on shaped links, by all operations and algorithms: eight workloads that no
measuring has seen, one round each, on one machine.

    predictions.py FLITCAST predictions.csv

Prints how far predictions are off, by operation and algorithm.
"""
import csv
import json
import statistics
import subprocess
import sys

# Tree, its PEs, lengths for scatter and gather, lengths for gossip, size for exchange and for
# broadcast, links.
WORKLOADS = [
    ("kary:2:9", 9, "uniform:0..400KiB:11", "uniform:0..300KiB:5", "40KiB", "700KiB", "rate=20mbit,latency=1ms"),
    ("path:6", 6, "equal:200KiB", "ramp:200KiB", "90KiB", "1MiB", "rate=50mbit,latency=5ms"),
    ("star:8", 8, "onebig:100KiB", "onebig:150KiB", "60KiB", "500KiB", "rate=30mbit"),
    ("kary:3:7", 7, "ramp:150KiB", "halfnull:100KiB", "30KiB", "300KiB", "rate=10mbit,latency=2ms"),
    ("binomial:8", 8, "halfnull:300KiB", "equal:250KiB", "100KiB", "2MiB", "rate=40mbit,latency=500us"),
    ("random:9:4", 9, "uniform:10KiB..600KiB:5", "uniform:10KiB..90KiB:3", "25KiB", "900KiB", "rate=25mbit,latency=3ms"),
    ("kary:2:12", 12, "equal:64KiB", "equal:64KiB", "20KiB", "400KiB", "rate=15mbit,latency=10ms"),
    ("path:9", 9, "uniform:1KiB..100KiB:9", "uniform:1KiB..200KiB:2", "50KiB", "1500KiB", "rate=35mbit,latency=1ms"),
]
SYNCS = [(sync, pacing) for sync in ("serial", "pipelined") for pacing in ("scheduled", "turns", "eager")]


def commands(workload):
    """Each command of a workload, and what it is called."""
    tree, pes, lengths, shards, piece, size, link = workload
    on_tree, among_all, ring = f"--tree {tree}", f"--network complete:{pes}", f"--network ring:{pes}"
    dealt = f"{on_tree} --link {link} --lengths {lengths}"
    yield "scatter fdf", f"scatter {dealt}"
    for sync, pacing in SYNCS:
        yield f"gather certification-{sync}-{pacing}", (
            f"gather {dealt} --algorithm certification --sync {sync} --pacing {pacing}")
    if tree.startswith("path"):
        yield "gather shoulder-tap", f"gather {dealt} --algorithm shoulder-tap"
    for algorithm in ("rounds", "urgent", "child-by-child"):
        yield f"broadcast {algorithm}", f"broadcast {on_tree} --link {link} --size {size} --algorithm {algorithm}"
    for algorithm in ("path", "kary:2", "hypercube"):
        if algorithm != "hypercube" or pes == 8:
            yield f"broadcast {algorithm}", (
                f"broadcast {among_all} --link {link} --size {size} --algorithm {algorithm}")
    for ports in ("single", "multi"):
        more = f"--link {link} --ports {ports}"
        for algorithm in ("flood", "ring-emulation"):
            yield f"gossip {algorithm} {ports}", (
                f"gossip {on_tree} --lengths {shards} --algorithm {algorithm} {more}")
        for algorithm in ("approach1", "approach2", "halves"):
            yield f"gossip {algorithm} {ports}", f"gossip {ring} --lengths {shards} --algorithm {algorithm} {more}"
        yield f"exchange tree {ports}", f"exchange {on_tree} --size {piece} --algorithm tree {more}"
    for algorithm in ("circulate", "dissemination", "direct"):
        yield f"gossip {algorithm}", f"gossip {among_all} --link {link} --lengths {shards} --algorithm {algorithm}"
    for algorithm in ("rounds", "shifts", "at-once"):
        yield f"exchange {algorithm}", f"exchange {among_all} --link {link} --size {piece} --algorithm {algorithm}"


flitcast, out = sys.argv[1:3]
off = {}
with open(out, "w", newline="", encoding="utf-8") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["workload", "way", "predicted_us", "measured_us", "error_pct"])
    for number, workload in enumerate(WORKLOADS, 1):
        for name, line in commands(workload):
            words = [flitcast, *line.split(), "--format", "json"]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            took = json.loads(done.stdout)["round"]
            predicted, measured = took["predicted_us"], took["measured_us"]["median"]
            error = (predicted / measured - 1) * 100
            off.setdefault(name, []).append(error)
            rows.writerow([number, name, f"{predicted:.0f}", f"{measured:.0f}", f"{error:.1f}"])
            file.flush()
for name, errors in off.items():
    sizes = [abs(error) for error in errors]
    print(f"{name:34} {len(sizes)} cases, median {statistics.median(sizes):4.1f} %, worst {max(errors, key=abs):+5.1f} %")
every = [abs(error) for errors in off.values() for error in errors]
print(f"all: {len(every)} cases, median {statistics.median(every):.1f} %, worst {max(every):.1f} %")
