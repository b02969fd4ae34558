#!/usr/bin/env python3
"""Broadcasts on loopback beside MPI_Bcast, command after command in turns, so that what the machine
does otherwise comes to both alike:

    bcast.py FLITCAST MPI_PROGRAM OUT.csv PES PAIRS SIZE..

MPI_PROGRAM is a program that takes BYTES, a distribution and ROUNDS, and prints `bcast_us=` with the
median over its rounds of the time from the first process's start to the last one's end, of MPI_Bcast
of so many bytes; Open MPI over TCP runs it. FLITCAST broadcasts the same over each of the trees.
Appends a line for each command to OUT.csv, and prints medians over the commands and the ratios, ours
by MPI's, as the median over the pairs.
"""
import csv, json, os, re, statistics, subprocess, sys, tempfile

program, mpi, out, pes, pairs, *sizes = sys.argv[1:]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
home = tempfile.mkdtemp()
TREES = [f"kary:2:{pes}", f"path:{pes}", f"star:{pes}"]


def rounds(size):
    return max(3, min(41, (64 << 20) // size * 3))


def ours(tree, size):
    words = [program, "broadcast", "--tree", tree, "--size", str(size), "--rounds", str(rounds(size)),
             "--format", "json"]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    round = json.loads(done.stdout)["round"]
    return round["measured_us"]["median"], round["predicted_us"]


def theirs(size):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "pml",
             "ob1", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1", "-np", pes, mpi,
             str(size), "equal", str(rounds(size))]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return float(re.search(r"bcast_us=([0-9.]+)", done.stdout)[1]), 0.0


with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(["pes", "size", "pair", "what", "median_us", "predicted_us"])
    print(f"{'PEs':>4}{'size':>9}{'MPI us':>10}  {'tree':10}{'us':>10}{'ratio':>7}{'predicted':>11}")
    for text in sizes:
        size = int(text[:-3]) * UNITS[text[-3:]]
        all = {what: [] for what in ["mpi", *TREES]}
        for pair in range(int(pairs)):
            for what in list(all) if pair % 2 else reversed(list(all)):
                median, predicted = theirs(size) if what == "mpi" else ours(what, size)
                all[what].append((median, predicted))
                writer.writerow([pes, text, pair, what, round(median, 1), round(predicted, 1)])
        file.flush()
        base = [it[0] for it in all["mpi"]]
        for tree in TREES:
            times = [it[0] for it in all[tree]]
            ratio = statistics.median(a / b for a, b in zip(times, base))
            predicted = statistics.median(it[1] for it in all[tree])
            print(f"{pes:>4}{text:>9}{statistics.median(base):>10.0f}  {tree:10}{statistics.median(times):>10.0f}"
                  f"{ratio:>7.2f}{predicted:>11.0f}", flush=True)
