#!/usr/bin/env python3
"""What a byte costs the PE that relays it, of two programs in turns:

    relay.py BEFORE AFTER OUT.csv TURNS

path:3, 8 rounds of 64 MiB for each PE: P1 relays 512 MiB, and sends or takes as much of its own. The
processor's time of P1, by its /proc/PID/schedstat just before it ends.
"""
import csv, os, statistics, subprocess, sys, tempfile, time

before, after, out = sys.argv[1:4]
turns = int(sys.argv[4])
programs = {"before": os.path.realpath(before), "after": os.path.realpath(after)}
home = tempfile.mkdtemp()
profile = home + "/path.toml"
subprocess.run([programs["before"], "calibrate", "--tree", "path:3", "--seconds", "1", "--output", profile],
               env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.DEVNULL,
               stderr=subprocess.DEVNULL, check=True)
ROUNDS, BYTES = 8, 64 << 20


def spent(program, operation):
    command = [programs[program], operation, "--tree", "path:3", "--size", "64MiB", "--rounds", str(ROUNDS),
               "--profile", profile]
    running = subprocess.Popen(command, env=os.environ | {"XDG_CACHE_HOME": home},
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid, ns = None, 0
    while running.poll() is None:
        try:
            # Any thread may have started it.
            for task in os.listdir(f"/proc/{running.pid}/task") if pid is None else []:
                for child in open(f"/proc/{running.pid}/task/{task}/children").read().split():
                    if b"\0--pe\x001\0" in open(f"/proc/{child}/cmdline", "rb").read():
                        pid = child
            if pid is not None:
                ns = max(ns, int(open(f"/proc/{pid}/schedstat").read().split()[0]))
        except OSError:
            pass
        time.sleep(0.01)
    assert running.returncode == 0 and ns > 0
    return ns / (ROUNDS * BYTES)


rows = []
for turn in range(turns):
    for operation in ["scatter", "gather"]:
        for program in list(programs) if turn % 2 else reversed(programs):
            rows.append([program, operation, turn, round(spent(program, operation), 4)])
with open(out, "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["program", "operation", "turn", "ns_per_relayed_byte"])
    writer.writerows(rows)
print(f"{'':10}{'before':>9}{'after':>9}{'ratio':>8}   ns of P1 for each byte that it relays, medians")
for operation in ["scatter", "gather"]:
    by = {program: [row[3] for row in rows if row[0] == program and row[1] == operation] for program in programs}
    b, a = (statistics.median(by[program]) for program in programs)
    ratio = statistics.median(y / x for x, y in zip(by["before"], by["after"]))
    print(f"{operation:10}{b:9.3f}{a:9.3f}{ratio:8.3f}")
