#!/usr/bin/env python3
"""Broadcast and gossip behind one switch of the network lab (16 KiB of queue for each host) beside MPI_Bcast
and MPI_Allgatherv of Open MPI over the same hosts, command after command in turns, as multiples of the
least time of any schedule: that of ceil(log2 p) short frames, or of all that a host has to receive.

    rack_all.py MPI_PROGRAM OUT.csv PES RATE_MBIT PAIRS SIZE_KIB.. -- FLITCAST  (root; builds and removes the lab)

MPI_PROGRAM is that of mpi.py. All pairs of hosts are neighbours on two networks, of which the kernel has to
remember more than usual: sysctl net.ipv4.neigh.default.gc_thresh3=8192 (and gc_thresh2, gc_thresh1 below).
Appends a line for each command to OUT.csv, and prints the medians.
"""
import csv, json, os, re, statistics, subprocess, sys, tempfile
from pathlib import Path

mpi, out, pes, rate, pairs, *rest = sys.argv[1:]
at = rest.index("--")
sizes, program = [int(size) for size in rest[:at]], rest[at + 1]
pes, rate = int(pes), float(rate)
lab = Path(__file__).resolve().parents[2] / "lab"
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
ROUNDS = "11"
# Stands in for ssh: runs a command on the host with this address, under its own name.
agent = Path(tempfile.mkdtemp()) / "agent"
agent.write_text('#!/bin/bash\nhost=$((${1##*.} - 1))\nshift\n'
                 'exec ip netns exec fc$host unshare -u bash -c "hostname fc$host; $*"\n')
agent.chmod(0o755)
cluster = agent.parent / "cluster.toml"


def wire_us(operation, size):
    frame = lambda bytes: (bytes + 60 + -(-(bytes + 60) // 1448) * 66) * 8 / rate
    steps = (pes - 1).bit_length()
    return max(steps * frame(64), frame(size * 1024) * (1 if operation == "broadcast" else pes - 1))


def ours(operation, size):
    words = [program, operation, "--cluster", cluster, "--size", f"{size}KiB", "--rounds", ROUNDS, "--format", "json",
             "--timeouts", "connect=20s,handshake=20s"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    return report["algorithm"], report["round"]["measured_us"]["median"], report["round"]["predicted_us"]


def theirs(size):
    hosts = ",".join(f"198.18.0.{host + 1}:1" for host in range(pes))
    net = "198.18.0.0/20"
    words = ["ip", "netns", "exec", "fc0", "unshare", "-u", "bash", "-c",
             f"hostname fc0; exec mpirun --allow-run-as-root --mca plm_rsh_agent {agent} --mca btl tcp,self --mca pml ob1 "
             f"--mca btl_tcp_if_include {net} --mca oob_tcp_if_include {net} --mca mpi_yield_when_idle 1 "
             f"--host {hosts} -np {pes} {os.path.abspath(mpi)} {size * 1024} equal {ROUNDS}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return {name: float(re.search(rf"{key}_us=([0-9.]+)", done.stdout)[1])
            for name, key in (("broadcast", "bcast"), ("gossip", "allgatherv"))}


subprocess.run([lab / "up", "--tree", f"star:{pes}", "--layout", "rack", "--rate", f"{rate:.0f}mbit", "--queue", "16384",
                "--flitcast", program], check=True, **quiet)
try:
    # All hosts are neighbours, as for Open MPI.
    text = Path("/run/flitcast-lab/cluster.toml").read_text()
    text = re.sub(r"parent = .*\n", "", text).replace("[launch]", f'[network]\nkind = "complete:{pes}"\n[launch]', 1)
    cluster.write_text(text)
    with open(out, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(["pes", "mbit", "kib", "pair", "operation", "way", "median_us", "predicted_us"])
        print(f"{'PEs':>4}{'Mbit/s':>8}{'KiB':>6}  {'operation':10}{'MPI':>7}  {'algorithm':14}{'ours':>7}{'by MPI':>8}"
              f"{'predicted':>11}")
        for size in sizes:
            both = {"broadcast": [], "gossip": []}
            for pair in range(int(pairs)):
                mpi_us = theirs(size)
                for operation, runs in both.items():
                    algorithm, median, predicted = ours(operation, size)
                    runs.append((mpi_us[operation], median, predicted, algorithm))
                    writer.writerow([pes, f"{rate:.0f}", size, pair, operation, "mpi", mpi_us[operation], ""])
                    writer.writerow([pes, f"{rate:.0f}", size, pair, operation, algorithm, round(median, 1),
                                     round(predicted, 1)])
                    file.flush()
            for operation, runs in both.items():
                wire = wire_us(operation, size)
                theirs_us, ours_us, predicted_us = (statistics.median(run[i] for run in runs) for i in range(3))
                ratio = statistics.median(run[1] / run[0] for run in runs)
                print(f"{pes:>4}{rate:>8.0f}{size:>6}  {operation:10}{theirs_us / wire:>7.2f}  {runs[0][3]:14}"
                      f"{ours_us / wire:>7.2f}{ratio:>8.2f}{predicted_us / wire:>11.2f}", flush=True)
finally:
    subprocess.run([lab / "down"], check=True, **quiet)
