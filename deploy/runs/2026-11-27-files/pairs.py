#!/usr/bin/env python3
"""Files moved on one machine, disk to disk, by several programs: pairs.py FOLDER OUT.csv FLITCAST [--rounds 5] [--only NAME,..]

Each round moves each workload with each program, in another order. All but `flitcast --sync none` end
with the data on the disk. Every output is new and is compared with the input. Many small outputs stay until the end:
some file systems create files slowly after many were removed. Prints medians: seconds, relative to `cp`, processor
time of all processes, memory of the largest process, and the time that Flitcast predicted.
"""
import argparse, csv, json, os, random, resource, shutil, statistics, subprocess, time

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("out")
parser.add_argument("flitcast")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--only")
args = parser.parse_args()
work = os.path.abspath(os.path.join(args.folder, f"files-{os.getpid()}"))
chance = random.Random(1)


def write(path, size):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        while size > 0:
            size -= file.write(chance.randbytes(min(size, 1 << 20)))


def small(source):
    """10,500 files of 200 B to 8 kB for seven destinations."""
    for pe in range(1, 8):
        for number in range(1500):
            write(f"{source}/p{pe}/d{number // 100}/f{number}", chance.randint(200, 8000))


def tiny(source):
    """100,000 files of 0 to 63 bytes in 500 folders."""
    for number in range(100_000):
        write(f"{source}/p1/d{number // 200}/f{number}", number % 64)


def sources(source):
    """8,000 files in folders of folders, as a program's source has them: mostly some kB, few long."""
    for number in range(8000):
        folder = "/".join(f"m{number // part % 9}" for part in (2000, 300, 40))
        write(f"{source}/p1/{folder}/f{number}.c", int(chance.lognormvariate(8.6, 1.2)))


def one(source):
    """One file of 2 GiB."""
    write(f"{source}/p1", 2 << 30)


def copies(source):
    """One file of 1 GiB for eight destinations."""
    write(f"{source}/p1", 1 << 30)


EACH = 'mkdir "$1"; for p in "$0"/p*; do %s & done; wait; sync -f "$1"'
EIGHT = 'mkdir "$1"; for p in 1 2 3 4 5 6 7 8; do %s & done; wait; sync -f "$1"'
SHELL = {
    "cp": (EACH % 'cp -a "$p" "$1"', EIGHT % 'cp -a "$0/p1" "$1/p$p"'),
    "rsync": (EACH % 'rsync -a "$p" "$1"', EIGHT % 'rsync -a "$0/p1" "$1/p$p"'),
    "tar": (EACH % 'tar -C "$0" -cf - "${p##*/}" | tar -C "$1" -xf -', None),
}
TREES = {"small": "star:8", "copies": "star:9"}
WORKLOADS = [one, copies, sources, small, tiny]


def command(way, load, source, target):
    if way in SHELL:
        script = SHELL[way][load == "copies"]
        return script and ["sh", "-c", script, source, target]
    operation, place = ("broadcast", f"{source}/p1") if load == "copies" else ("scatter", source)
    line = f"{operation} --tree {TREES.get(load, 'path:2')} --format json --input {place} --output {target}"
    return [args.flitcast, *line.split(), *way.split()[1:]]


def same(load, source, target):
    if load != "copies":
        return subprocess.run(["diff", "-r", source, target], check=True)
    for pe in range(1, 9):
        subprocess.run(["cmp", f"{source}/p1", f"{target}/p{pe}"], check=True)


results = {}
with open(args.out, "w", newline="") as out:
    rows = csv.writer(out)
    rows.writerow(["workload", "way", "round", "seconds", "processor_seconds", "memory_mib", "predicted_seconds"])
    for make in WORKLOADS:
        load = make.__name__
        if args.only and load not in args.only.split(","):
            continue
        source = f"{work}/{load}"
        make(source)
        for number in range(args.rounds):
            # Some of what a program frees is freed while the next one runs.
            ways = ["flitcast", "flitcast --sync none", *SHELL]
            for way in ways[number % len(ways):] + ways[:number % len(ways)]:
                target = f"{work}/{load}-{number}-{way.replace(' ', '')}"
                words = command(way, load, source, target)
                if not words:
                    continue
                os.sync()
                pid = os.posix_spawnp(words[0], words, os.environ, file_actions=[
                    (os.POSIX_SPAWN_OPEN, 1, f"{work}/said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)])
                began = time.monotonic()
                _, status, used = os.wait4(pid, 0)
                took = time.monotonic() - began
                assert status == 0, words
                predicted = ""
                if way.startswith("flitcast"):
                    predicted = json.load(open(f"{work}/said"))["round"]["predicted_us"] / 1e6
                same(load, source, target)
                if load in ("one", "copies"):
                    shutil.rmtree(target)
                row = [took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, predicted]
                results.setdefault((load, way), []).append(row)
                rows.writerow([load, way, number, *(it if it == "" else f"{it:.3f}" for it in row)])
        base = statistics.median(row[0] for row in results[load, "cp"])
        for (of, way), all_of_it in results.items():
            if of == load:
                took, cpu, memory = (statistics.median(row[i] for row in all_of_it) for i in range(3))
                predicted = statistics.median(row[3] for row in all_of_it) if all_of_it[0][3] != "" else 0
                print(f"{load:8} {way:22} {took:7.2f} s {took / base:5.2f} of cp {cpu:7.2f} s processors {memory:6.0f} MiB"
                      + (f"  predicted {predicted:.2f} s" if predicted else ""), flush=True)
shutil.rmtree(work)
