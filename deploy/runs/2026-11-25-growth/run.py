#!/usr/bin/env python3
"""Time and memory before a round begins, and of large plans.

    run.py FLITCAST --csv growth.csv > tables.txt

Each run is ended once its round is triggered; the kernel's peak of resident memory is read then, of the
coordinator and of the PE that has most. A dry run of the same messages is timed beside it, as a whole.
"""

import argparse
import csv
import os
import signal
import statistics
import subprocess
import time

OPERATIONS = ["scatter", "gather", "broadcast", "gossip", "exchange"]
SIZES = ["1MiB", "64MiB", "1GiB", "8GiB", "100GiB"]
PES = [8, 16, 32, 64, 128]
LINK = "rate=1gbit"
REPEATED = 3
FIELDS = ["what", "operation", "network", "size", "seconds", "dry_run_seconds", "coordinator_kib", "pe_kib"]


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as pids:
        return [int(child) for child in pids.read().split()]


def until_trigger(command):
    """Returns the seconds until the round is triggered, and the peaks of memory then."""
    began = time.monotonic()
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = []
    for line in run.stderr:
        said.append(line)
        if "triggered" in line:
            break
    else:
        raise SystemExit(f"{' '.join(command)}:\n{''.join(said)}")
    took = time.monotonic() - began
    pes = [peak_kib(pe) for pe in children(run.pid)]
    coordinator = peak_kib(run.pid)
    run.send_signal(signal.SIGINT)
    run.communicate()
    return took, coordinator, max(pes)


def whole(command):
    """Returns the seconds that a command takes, its peak of memory, and whether it was refused."""
    began = time.monotonic()
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(run.pid, 0)
    took = time.monotonic() - began
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 2):
        raise SystemExit(f"{' '.join(command)}: {code}")
    return took, usage.ru_maxrss, code == 2


def network(shape):
    return ["--network" if shape.startswith("complete") else "--tree", shape]


def before_round(flitcast, operation, shape, size):
    command = [flitcast, operation, *network(shape), "--size", size, "--link", LINK]
    runs = [until_trigger([*command, "-v"]) for _ in range(REPEATED)]
    dry = [whole([*command, "--dry-run"])[0] for _ in range(REPEATED)]
    seconds, coordinator, pe = zip(*runs)
    return {
        "what": "run",
        "operation": operation,
        "network": shape,
        "size": size,
        "seconds": f"{statistics.median(seconds):.2f}",
        "dry_run_seconds": f"{statistics.median(dry):.2f}",
        "coordinator_kib": max(coordinator),
        "pe_kib": max(pe),
    }


def plan(flitcast, operation, shape, size):
    lengths = {
        "broadcast": ["--size", size],
        "exchange": ["--lengths", f"each:{size}"],
    }.get(operation, ["--lengths", f"equal:{size}"])
    command = [flitcast, "plan", operation, *network(shape), *lengths, "--summary"]
    seconds, kib, is_refused = whole(command)
    return {
        "what": "plan",
        "operation": operation,
        "network": shape,
        "size": size,
        "seconds": "refused" if is_refused else f"{seconds:.2f}",
        "coordinator_kib": kib,
    }


def megabytes(kib):
    return f"{kib * 1024 / 1e6:.1f}"


def table(title, rows, columns):
    print(f"\n{title}\n")
    print("|", " | ".join(name for name, _ in columns), "|")
    print("|", " | ".join("---" for _ in columns), "|")
    for row in rows:
        print("|", " | ".join(str(of(row)) for _, of in columns), "|")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flitcast")
    parser.add_argument("--csv", required=True)
    args = parser.parse_args()
    flitcast = os.path.realpath(args.flitcast)
    # What processes cost is measured once.
    whole([flitcast, "scatter", "--tree", "star:2", "--size", "1KiB", "--dry-run"])
    rows = []
    with open(args.csv, "w", newline="") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()

        def add(row):
            rows.append(row)
            out.writerow(row)
            file.flush()

        for shape in ["kary:2:8", "complete:8"]:
            for operation in OPERATIONS:
                for size in SIZES:
                    add(before_round(flitcast, operation, shape, size))
        for shape in ["kary:2", "complete"]:
            for operation in OPERATIONS:
                for pes in PES:
                    add(before_round(flitcast, operation, f"{shape}:{pes}", "50MiB"))
        for operation in OPERATIONS:
            for shape in ["kary:2:1024", "star:1024", "complete:1024"]:
                for flits in ["1", "1000"]:
                    add(plan(flitcast, operation, shape, flits))
    run_columns = [
        ("operation", lambda row: row["operation"]),
        ("network", lambda row: row["network"]),
        ("each message", lambda row: row["size"]),
        ("until the trigger", lambda row: f"{row['seconds']} s"),
        ("dry run", lambda row: f"{row['dry_run_seconds']} s"),
        ("coordinator", lambda row: f"{megabytes(row['coordinator_kib'])} MB"),
        ("largest PE", lambda row: f"{megabytes(row['pe_kib'])} MB"),
    ]
    plan_columns = [
        ("plan", lambda row: row["operation"]),
        ("network", lambda row: row["network"]),
        ("flits of each message", lambda row: row["size"]),
        ("seconds", lambda row: row["seconds"]),
        ("memory", lambda row: f"{megabytes(row['coordinator_kib'])} MB"),
    ]
    runs = [row for row in rows if row["what"] == "run"]
    table("**Longer messages, 8 PEs**", [row for row in runs if row["size"] != "50MiB"], run_columns)
    table("**More PEs, 50 MiB**", [row for row in runs if row["size"] == "50MiB"], run_columns)
    table("**Plans of 1,024 PEs**", [row for row in rows if row["what"] == "plan"], plan_columns)


if __name__ == "__main__":
    main()
