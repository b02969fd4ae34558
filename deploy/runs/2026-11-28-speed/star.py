#!/usr/bin/env python3
"""Scatter and gather over a star on loopback beside MPI_Scatterv and MPI_Gatherv, command after command
in turns, so that all are measured under the same load of the machine:

    star.py MPI_PROGRAM OUT.csv PAIRS PES.. -- FLITCAST..

MPI_PROGRAM takes BYTES, a distribution and ROUNDS, and prints `scatterv_us=` and `gatherv_us=` with the
median over its rounds; Open MPI over TCP runs it. Sizes are the mean of all messages. Appends a line for
each command to OUT.csv, and prints medians and the median ratio of each program's time to Open MPI's.
"""
import csv, json, os, re, statistics, subprocess, sys, tempfile

mpi, out, pairs, *rest = sys.argv[1:]
at = rest.index("--")
counts, programs = [int(pes) for pes in rest[:at]], rest[at + 1:]
SIZES = [1 << 10, 16 << 10, 64 << 10, 1 << 20]
WAYS = {"scatter": [[]], "gather": [["--algorithm", "auto"], []]}
homes = {program: tempfile.mkdtemp() for program in programs}


def lengths(kind, pes, mean):
    share = {"equal": lambda i: 1, "ramp": lambda i: 2 * i / pes, "halfnull": lambda i: 2 * (i % 2),
             "onebig": lambda i: (pes - 1) * 0.9 if i == pes - 1 else 0.1}[kind]
    return [int(mean * share(i)) for i in range(1, pes)]


def rounds(mean):
    return max(5, min(41, (16 << 20) // mean * 3))


def ours(program, operation, way, kind, pes, mean):
    words = [program, operation, "--tree", f"star:{pes}", "--lengths", ",".join(map(str, lengths(kind, pes, mean))),
             "--rounds", str(rounds(mean)), "--format", "json", *way]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": homes[program]}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    round = json.loads(done.stdout)["round"]
    return round["measured_us"]["median"], round["predicted_us"]


def theirs(kind, pes, mean):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
             "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1", "-np", str(pes), mpi,
             str(mean), kind, str(rounds(mean))]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return {name: float(re.search(rf"{name}v_us=([0-9.]+)", done.stdout)[1]) for name in WAYS}


with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(["pes", "mean", "lengths", "pair", "operation", "way", "program", "median_us", "predicted_us"])
    print(f"{'PEs':>4}{'mean':>9} {'lengths':9}{'operation':10}{'MPI us':>8}  {'way':8}{'program':12}{'us':>8}{'ratio':>7}"
          f"{'predicted':>11}")
    for pes in counts:
        for mean in SIZES:
            for kind in ("equal", "ramp", "onebig", "halfnull"):
                base, all = {name: [] for name in WAYS}, {}
                for pair in range(int(pairs)):
                    for name, median in theirs(kind, pes, mean).items():
                        base[name].append(median)
                        writer.writerow([pes, mean, kind, pair, name, "", "mpi", round(median, 1), ""])
                    runs = [(name, tuple(way), program) for name in WAYS for way in WAYS[name] for program in programs]
                    for name, way, program in runs[::1 if pair % 2 else -1]:
                        median, predicted = ours(program, name, way, kind, pes, mean)
                        all.setdefault((name, way, program), []).append((median, predicted))
                        writer.writerow([pes, mean, kind, pair, name, way[-1] if way else "default",
                                         os.path.basename(program), round(median, 1), round(predicted, 1)])
                file.flush()
                for (name, way, program), runs in sorted(all.items(), reverse=True):
                    ratio = statistics.median(run[0] / mpi for run, mpi in zip(runs, base[name]))
                    median, predicted = (statistics.median(run[i] for run in runs) for i in (0, 1))
                    print(f"{pes:>4}{mean:>9} {kind:9}{name:10}{statistics.median(base[name]):>8.0f}  "
                          f"{way[-1] if way else 'default':8}{os.path.basename(program):12}{median:>8.0f}{ratio:>7.2f}"
                          f"{predicted:>11.0f}", flush=True)
