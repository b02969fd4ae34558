#!/usr/bin/env python3
"""Real rounds beside their plans, on links with only a latency, only a rate and only a set-up time.

    run.py FLITCAST --csv plan-and-run.csv > tables.txt
    run.py FLITCAST --csv predictions.csv --dry-run     nothing is sent: plans and predictions alone

Every message is one flit of 8 KiB (a broadcast: four of them). The plan's time is that of `flitcast plan
--link`, and of `flitcast compare --link` for a baseline: the crossings of the plan on these links, without
the costs of processes. `at-once` has no order; its plan is that of `shifts`, which takes the least time.
"""

import argparse
import csv
import json
import statistics
import subprocess

FLIT_BYTES = 8192
UNIT_MS = 20
RATE_BITS = 4_000_000
LINKS = {"latency": f"latency={UNIT_MS}ms", "rate": f"rate={RATE_BITS // 1_000_000}mbit", "setup": f"setup={UNIT_MS}ms"}
ROUNDS = 3
CASES = [
    ("scatter", "--tree path:6", "fdf"),
    ("scatter", "--tree kary:2:7", "fdf"),
    ("scatter", "--tree star:6", "fdf"),
    ("scatter", "--network complete:6", "linear"),
    ("scatter", "--network complete:8", "binomial"),
    ("scatter", "--network complete:8", "adaptive"),
    ("gather", "--tree path:6", "shoulder-tap"),
    ("gather", "--tree path:6", "certification"),
    ("gather", "--tree kary:2:7", "certification"),
    ("gather", "--tree star:6", "orders"),
    ("gather", "--network complete:6", "linear"),
    ("gather", "--network complete:6", "window"),
    ("gather", "--network complete:8", "binomial"),
    ("gather", "--network complete:8", "adaptive"),
    ("broadcast", "--tree kary:2:7", "rounds"),
    ("broadcast", "--tree kary:2:7", "urgent"),
    ("broadcast", "--tree kary:2:7", "child-by-child"),
    ("broadcast", "--network complete:8", "path"),
    ("broadcast", "--network complete:8", "kary:2"),
    ("broadcast", "--network complete:8", "hypercube"),
    ("gossip", "--tree kary:2:7", "flood"),
    ("gossip", "--tree kary:2:7 --ports multi", "flood"),
    ("gossip", "--network complete:8", "circulate"),
    ("gossip", "--network complete:8", "dissemination"),
    ("gossip", "--network complete:9", "dissemination"),
    ("gossip", "--network complete:8", "direct"),
    ("gossip", "--network complete:8", "neighbour"),
    ("gossip", "--network ring:9 --ports multi", "approach1"),
    ("gossip", "--network ring:9 --ports multi", "approach2"),
    ("gossip", "--network ring:9 --ports multi", "circgos:3,3,1"),
    ("gossip", "--network ring:9 --ports multi", "halves"),
    ("gossip", "--network ring:27 --ports multi", "approach1"),
    ("gossip", "--network ring:27 --ports multi", "approach2"),
    ("gossip", "--network ring:27 --ports multi", "circgos:9,3,1"),
    ("gossip", "--network array:9 --ports multi", "approach1"),
    ("gossip", "--network array:9 --ports multi", "approach2"),
    ("gossip", "--network torus:3x3 --ports multi", "approach1"),
    ("gossip", "--network torus:3x3 --ports multi", "approach2"),
    ("gossip", "--network torus:3x3 --ports multi", "torgos:3;;"),
    ("gossip", "--network torus:3x3x3 --ports multi", "approach1"),
    ("gossip", "--network torus:3x3x3 --ports multi", "cubgos"),
    ("gossip", "--network mesh:3x3 --ports multi", "phases:1,3,1/1,3,1"),
    ("exchange", "--tree kary:2:7", "tree"),
    ("exchange", "--tree kary:2:7 --ports multi", "tree"),
    ("exchange", "--network complete:8", "rounds"),
    ("exchange", "--network complete:8", "shifts"),
    ("exchange", "--network complete:8", "bruck"),
    ("exchange", "--network complete:8", "at-once"),
]
# Blocks are cut in as many parts as a network has dimensions, and in halves.
CLASSES = {"ring": 1, "array": 1, "torus:3x3": 2, "mesh": 2, "torus:3x3x3": 3}


