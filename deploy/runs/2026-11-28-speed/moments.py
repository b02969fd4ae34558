#!/usr/bin/env python3
"""The moments of a scatter of 2 KiB to seven processes, from the first write of the root to the last read,
and of the same by Open MPI, by tracepoints of the kernel:

    moments.py FLITCAST MPI_PROGRAM ROUNDS       (root; perf)

Prints when the root began and ended each of its writes, and when the first, second, .. receiver ran, began
to read and had read, in microseconds, as medians over the rounds; and what all processes called meanwhile.
The tracepoints themselves take part of the time, so that it is longer than without them.
"""
import collections, re, statistics, subprocess, sys, tempfile
from pathlib import Path

flitcast, mpi, rounds = sys.argv[1:]
CALLS = ("sendto", "writev", "recvfrom", "readv", "epoll_wait", "poll", "sched_yield")
events = [f"syscalls:sys_{end}_{call}" for call in CALLS for end in ("enter", "exit")] + ["sched:sched_switch"]
BYTES = 2048
COMMANDS = {
    "flitcast": [flitcast, "scatter", "--tree", "star:8", "--size", str(BYTES), "--rounds", rounds],
    "Open MPI": ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self", "--mca", "pml", "ob1",
                 "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1", "-np", "8", mpi, str(BYTES),
                 "equal", rounds],
}
LINE = re.compile(r"\s*\S.*?\s+(\d+)\s+\[(\d+)\]\s+([\d.]+):\s+(\S+):\s*(.*)")


def trace(words):
    data = Path(tempfile.mkdtemp()) / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    record = ["perf", "record", "-a", "-q", "-m", "8192", "-o", data, *(word for e in events for word in ("-e", e))]
    subprocess.run([*record, "--", *words], check=True, **quiet)
    printed = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,cpu,time,event,trace"], check=True, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    data.unlink()
    for line in printed.splitlines():
        found = LINE.match(line)
        if found:
            yield int(found[1]), float(found[3]) * 1e6, found[4].split(":")[-1], found[5]


def result(text):
    value = int(text, 16)
    return value - (1 << 64) if value >> 63 else value


def of_rounds(all):
    """Each round: the root's writes, and when receivers ran, began to read and had read."""
    entered, reads, writes = {}, [], []
    switched = collections.defaultdict(float)
    counts = []
    for pid, at, event, text in all:
        if event == "sched_switch":
            to = re.search(r"next_pid=(\d+)", text)
            switched[int(to[1])] = at
        elif event.startswith("sys_enter"):
            entered[pid] = at
            counts.append((at, pid, event[10:]))
        elif event[9:] in ("writev", "sendto") and BYTES < result(text) < BYTES + 200:
            writes.append((pid, entered.get(pid, at), at))
        elif event[9:] in ("recvfrom", "readv") and BYTES <= result(text) < BYTES + 200:
            reads.append((pid, switched[pid], entered.get(pid, at), at))
    root = collections.Counter(pid for pid, *_ in writes).most_common(1)[0][0]
    writes = [(start, end) for pid, start, end in writes if pid == root]
    for place in range(len(writes) - 6):
        seven = writes[place:place + 7]
        begun = seven[0][0]
        before = writes[place - 1][1] if place else 0
        after = writes[place + 7][0] if place + 7 < len(writes) else float("inf")
        if begun - before < 300 or after - seven[-1][1] < 300:
            continue
        there = [one for one in reads if begun < one[3] < after][:7]
        if len(there) == 7 and len({pid for pid, *_ in there}) == 7:
            last = there[-1][3]
            called = collections.Counter(call for at, _, call in counts if begun <= at <= last)
            yield ([(start - begun, end - begun) for start, end in seven],
                   [(ran - begun, start - begun, end - begun) for _, ran, start, end in there], called)


for name, words in COMMANDS.items():
    rows = list(of_rounds(trace(words)))
    median = lambda values: f"{statistics.median(values):>7.0f}"
    print(f"{name}: {len(rows)} rounds\n{'':>4}{'writes':>14}{'':4}{'runs':>7}{'reads':>14}")
    for k in range(7):
        writes = [median(row[0][k][end] for row in rows) for end in (0, 1)]
        reads = [median(row[1][k][end] for row in rows) for end in (0, 1, 2)]
        print(f"{k + 1:>4}{''.join(writes)}{'':4}{''.join(reads)}")
    calls = {call: statistics.mean(row[2][call] for row in rows) for call in CALLS}
    print("    " + ", ".join(f"{count:.0f} {call}" for call, count in calls.items() if count >= 0.5) + "\n")
