#!/usr/bin/env python3
"""Builds compared with each other, in short commands that take turns:

    pairs.py PASSES NAME=PROGRAM.. > pairs.csv

Scatters over star:8 and path:8. Each pass runs each program once per case, as 2 to 101 rounds by length, with
the same profile and flit size. Prints a line for each command, then, as comments, the medians: a round's time and the
processors' time per round of all processes, and both relative to the first program, as medians over the passes.
"""
import json, os, resource, statistics, subprocess, sys, tempfile

passes = int(sys.argv[1])
builds = dict(word.split("=") for word in sys.argv[2:])
home = tempfile.mkdtemp()
ROUNDS = {"2KiB": 101, "64KiB": 61, "1MiB": 21, "64MiB": 2}
first = next(iter(builds))


def run(program, *words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([program, *words], env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e6


def cpu_of(program, words, rounds):
    """Processors' time per round, without that of the launch."""
    out, all_rounds = run(program, *words, "--rounds", str(rounds))
    return json.loads(out)["round"]["measured_us"]["median"], all_rounds


print("tree,size,pass,build,median_us,cpu_us_per_round")
told = []
for tree in ["star:8", "path:8"]:
    profile = f"{home}/{tree}.toml"
    run(builds[first], "calibrate", "--tree", tree, "--seconds", "1", "--output", profile)
    for size, rounds in ROUNDS.items():
        if len(os.environ.get("SIZES", "")) and size not in os.environ["SIZES"].split():
            continue
        words = ["scatter", "--tree", tree, "--profile", profile, "--size", size, "--flit-size", "64KiB", "--format", "json"]
        figures = {name: [] for name in builds}
        for turn in range(passes):
            names = list(builds)
            names = names[turn % len(names):] + names[:turn % len(names)]
            for name in names:
                median, long = cpu_of(builds[name], words, rounds)
                _, short = cpu_of(builds[name], words, 1)
                figures[name].append((median, max(long - short, 0) / (rounds - 1)))
                print(f"{tree},{size},{turn},{name},{median:.1f},{figures[name][-1][1]:.1f}", flush=True)
        for name, all in figures.items():
            times, cpu = zip(*all)
            ratio = [statistics.median(one / other if other else 1 for one, other in zip([it[i] for it in all], [it[i] for it in figures[first]])) for i in (0, 1)]
            told.append(f"# {tree:7} {size:6} {name:8} {statistics.median(times):10.1f} us {ratio[0]:6.3f}   CPU {statistics.median(cpu):10.1f} us {ratio[1]:6.3f}")
        print("\n".join(told[-len(figures):]), file=sys.stderr, flush=True)
print("\n".join(told))