def told(command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        return None, run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "failed"
    return json.loads(run.stdout), None


def parts(place, algorithm):
    if algorithm == "halves":
        return 2
    fitting = [name for name in CLASSES if name in place]
    return CLASSES[max(fitting, key=len)] if fitting else 1


# Names of baselines in comparisons.
BASELINES = {"linear": "linear", "window": "linear, window of 4", "binomial": "binomial, combining",
             "adaptive": "adaptive (Träff)"}


def planned_ms(flitcast, operation, place, algorithm, link):
    """The time of the plan on links of this kind, or None and the reason."""
    flits = parts(place, algorithm) if operation == "gossip" else 1
    lengths = {"broadcast": ["--size", "4"], "exchange": ["--lengths", "each:1"]}
    lengths = lengths.get(operation, ["--lengths", f"equal:{flits}"])
    # A network's plan has a port for each neighbour in any case.
    planned = place.replace(" --ports multi", "") if "network" in place else place
    on_links = [*planned.split(), *lengths, "--link", LINKS[link], "--link-flit", str(-(-FLIT_BYTES // flits)),
                "--format", "json"]
    if algorithm in BASELINES:
        compared, why = told([flitcast, "compare", operation, *on_links])
        rows = compared["results"] if compared else []
        named = [row for row in rows if row["algorithm"] == BASELINES[algorithm] and "on_links" in row]
        plan = named[0] if named else None
    else:
        named = [] if operation == "scatter" else ["--algorithm", algorithm.replace("at-once", "shifts")]
        plan, why = told([flitcast, "plan", operation, *on_links, *named, "--summary"])
    return (plan["on_links"]["time_us"] / 1000, None) if plan else (None, why or "no such row")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("flitcast")
    arguments.add_argument("--csv", required=True)
    arguments.add_argument("--dry-run", action="store_true")
    given = arguments.parse_args()
    rows = []
    for operation, place, algorithm in CASES:
        for link, shape in LINKS.items():
            size = 4 * FLIT_BYTES if operation == "broadcast" else FLIT_BYTES
            flit = -(-FLIT_BYTES // parts(place, algorithm)) if operation == "gossip" else FLIT_BYTES
            command = [given.flitcast, operation, *place.split(), "--algorithm", algorithm, "--size", str(size),
                       "--flit-size", str(flit), "--link", shape, "--format", "json"]
            command += ["--dry-run"] if given.dry_run else ["--rounds", str(ROUNDS)]
            report, why = told(command)
            row = {"operation": operation, "place": place, "algorithm": algorithm, "link": link,
                   "planned_ms": None, "predicted_ms": None, "measured_ms": None, "note": why or ""}
            if report:
                timed = report["round"]
                row["planned_ms"], why = planned_ms(given.flitcast, operation, place, algorithm, link)
                row["note"] = why or ""
                row["predicted_ms"] = timed["predicted_us"] / 1000
                row["measured_ms"] = None if given.dry_run else timed["measured_us"]["median"] / 1000
            rows.append(row)
    with open(given.csv, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    show(rows)


def show(rows):
    def off(of, row):
        # Without measurements, a prediction is compared with its plan.
        base, took = row[of], row["measured_ms"] or (row["predicted_ms"] if of == "planned_ms" else None)
        return (took / base - 1) * 100 if base and took else None

    def shown(value, unit):
        return "" if value is None else f"{value:.1f}{unit}"

    for link, shape in LINKS.items():
        of_link = [row for row in rows if row["link"] == link]
        print(f"\n**`--link {shape}`**\n")
        print("| operation | | algorithm | plan | predicted | measured | off the plan | off the prediction |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for row in of_link:
            cells = [row["operation"], row["place"], row["algorithm"], shown(row["planned_ms"], " ms"),
                     shown(row["predicted_ms"], " ms"), shown(row["measured_ms"], " ms") or row["note"],
                     shown(off("planned_ms", row), " %"), shown(off("predicted_ms", row), " %")]
            print("| " + " | ".join(cells) + " |")
        for of in ("planned_ms", "predicted_ms"):
            offs = [abs(off(of, row)) for row in of_link if off(of, row) is not None]
            if offs:
                within = sum(1 for each in offs if each <= 5)
                print(f"\nOff the {of[:-3]} time: median {statistics.median(offs):.1f} %, at most {max(offs):.1f} %, "
                      f"{within} of {len(offs)} within 5 %.")


if __name__ == "__main__":
    main()
