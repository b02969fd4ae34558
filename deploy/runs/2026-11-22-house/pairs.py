#!/usr/bin/env python3
"""Two programs in short commands that take turns, so that what the machine does otherwise comes to
both alike:

    pairs.py BEFORE AFTER OUT.csv PAIRS SIZE..

For star:8 and path:8, scatter and gather, of each SIZE: so many pairs of commands, each with as many
rounds as take some 50 ms. Both go by the same profiles, which BEFORE has made: who waits how long in a
gather hangs on what was measured, and what one of them has once learned of the host would count for it
in all its commands. Appends a line for each command to OUT.csv. Prints the ratios, AFTER by BEFORE,
of the rounds' medians and of the processors' time of the command, each as the median over the pairs
with the interval that holds it with 95 % confidence.
"""
import csv, json, math, os, resource, statistics, subprocess, sys, tempfile

before, after, out, pairs, *sizes = sys.argv[1:]
programs = {"before": os.path.realpath(before), "after": os.path.realpath(after)}
pairs = int(pairs)
home = tempfile.mkdtemp()
profiles = {tree: f"{home}/{tree}.toml" for tree in ["star:8", "path:8"]}
for tree, profile in profiles.items():
    subprocess.run([programs["before"], "calibrate", "--tree", tree, "--seconds", "2", "--output", profile],
                   env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.DEVNULL, check=True)
ROUNDS = {"1KiB": 60, "16KiB": 60, "256KiB": 30, "4MiB": 8, "64MiB": 2}


def command(program, tree, operation, size, rounds):
    """The rounds' median, and the processors' time of the command and its PEs, in us."""
    words = [programs[program], operation, "--tree", tree, "--profile", profiles[tree], "--size", size,
             "--rounds", str(rounds), "--format", "json"]
    was = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home + "/" + program},
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = now.ru_utime - was.ru_utime + now.ru_stime - was.ru_stime
    return json.loads(done.stdout)["round"]["measured_us"]["median"], cpu * 1e6


def told(ratios):
    """The median and, by the order of the ratios alone, its interval of 95 %."""
    ratios, n = sorted(ratios), len(ratios)
    low = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)) - 1)
    return f"{statistics.median(ratios):8.3f}  {ratios[low]:5.3f} to {ratios[n - 1 - low]:5.3f}"


is_new = not os.path.exists(out)
with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if is_new:
        writer.writerow(["tree", "operation", "size", "pair", "program", "median_us", "cpu_us"])
    print(f"{'tree':8}{'operation':10}{'size':8}{'before us':>11}{'after us':>11}{'ratio':>8}{'CPU':>28}")
    for size in sizes:
        for tree in profiles:
            for operation in ["scatter", "gather"]:
                all = {program: [] for program in programs}
                for pair in range(pairs):
                    for program in list(programs) if pair % 2 else reversed(programs):
                        figures = command(program, tree, operation, size, ROUNDS[size])
                        all[program].append(figures)
                        writer.writerow([tree, operation, size, pair, program, *(round(it, 1) for it in figures)])
                file.flush()
                times, cpus = ([a[i] / b[i] for b, a in zip(all["before"], all["after"])] for i in (0, 1))
                medians = [statistics.median(it[0] for it in all[program]) for program in programs]
                print(f"{tree:8}{operation:10}{size:8}{medians[0]:11.0f}{medians[1]:11.0f}{told(times)}   {told(cpus)}", flush=True)
