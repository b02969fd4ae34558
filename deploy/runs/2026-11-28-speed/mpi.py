#!/usr/bin/env python3
"""Broadcast, gossip and total exchange on loopback beside MPI_Bcast, MPI_Allgatherv and MPI_Alltoallv,
command after command in turns, so that what the machine does otherwise comes to all alike:

    mpi.py FLITCAST MPI_PROGRAM OUT.csv PES PAIRS OPERATION,.. WAY,.. SIZE..

MPI_PROGRAM takes BYTES, a distribution and ROUNDS, and prints `bcast_us=`, `allgatherv_us=` and
`alltoallv_us=` with the median over its rounds of the time from the first process's start to the last
one's end; Open MPI over TCP runs it. Each process has SIZE bytes: for all others in a broadcast and a
gossip, SIZE/PES for each other in an exchange. FLITCAST does the same in each WAY: `auto`, or a name of
`--algorithm` that the operation has. Appends a line for each command to OUT.csv, and prints medians over
the commands and the ratios, ours by MPI's, as the median over the pairs.
"""
import csv, json, os, re, statistics, subprocess, sys, tempfile

program, mpi, out, pes, pairs, operations, ways, *sizes = sys.argv[1:]
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
THEIRS = {"broadcast": "bcast", "gossip": "allgatherv", "exchange": "alltoallv"}
home = tempfile.mkdtemp()
WAYS = [(operation, way) for operation in operations.split(",") for way in ways.split(",")]


def rounds(size):
    return max(3, min(41, (16 << 20) // size * 3))


def ours(operation, way, size):
    of_one = size // int(pes) if operation == "exchange" else size
    words = [program, operation, "--network", f"complete:{pes}", "--algorithm", way, "--size", str(of_one),
             "--rounds", str(rounds(size)), "--format", "json"]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    round = json.loads(done.stdout)["round"]
    return round["measured_us"]["median"], round["predicted_us"]


def theirs(size):
    words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "pml",
             "ob1", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1", "-np", pes, mpi,
             str(size), "equal", str(rounds(size))]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return {name: float(re.search(rf"{key}_us=([0-9.]+)", done.stdout)[1])
            for name, key in THEIRS.items() if name in operations.split(",")}


with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(["pes", "size", "pair", "operation", "way", "median_us", "predicted_us"])
    print(f"{'PEs':>4}{'size':>9}  {'operation':10}{'MPI us':>9}  {'way':14}{'us':>9}{'ratio':>7}{'predicted':>11}")
    for text in sizes:
        size = int(text[:-1]) if text[-3:] not in UNITS else int(text[:-3]) * UNITS[text[-3:]]
        base, all = {name: [] for name in THEIRS}, {way: [] for way in WAYS}
        for pair in range(int(pairs)):
            for what in ["mpi", *WAYS] if pair % 2 else [*reversed(WAYS), "mpi"]:
                if what == "mpi":
                    for operation, median in theirs(size).items():
                        base[operation].append(median)
                        writer.writerow([pes, text, pair, operation, "mpi", round(median, 1), ""])
                    continue
                median, predicted = ours(*what, size)
                all[what].append((median, predicted))
                writer.writerow([pes, text, pair, *what, round(median, 1), round(predicted, 1)])
        file.flush()
        for (operation, way), runs in all.items():
            ratio = statistics.median(run[0] / mpi for run, mpi in zip(runs, base[operation]))
            median, predicted = (statistics.median(run[i] for run in runs) for i in (0, 1))
            print(f"{pes:>4}{text:>9}  {operation:10}{statistics.median(base[operation]):>9.0f}  {way:14}"
                  f"{median:>9.0f}{ratio:>7.2f}{predicted:>11.0f}", flush=True)
