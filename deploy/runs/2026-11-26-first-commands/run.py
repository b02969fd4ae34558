#!/usr/bin/env python3
"""The first ten commands of a newcomer, on an empty cache, quiet and beside a busy process.

    run.py FLITCAST [--sets a,b] [--orders N] [--loads quiet,busy] [--csv FILE] [--folder DIR]

Runs in the project's folder. Each order of a set begins on an empty cache and shuffles the set's ten
commands by its seed. Prints each command's errors (predicted against measured, in percent of the
latter), and how many of ten are within 25 %. `steady` is the same for the ideal prediction, each
command's median over all orders: what is outside is scatter that no prediction foresees.
"""
import argparse
import csv
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WITHIN = 25.0
# Threads that spin; any other load is their number.
THREADS = {"quiet": 0, "busy": 1}
SHARDS = Path("deploy/sample/shards").resolve()
MAP = "find . -type f -exec cat {} + | wc -w"

# {in} has the inputs that `prepare` makes, {out} is the command's own place for output.
SETS = {
    "a": {
        "scatter shards": "scatter --tree kary:2:8 --input {shards} --output {out}",
        "gather shards": "gather --tree kary:2:8 --input {in}/scattered --output {out}",
        "map": "map --tree kary:2:8 --spread --input {shards} --output {out}",
        "scatter 1MiB": "scatter --tree kary:2:8 --size 1MiB",
        "gather star": "gather --tree star:8 --size 100KiB",
        "gather path": "gather --tree path:8 --size 20KiB",
        "broadcast path": "broadcast --tree path:8 --size 4MiB",
        "broadcast file": "broadcast --tree kary:2:8 --input {in}/weights --output {out}",
        "gossip": "gossip --network complete:8 --size 256KiB",
        "exchange": "exchange --network complete:8 --size 64KiB",
    },
    "b": {
        "scatter heap": "scatter --tree star:8 --spread --input {in}/heap --output {out}",
        "gather long": "gather --tree kary:2:8 --input {in}/long --output {out}",
        "gossip files": "gossip --tree kary:2:8 --input {in}/short --output {out}",
        "exchange files": "exchange --network complete:8 --input {in}/pieces --output {out}",
        "scatter 1KiB": "scatter --tree path:8 --size 1KiB",
        "gather taps": "gather --tree path:8 --algorithm shoulder-tap --size 20KiB",
        "scatter 16MiB": "scatter --tree star:8 --size 16MiB",
        "broadcast 64KiB": "broadcast --network complete:8 --size 64KiB",
        "gossip tree": "gossip --tree star:8 --size 16KiB",
        "gather rounds": "gather --tree kary:2:8 --size 256KiB --rounds 9",
    },
}


