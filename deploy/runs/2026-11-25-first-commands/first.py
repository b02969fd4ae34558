#!/usr/bin/env python3
"""How far the predictions of a first user's first ten commands are off.

    first.py FLITCAST [--sittings 6] [--busy] [--csv first.csv] > tables.md

Each sitting has an empty cache and another order of the commands. With --busy a process that never
sleeps runs beside every command but the first three.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import tempfile

COMMANDS = [
    "scatter --tree kary:2:8 --input deploy/sample/shards --output OUT/scattered",
    "gather --tree kary:2:8 --size 1MiB",
    "scatter --tree star:8 --size 64KiB",
    "gather --tree path:8 --size 4KiB",
    "broadcast --network complete:8 --size 4MiB",
    "broadcast --tree kary:2:8 --size 64KiB",
    "gossip --network complete:8 --size 64KiB",
    "gossip --tree kary:2:8 --size 1MiB",
    "exchange --network complete:8 --size 64KiB",
    "exchange --tree star:8 --size 4KiB",
]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("flitcast")
    arguments.add_argument("--sittings", type=int, default=6)
    arguments.add_argument("--busy", action="store_true")
    arguments.add_argument("--csv")
    given = arguments.parse_args()
    rows = []
    for sitting in range(given.sittings):
        order = list(COMMANDS)
        random.Random(sitting).shuffle(order)
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_CACHE_HOME": folder}
            for place, command in enumerate(order):
                busy = None
                if given.busy and place >= 3:
                    busy = subprocess.Popen(["sh", "-c", "while :; do :; done"])
                words = command.replace("OUT", folder).split()
                run = subprocess.run([given.flitcast, *words, "--format", "json"], capture_output=True, text=True, env=environment, check=True)
                if busy:
                    busy.kill()
                    busy.wait()
                report = json.loads(run.stdout)
                timed = report["phases"]["whole"] if report["phases"] else report["round"]
                measured = timed["measured_us"]["median"]
                off = (timed["predicted_us"] / measured - 1) * 100
                rows.append({"sitting": sitting, "place": place, "command": command, "predicted_us": timed["predicted_us"], "measured_us": measured, "off_pct": off})
    if given.csv:
        with open(given.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    print("| command | off, each sitting | within 25 % |")
    print("| --- | --- | --- |")
    for command in COMMANDS:
        offs = [row["off_pct"] for row in rows if row["command"] == command]
        near = sum(1 for off in offs if abs(off) <= 25)
        print(f"| `{command}` | {', '.join(f'{off:+.0f}' for off in offs)} % | {near} of {len(offs)} |")
    for sitting in range(given.sittings):
        offs = [abs(row["off_pct"]) for row in rows if row["sitting"] == sitting]
        print(f"\nSitting {sitting}: {sum(1 for off in offs if off <= 25)} of {len(offs)} within 25 %, median {statistics.median(offs):.0f} %, at most {max(offs):.0f} %.")


if __name__ == "__main__":
    main()
