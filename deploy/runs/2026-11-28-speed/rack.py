#!/usr/bin/env python3
"""Scatter behind one switch of the network lab (16 KiB of queue for each host), command after command in
turns, as a multiple of the wire's time: all frames with their headers at the link's rate.

    rack.py OUT.csv PES RATE_MBIT PAIRS SIZE_KIB.. -- FLITCAST..      (root; builds and removes the lab)

Appends a line for each command to OUT.csv, and prints the median over the commands of the median and of
the worst of 21 rounds, and the packets that TCP sent again in all of them.
"""
import csv, json, statistics, subprocess, sys
from pathlib import Path

out, pes, rate, pairs, *rest = sys.argv[1:]
at = rest.index("--")
sizes, programs = [int(size) for size in rest[:at]], rest[at + 1:]
lab = Path(__file__).resolve().parents[2] / "lab"
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def wire_us(size):
    frame = size * 1024 + 60
    return (int(pes) - 1) * (frame + -(-frame // 1448) * 66) * 8 / float(rate)


def run(program, size):
    words = [program, "scatter", "--cluster", "/run/flitcast-lab/cluster.toml", "--size", f"{size}KiB",
             "--rounds", "21", "--format", "json"]
    round = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)["round"]
    times = round["measured_us"]
    return times["median"] / wire_us(size), times["max"] / wire_us(size), round.get("retransmitted_packets", 0)


subprocess.run([lab / "up", "--tree", f"star:{pes}", "--layout", "rack", "--rate", f"{rate}mbit", "--queue", "16384",
                "--flitcast", programs[0]], check=True, **quiet)
try:
    with open(out, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(["pes", "mbit", "kib", "pair", "program", "median", "worst", "resent"])
        print(f"{'PEs':>4}{'Mbit/s':>8}{'KiB':>6}  {'program':12}{'median':>8}{'worst':>7}{'resent':>8}")
        for size in sizes:
            all = {program: [] for program in programs}
            for pair in range(int(pairs)):
                for program in programs[::1 if pair % 2 else -1]:
                    all[program].append(run(program, size))
                    median, worst, resent = all[program][-1]
                    name = Path(program).name
                    writer.writerow([pes, rate, size, pair, name, f"{median:.3f}", f"{worst:.3f}", resent])
            for program, runs in all.items():
                median, worst, resent = zip(*runs)
                print(f"{pes:>4}{rate:>8}{size:>6}  {Path(program).name:12}{statistics.median(median):>8.3f}"
                      f"{statistics.median(worst):>7.2f}{sum(resent):>8}", flush=True)
finally:
    subprocess.run([lab / "down"], check=True, **quiet)
