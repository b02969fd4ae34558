#!/usr/bin/env python3
"""Launch, one round and stop of clusters on this machine:  launch.py FLITCAST OUT.csv RUNS PES..

Appends a line for each command to OUT.csv, and prints the median, least and most seconds of a command.
"""
import csv, statistics, subprocess, sys, time

program, out, runs, *counts = sys.argv[1:]
with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(["pes", "run", "seconds"])
    for pes in counts:
        all = []
        for run in range(int(runs)):
            began = time.monotonic()
            subprocess.run([program, "scatter", "--tree", f"star:{pes}", "--size", "1KiB", "-q"], check=True)
            all.append(time.monotonic() - began)
            writer.writerow([pes, run, f"{all[-1]:.3f}"])
        print(f"{pes:>4} PEs: {statistics.median(all):.2f} s ({min(all):.2f} to {max(all):.2f})", flush=True)