def prepare(flitcast, folder):
    """Makes the inputs."""
    noise = random.Random(1)
    write = lambda path, size: (path.parent.mkdir(parents=True, exist_ok=True), path.write_bytes(noise.randbytes(size)))
    write(folder / "weights", 20 << 20)
    for i in range(60):
        write(folder / f"heap/{i}", int(2000 * 1.15**i) // 4)
    for pe in range(8):
        write(folder / f"short/p{pe}", 300_000)
        if pe > 0:
            write(folder / f"long/p{pe}", 3 << 20)
        for to in range(8):
            if to != pe:
                write(folder / f"pieces/p{pe}/p{to}", 30_000 + 1000 * to)
    for pe in range(1, 8):
        (folder / f"scattered/p{pe}").mkdir(parents=True)
        if (SHARDS / f"p{pe}").is_dir():
            shutil.copytree(SHARDS / f"p{pe}", folder / f"scattered/p{pe}", dirs_exist_ok=True)


def figures(report):
    """Predicted and measured times in ms: of the whole and of each phase."""
    if report["operation"] == "map":
        both = [report["scatter"], report["gather"]]
        return {"whole": tuple(sum(part[key] for part in both) / 1000 for key in ("predicted_us", "measured_us"))}
    phases = report["phases"] or {"whole": report["round"]}
    return {name: (part["predicted_us"] / 1000, part["measured_us"]["median"] / 1000) for name, part in phases.items()}


def command(flitcast, line, inputs, folder, environment):
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    words = [str(flitcast)] + [word.format_map({"in": inputs, "out": out, "shards": SHARDS}) for word in line.split()]
    words += ["--format", "json"] + (["--", "sh", "-c", MAP] if line.startswith("map") else [])
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return figures(json.loads(done.stdout))


def off(predicted, measured):
    return (predicted / measured - 1) * 100


def table(rows, names):
    """Prints a line for each command, and what is within the limit."""
    print(f"{'command':16} {'predicted, measured in ms':34} errors in % by order")
    good = steady = 0
    for name in names:
        mine = [row["whole"] for row in rows if row["command"] == name]
        errors = [off(*both) for both in mine]
        middle = [statistics.median(side) for side in zip(*mine)]
        least, most = min(m for _, m in mine), max(m for _, m in mine)
        good += sum(abs(error) <= WITHIN for error in errors)
        steady += sum(abs(off(middle[1], measured)) <= WITHIN for _, measured in mine)
        text = f"{middle[0]:8.2f} {middle[1]:8.2f} ({least:.2f} to {most:.2f})"
        print(f"{name:16} {text:34} " + " ".join(f"{error:+.0f}" for error in errors))
    tenth = len(rows) / 10
    factors = [abs(math.log(row["whole"][0] / row["whole"][1])) for row in rows]
    print(f"off by a factor of {math.exp(statistics.mean(factors)):.2f} in the geometric mean")
    print(f"within {WITHIN:.0f} %: {good / tenth:.1f} of ten; steady: {steady / tenth:.1f} of ten\n")


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("flitcast", type=Path)
    asked.add_argument("--sets", default="a")
    asked.add_argument("--orders", type=int, default=5)
    asked.add_argument("--loads", default="quiet,busy")
    asked.add_argument("--csv", type=Path)
    asked.add_argument("--folder", default=".", help="where inputs and outputs are, which decides the disk")
    asked.add_argument("--phases", action="store_true", help="print the phases of rounds with files, too")
    asked = asked.parse_args()
    flitcast = asked.flitcast.resolve()
    kept = []
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        folder = Path(folder).resolve()
        inputs = folder / "in"
        prepare(flitcast, inputs)
        for load in asked.loads.split(","):
            for chosen in asked.sets.split(","):
                rows = []
                for order in range(asked.orders):
                    names = list(SETS[chosen])
                    random.Random(order).shuffle(names)
                    cache = tempfile.mkdtemp(dir=folder)
                    environment = os.environ | {"XDG_CACHE_HOME": cache}
                    spins = [sys.executable, "-c", "while True: pass"]
                    busy = [subprocess.Popen(spins) for _ in range(int(THREADS.get(load, load)))]
                    try:
                        for place, name in enumerate(names):
                            found = command(flitcast, SETS[chosen][name], inputs, folder, environment)
                            rows.append({"command": name, "order": order, "place": place, **found})
                            parts = [(part, both) for part, both in found.items() if both[1] > 0]
                            kept += [(load, chosen, order, place, name, part, *both) for part, both in parts]
                    finally:
                        for thread in busy:
                            thread.kill()
                            thread.wait()
                print(f"{load}, set {chosen}")
                table(rows, SETS[chosen])
                if asked.phases:
                    for part in ("transfer", "disk", "commit"):
                        for name in SETS[chosen]:
                            mine = [row[part] for row in rows if row["command"] == name and part in row]
                            told = " ".join(f"{predicted:.2f}/{measured:.2f}" for predicted, measured in mine)
                            print(f"{name}, {part}: {told}" if told else "", end="\n" if told else "")
                sys.stdout.flush()
    if asked.csv:
        with asked.csv.open("w") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow("load,set,order,place,command,part,predicted_ms,measured_ms".split(","))
            rows.writerows((*row[:6], f"{row[6]:.4f}", f"{row[7]:.4f}") for row in kept)


if __name__ == "__main__":
    main()
