#!/usr/bin/env python3
"""Small files over star:8 on one disk, beside `cp`: pairs.py FOLDER OUT.csv BINARY.. [--rounds 7]

10,500 files of 200 B to 8 kB in 105 folders, 41 MiB. Each round scatters them with each BINARY, and
copies them with seven `cp -a` at once and a sync of the file system. Every output is new, is compared with
the input, and stays until the end: some file systems create files slowly after many were removed.
"""
import argparse, csv, os, random, shutil, statistics, subprocess, time

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("out")
parser.add_argument("binaries", nargs="+")
parser.add_argument("--rounds", type=int, default=7)
args = parser.parse_args()

work = os.path.abspath(os.path.join(args.folder, f"small-files-{os.getpid()}"))
source = os.path.join(work, "in")
chance = random.Random(1)
for pe in range(1, 8):
    for folder in range(15):
        path = os.path.join(source, f"p{pe}", f"d{folder}")
        os.makedirs(path)
        for name in range(100):
            with open(os.path.join(path, f"f{name}"), "wb") as file:
                file.write(chance.randbytes(chance.randint(200, 8000)))

COPY = 'mkdir "$1"; for p in "$0"/p*; do cp -a "$p" "$1" & done; wait; sync -f "$1"'


def command(way, target):
    if way == "cp":
        return ["sh", "-c", COPY, source, target]
    return [way, "scatter", "--tree", "star:8", "--input", source, "--output", target, "--quiet"]


times = {way: [] for way in [*args.binaries, "cp"]}
with open(args.out, "w", newline="") as out:
    rows = csv.writer(out)
    rows.writerow(["way", "round", "seconds"])
    for number in range(args.rounds):
        for way in times:
            target = os.path.join(work, f"{len(times[way])}-{list(times).index(way)}")
            os.sync()
            began = time.monotonic()
            subprocess.run(command(way, target), check=True)
            took = time.monotonic() - began
            subprocess.run(["diff", "-r", source, target], check=True)
            times[way].append(took)
            rows.writerow([os.path.basename(way), number, f"{took:.3f}"])
base = statistics.median(times["cp"])
for way, all_of_it in times.items():
    median = statistics.median(all_of_it)
    print(f"{os.path.basename(way)}: median {median:.2f} s, {min(all_of_it):.2f} to {max(all_of_it):.2f}, {median / base:.2f} of cp")
shutil.rmtree(work)
