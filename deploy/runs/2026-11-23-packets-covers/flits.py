#!/usr/bin/env python3
"""One message from end to end of path:8, in flits of 64 KiB and of the size that Flitcast chooses,
command after command in turns, so that what the machine does otherwise comes to both alike:

    flits.py FLITCAST OUT.csv PAIRS PLACE..

PLACE is `loopback`, or the rate of the lab's links (100mbit, 1gbit), for which root is needed. Every
byte is verified, as always. Appends a line for each command to OUT.csv, and prints medians over the
commands, and the chosen size's time by that of 64 KiB as the median over the pairs.
"""
import csv, json, os, statistics, subprocess, sys, tempfile

program, out, pairs, *places = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))
lab = os.path.join(here, "../../lab")
SIZES = {"64KiB": 5, "1MiB": 5, "64MiB": 1}
home = tempfile.mkdtemp()


def run(where, size, more):
    # P7 gets all of it.
    words = [program, "scatter", *where, "--lengths", "0,0,0,0,0,0," + size, "--rounds", str(SIZES[size]),
             "--format", "json", *more]
    done = subprocess.run(words, env=os.environ | {"XDG_CACHE_HOME": home}, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    report = json.loads(done.stdout)
    return report["flit_bytes"], report["round"]["measured_us"]["median"], report["round"]["predicted_us"]


def measure(place, where, writer, file):
    for size in SIZES:
        ways = {"64 KiB": ["--flit-size", "64KiB"], "chosen": []}
        found = {way: [] for way in ways}
        # Slow links are sure sooner.
        for pair in range(3 if (place, size) == ("100mbit", "64MiB") else int(pairs)):
            for way in list(ways) if pair % 2 else reversed(list(ways)):
                flit, took, predicted = run(where, size, ways[way])
                found[way].append((took, flit))
                writer.writerow([place, size, pair, way, flit, round(took, 1), round(predicted, 1)])
        file.flush()
        times = {way: [took for took, _ in all] for way, all in found.items()}
        flits = sorted({flit for _, flit in found["chosen"]})
        ratio = statistics.median(a / b for a, b in zip(times["chosen"], times["64 KiB"]))
        usual, chosen = (statistics.median(times[way]) / 1e3 for way in ways)
        print(f"{place:9}{size:>7}  64 KiB: {usual:9.2f} ms  chosen {flits}: {chosen:9.2f} ms  ratio {ratio:.3f}",
              flush=True)


with open(out, "a", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    if file.tell() == 0:
        writer.writerow(["place", "size", "pair", "way", "flit_bytes", "median_us", "predicted_us"])
    for place in places:
        if place == "loopback":
            measure(place, ["--tree", "path:8"], writer, file)
            continue
        subprocess.run([lab + "/up", "--tree", "path:8", "--rate", place, "--flitcast", program],
                       stdout=subprocess.DEVNULL, check=True)
        try:
            measure(place, ["--cluster", "/run/flitcast-lab/cluster.toml"], writer, file)
        finally:
            subprocess.run([lab + "/down"], stdout=subprocess.DEVNULL, check=True)
