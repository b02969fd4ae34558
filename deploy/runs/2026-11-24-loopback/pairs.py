#!/usr/bin/env python3
"""Two builds beside each other on loopback, command after command in turns:

    pairs.py ONE OTHER PAIRS OPERATION:PES:ALGORITHM:BYTES..

BYTES is the length of each message. Prints the median over the commands of what each took, a command's
time being the median of its 41 rounds (9 from 256 KiB on), and the median over the pairs of the ratio,
the other's by the one's.
"""
import json, os, statistics, subprocess, sys, tempfile

*builds, pairs = sys.argv[1:4]
home = tempfile.mkdtemp()


def took(build, operation, pes, algorithm, size):
    rounds = "9" if int(size) >= 256 << 10 else "41"
    words = [build, operation, "--network", f"complete:{pes}", "--algorithm", algorithm, "--size", size,
             "--rounds", rounds, "--format", "json"]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)["round"]["measured_us"]["median"]


print(f"{'operation':10}{'PEs':>4}  {'algorithm':14}{'bytes':>9}{'one us':>9}{'other us':>10}{'ratio':>7}")
for case in sys.argv[4:]:
    operation, pes, algorithm, size = case.split(":")
    all = {build: [] for build in builds}
    for pair in range(int(pairs)):
        for build in builds if pair % 2 else reversed(builds):
            all[build].append(took(build, operation, pes, algorithm, size))
    one, other = all.values()
    ratio = statistics.median(b / a for a, b in zip(one, other))
    print(f"{operation:10}{pes:>4}  {algorithm:14}{size:>9}{statistics.median(one):>9.0f}"
          f"{statistics.median(other):>10.0f}{ratio:>7.3f}", flush=True)
