#!/usr/bin/env python3
"""Whole commands on a local cluster of 8 PEs, launched for each and kept by `flitcast up`:

    kept.py BEFORE AFTER OUT.csv TURNS

A scatter of 1 KiB, in turns, each half a second and more after the last one, when PEs that only poll do
so seldom. Prints the medians of the whole command, of what it says its PEs took to be there, and of
what it says the edges took to be measured; in ms.
"""
import csv, os, re, statistics, subprocess, sys, tempfile, time

before, after, out = sys.argv[1:4]
turns = int(sys.argv[4])
programs = {"before": os.path.realpath(before), "after": os.path.realpath(after)}
home = tempfile.mkdtemp()
os.makedirs(home + "/run", 0o700)
os.chdir(home)
UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def run(program, *words):
    env = os.environ | {"XDG_CACHE_HOME": f"{home}/{program}", "XDG_RUNTIME_DIR": home + "/run"}
    return subprocess.run([programs[program], *words], env=env, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True).stdout


def cluster(name, net):
    with open(name, "w") as file:
        print(f'coordinator = "127.0.{net}.100"', file=file)
        for pe in range(8):
            parent = 'parent = "h0"' if pe else ""
            print(f'[[pe]]\nname = "h{pe}"\naddress = "127.0.{net}.{pe + 1}"\n{parent}', file=file)


def timed(program, *words):
    time.sleep(0.7)
    began = time.perf_counter()
    said = run(program, "scatter", "--size", "1KiB", *words)
    whole = (time.perf_counter() - began) * 1e3
    told = re.search(r"processes up in ([\d.]+) (\w+), edges measured in ([\d.]+) (\w+)", said)
    return whole, float(told[1]) * UNITS[told[2]], float(told[3]) * UNITS[told[4]]


cluster("launched.toml", 60)
cluster("before.toml", 61)
cluster("after.toml", 62)
run("after", "ca", "init", "ca", "--pes", "8")
cases = {
    "before, launched": ("before", "--cluster", "launched.toml"),
    "before, kept": ("before", "--cluster", "before.toml"),
    "after, launched": ("after", "--cluster", "launched.toml"),
    "after, launched with certificates": ("after", "--cluster", "launched.toml", "--credentials", "ca"),
    "after, kept": ("after", "--cluster", "after.toml"),
}
for program in programs:
    run(program, "up", program + ".toml")
try:
    for case in cases.values():
        timed(*case)
    rows = [(name, turn, *timed(*case)) for turn in range(turns) for name, case in cases.items()]
finally:
    for program in programs:
        run(program, "down", program + ".toml")
os.chdir(os.environ.get("PWD", "/"))
with open(out, "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["case", "turn", "whole_ms", "up_ms", "edges_ms"])
    writer.writerows((name, turn, *(round(it, 2) for it in figures)) for name, turn, *figures in rows)
print(f"{'':35}{'whole':>8}{'up':>8}{'edges':>8}")
for name in cases:
    medians = [statistics.median(row[2 + i] for row in rows if row[0] == name) for i in range(3)]
    print(f"{name:35}" + "".join(f"{it:8.1f}" for it in medians))
