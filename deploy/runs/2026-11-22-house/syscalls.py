#!/usr/bin/env python3
"""System calls per PE and round of two programs, by strace:

    syscalls.py BEFORE AFTER OUT.csv [TURNS]

What 50 more rounds add, by the median of the turns; the programs take turns. Traced, processes
take other turns than untraced ones, so what depends on that (reads that find nothing, waits)
varies by some percent between equal commands.
"""
import collections, csv, glob, os, re, statistics, subprocess, sys, tempfile

before, after, out = sys.argv[1:4]
turns = int(sys.argv[4]) if len(sys.argv) > 4 else 5
programs = {"before": os.path.realpath(before), "after": os.path.realpath(after)}
FEW, MANY = 10, 60
TREES = ["star:8", "path:8"]
home = tempfile.mkdtemp()
# With a profile nothing is measured ahead of the rounds: that takes as many exchanges as it may.
profiles = {tree: f"{home}/{tree}.toml" for tree in TREES}
for tree, profile in profiles.items():
    subprocess.run([programs["before"], "calibrate", "--tree", tree, "--seconds", "1", "--output", profile],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def calls(program, tree, operation, size, rounds):
    """How often each process made each system call: ('P3', 'writev') -> 120."""
    with tempfile.TemporaryDirectory() as folder:
        command = [programs[program], operation, "--tree", tree, "--size", size, "--rounds", str(rounds),
                   "--profile", profiles[tree]]
        subprocess.run(["strace", "-ff", "-qq", "-o", folder + "/trace", *command],
                       env=os.environ | {"XDG_CACHE_HOME": home + "/" + program},
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        counts = collections.Counter()
        for path in glob.glob(folder + "/trace.*"):
            text = open(path, errors="replace").read()
            pe = re.search(r'execve\(.*"--pe", "(\d+)"', text)
            process = f"P{pe[1]}" if pe else "coordinator"
            for name in re.findall(r"^(\w+)\(", text, re.M):
                counts[process, name] += 1
        return counts


rows = []
for tree in TREES:
    for operation in ["scatter", "gather"]:
        for size in ["1KiB", "1MiB"]:
            for turn in range(turns):
                for program in programs:
                    few = calls(program, tree, operation, size, FEW)
                    many = calls(program, tree, operation, size, MANY)
                    for process, name in sorted(few.keys() | many.keys()):
                        more = (many[process, name] - few[process, name]) / (MANY - FEW)
                        rows.append([program, tree, operation, size, turn, process, name, round(more, 3)])
            print(f"{tree} {operation} {size}", file=sys.stderr)

fields = ["program", "tree", "operation", "size", "turn", "process", "call", "per_round"]
with open(out, "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(fields)
    # What is made once and not in rounds says nothing.
    writer.writerows(row for row in rows if abs(row[-1]) >= 0.05)

GROUPS = {"write": ("write", "writev", "sendto", "sendmsg"), "read": ("read", "recvfrom", "recvmsg"),
          "wait": ("epoll_wait", "epoll_pwait", "futex", "poll"), "all": None}
print(f"{'tree':7}{'operation':10}{'size':6}" + "".join(f"{name + ' before':>14}{'after':>9}" for name in GROUPS))
for case in dict.fromkeys(tuple(row[1:4]) for row in rows):
    line = f"{case[0]:7}{case[1]:10}{case[2]:6}"
    for group in GROUPS.values():
        for program in programs:
            sums = [sum(row[-1] for row in rows if row[0] == program and tuple(row[1:4]) == case and row[4] == turn
                        and row[5] != "coordinator" and (group is None or row[6] in group)) for turn in range(turns)]
            pes = int(case[0].split(":")[1])
            line += f"{statistics.median(sums) / pes:{14 if program == 'before' else 9}.2f}"
    print(line)
