#!/usr/bin/env python3
"""Scatter and gather behind one switch of the network lab (16 KiB of queue for each host), command after
command in turns, as a multiple of the wire's time: all frames with their headers at the link's rate, and
the wire's delay once.

    rack.py OUT.csv PES RATE_MBIT DELAY_US PAIRS SIZE_KIB.. -- FLITCAST..  (root; builds and removes the lab)

With a delay other than 0, `delay` (see delay.c) is the wire between the root and the switch. Appends a line
for each command to OUT.csv, and prints the median over the commands of the median and of the worst of 21
rounds, and the packets that TCP sent again in all of them.
"""
import csv, json, statistics, subprocess, sys, tempfile
from pathlib import Path

out, pes, rate, delay, pairs, *rest = sys.argv[1:]
at = rest.index("--")
sizes, programs = [int(size) for size in rest[:at]], rest[at + 1:]
here = Path(__file__).resolve().parent
lab = here.parents[1] / "lab"
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def wire_us(size):
    frame = size * 1024 + 60
    return (int(pes) - 1) * (frame + -(-frame // 1448) * 66) * 8 / float(rate) + float(delay)


def run(program, operation, size):
    words = [program, operation, "--cluster", "/run/flitcast-lab/cluster.toml", "--size", f"{size}KiB",
             "--rounds", "21", "--format", "json"]
    report = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    round = report["round"]
    times = round["measured_us"]
    return report["algorithm"], times["median"] / wire_us(size), times["max"] / wire_us(size), round.get("retransmitted_packets", 0)


subprocess.run([lab / "up", "--tree", f"star:{pes}", "--layout", "rack", "--rate", f"{rate}mbit", "--queue", "16384",
                "--flitcast", programs[0]], check=True, **quiet)
wire = None
try:
    if delay != "0":
        binary = Path(tempfile.mkdtemp()) / "delay"
        subprocess.run(["gcc", "-O2", "-o", binary, here / "delay.c"], check=True)
        for host in range(int(pes)):
            subprocess.run(["ip", "netns", "exec", f"fc{host}", "ethtool", "-K", "switch0", "tx", "off"], check=True,
                           **quiet)
        switch = ["ip", "-n", "fc-switch0", "link"]
        for words in (["set", "fc0", "nomaster"], ["add", "near", "type", "veth", "peer", "name", "far"],
                      ["set", "near", "master", "bridge"], ["set", "near", "up"], ["set", "far", "up"]):
            subprocess.run(switch + words, check=True)
        wire = subprocess.Popen(["ip", "netns", "exec", "fc-switch0", binary, "fc0", "far", delay])
    with open(out, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(["pes", "mbit", "delay_us", "kib", "pair", "operation", "algorithm", "program", "median", "worst",
                             "resent"])
        print(f"{'PEs':>4}{'Mbit/s':>8}{'delay':>7}{'KiB':>6}  {'operation':10}{'algorithm':14}{'program':12}{'median':>8}"
              f"{'worst':>7}{'resent':>8}")
        for size in sizes:
            all = {(operation, program): [] for operation in ("scatter", "gather") for program in programs}
            for pair in range(int(pairs)):
                for what in list(all)[::1 if pair % 2 else -1]:
                    operation, program = what
                    algorithm, median, worst, resent = run(program, operation, size)
                    all[what].append((algorithm, median, worst, resent))
                    writer.writerow([pes, rate, delay, size, pair, operation, algorithm, Path(program).name,
                                     f"{median:.3f}", f"{worst:.3f}", resent])
                    file.flush()
            for (operation, program), runs in all.items():
                algorithms, median, worst, resent = zip(*runs)
                print(f"{pes:>4}{rate:>8}{delay:>7}{size:>6}  {operation:10}{algorithms[0]:14}{Path(program).name:12}"
                      f"{statistics.median(median):>8.3f}{statistics.median(worst):>7.2f}{sum(resent):>8}", flush=True)
finally:
    if wire:
        wire.kill()
    subprocess.run([lab / "down"], check=True, **quiet)
