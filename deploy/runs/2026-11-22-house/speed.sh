#!/usr/bin/env bash
# Two programs beside each other, in turns: what rounds take, how far predictions are off, and what
# a byte costs all processors on its way over seven hops:
#
#     speed.sh BEFORE AFTER OUT.csv [TURNS]
#
# Prints for each tree, operation and size the ratio of medians, AFTER by BEFORE, and at the end the
# medians over all cases. Synthetic messages, each of whose bytes is checked.
set -euo pipefail
before=$(realpath "$1") after=$(realpath "$2") csv=$(realpath -m "$3") turns=${4:-7}
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cd "$here"
TIMEFORMAT='%U %S'

# The hosts' costs of both are measured before anything is compared.
for program in before after; do
    XDG_CACHE_HOME=$here/$program "${!program}" scatter --tree star:8 --size 1KiB > /dev/null 2>&1
done

echo 'program,tree,operation,size,predicted_us,median_us,min_us,cpu_s' > "$csv"
for turn in $(seq "$turns"); do
    for tree in star:8 path:8; do
        for size in 1KiB 16KiB 256KiB 4MiB 64MiB; do
            rounds=15
            [ "$size" = 64MiB ] && rounds=3
            for operation in scatter gather; do
                for program in before after; do
                    cpu=$({ time XDG_CACHE_HOME=$here/$program "${!program}" "$operation" --tree "$tree" \
                        --size "$size" --rounds "$rounds" --format json > out.json 2> /dev/null; } 2>&1 |
                        tail -1)
                    jq -r --arg row "$program,$tree,$operation,$size" --arg cpu "$cpu" --argjson n "$rounds" \
                        '[.round | .predicted_us, .measured_us.median, .measured_us.min] + [($cpu |
                        split(" ") | map(tonumber) | add)] | map(tostring) | $row + "," + join(",")' out.json >> "$csv"
                done
            done
        done
    done
    echo "turn $turn of $turns" >&2
done
python3 - "$csv" <<'PY'
import csv, statistics, sys
rows = list(csv.DictReader(open(sys.argv[1])))
cases = {}
for row in rows:
    key = (row["tree"], row["operation"], row["size"])
    cases.setdefault(key, {}).setdefault(row["program"], []).append(row)
def median(rows, what):
    return statistics.median(float(row[what]) for row in rows)
def off(rows):
    return statistics.median(abs(float(r["predicted_us"]) / float(r["median_us"]) - 1) for r in rows)
print(f"{'tree':8}{'operation':10}{'size':8}{'before us':>12}{'after us':>12}{'ratio':>8}{'CPU':>8}{'off before':>12}{'off after':>11}")
ratios, cpus, offs = [], [], {"before": [], "after": []}
for key, of in cases.items():
    b, a = of["before"], of["after"]
    times = [median(x, "median_us") for x in (b, a)]
    cpu = median(a, "cpu_s") / max(median(b, "cpu_s"), 1e-9)
    ratio = times[1] / times[0]
    ratios.append(ratio); cpus.append(cpu)
    for name, x in (("before", b), ("after", a)):
        offs[name].append(off(x))
    print(f"{key[0]:8}{key[1]:10}{key[2]:8}{times[0]:12.0f}{times[1]:12.0f}{ratio:8.3f}{cpu:8.3f}{off(b):12.1%}{off(a):11.1%}")
print(f"median ratio {statistics.median(ratios):.3f}, worst {max(ratios):.3f}; CPU {statistics.median(cpus):.3f}; "
      f"prediction off {statistics.median(offs['before']):.1%} before, {statistics.median(offs['after']):.1%} after")
PY
