#!/usr/bin/env python3
"""Scatters on several trees at once beside the same ones on a single tree, in the network lab (root),
command after command in turns:

    covers.py FLITCAST OUT.csv COMMANDS

COMMANDS is how often each is run. Every byte is verified, as always. Writes a line for each command to
OUT.csv, and prints medians, ratios, and how far predictions were off in the median and at worst.
"""
import csv, json, os, statistics, subprocess, sys, tempfile

program, out, commands = sys.argv[1], sys.argv[2], int(sys.argv[3])
lab = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lab")
cluster = "/run/flitcast-lab/cluster.toml"
home = tempfile.mkdtemp()
LONG = "--lengths 0,0,0,0,0,0,0,32MiB"
# By lab: what is run there, by the ratio of which two.
LABS = [
    ("--network torus:3x3 --rate 100mbit", [
        ("scatter 8 x 4 MiB", "cover", "scatter --size 4MiB --cover"),
        ("scatter 8 x 4 MiB", "bfs", "scatter --size 4MiB --spanning bfs"),
        ("scatter 8 x 4 MiB", "broadcast", "scatter --size 4MiB --spanning broadcast"),
        ("scatter 32 MiB to P8", "cover", f"scatter {LONG} --cover"),
        ("scatter 32 MiB to P8", "bfs", f"scatter {LONG} --spanning bfs"),
        ("scatter 32 MiB to P8", "broadcast", f"scatter {LONG} --spanning broadcast"),
        ("gather 8 x 4 MiB", "cover", "gather --size 4MiB --cover"),
        ("gather 8 x 4 MiB", "bfs", "gather --size 4MiB --spanning bfs"),
        ("broadcast 32 MiB", "cover", "broadcast --size 32MiB --cover"),
        ("broadcast 32 MiB", "bfs", "broadcast --size 32MiB --spanning bfs"),
    ]),
    ("--tree star:4 --layout rack --rails 2 --rate 100mbit", [
        ("scatter 3 x 4 MiB", "two rails", "scatter --size 4MiB"),
        ("gather 3 x 4 MiB", "two rails", "gather --size 4MiB"),
    ]),
    ("--tree star:4 --layout rack --rate 100mbit", [
        ("scatter 3 x 4 MiB", "one rail", "scatter --size 4MiB"),
        ("gather 3 x 4 MiB", "one rail", "gather --size 4MiB"),
    ]),
]


def run(line):
    words = [program, *line.split(), "--cluster", cluster, "--format", "json"]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    report = json.loads(done.stdout)
    trees = report["trees"] or {"count": 1, "dealt": None}
    took = report["round"]["measured_us"]["median"]
    return took, report["round"]["predicted_us"], trees["count"], trees["dealt"]


with open(out, "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["lab", "what", "way", "turn", "trees", "dealt", "measured_us", "predicted_us"])
    for words, lines in LABS:
        subprocess.run([lab + "/up", *words.split(), "--flitcast", program], stdout=subprocess.DEVNULL, check=True)
        found = {}
        try:
            for turn in range(commands):
                for what, way, line in lines:
                    took, predicted, trees, dealt = run(line)
                    writer.writerow([words, what, way, turn, trees, dealt, round(took, 1), round(predicted, 1)])
                    found.setdefault((what, way), []).append((took, predicted, trees, dealt))
            file.flush()
        finally:
            subprocess.run([lab + "/down"], stdout=subprocess.DEVNULL, check=True)
        print(words)
        for (what, way), all in found.items():
            took = statistics.median(took for took, *_ in all)
            off = [predicted / took - 1 for took, predicted, *_ in all]
            several = found.get((what, "cover"), all)
            ratio = statistics.median(one[0] / other[0] for one, other in zip(several, all))
            how = f"{all[0][2]} {all[0][3] or ''}"
            print(f"  {what:21} {way:10} trees {how:11} {took / 1e3:8.1f} ms  cover by this {ratio:.3f}"
                  f"  prediction off by {statistics.median(map(abs, off)):.1%}, at worst {max(off, key=abs):+.1%}",
                  flush=True)
