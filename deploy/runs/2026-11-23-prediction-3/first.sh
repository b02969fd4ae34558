#!/usr/bin/env bash
# README's first scatter and gather, fifteen times, beginning on an empty cache:
#
#     first.sh FLITCAST OUT.csv
#
# Run in the project's folder. Prints median and worst of the absolute errors: of the transfer, and of
# the whole time until every file is visible.
set -euo pipefail
flitcast=$(realpath "$1") csv=$(realpath -m "$2") shards=$(realpath deploy/sample/shards)
here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
export XDG_CACHE_HOME=$here/cache
cd "$here"

echo 'run,operation,transfer_predicted_us,transfer_us,disk_predicted_us,disk_us,commit_predicted_us,commit_us,costs,files' > "$csv"
# round RUN OPERATION INPUT OUTPUT
round() {
    "$flitcast" "$2" --tree kary:2:8 --input "$3" --output "$4" --format json |
        jq -r --arg run "$1" '[$run, .operation,
            (.phases | .transfer, .disk, .commit | .predicted_us, .measured_us.median),
            .costs.source, .costs.files.source] | @csv' | tr -d '"' >> "$csv"
}
for run in $(seq 15); do
    rm -rf scattered gathered
    round "$run" scatter "$shards" scattered
    round "$run" gather scattered gathered
    diff -r "$shards" gathered
done
for operation in scatter gather; do
    for what in transfer whole; do
        awk -F, -v operation=$operation -v what=$what '$2 == operation {
            p = $3; m = $4
            if (what == "whole") { p += $7; m += $8 }
            e = p / m * 100 - 100
            print e < 0 ? -e : e
        }' "$csv" | sort -n | awk -v name="$operation, $what" '{ a[NR] = $1 }
            END { printf "%s: median %.1f %%, worst %.1f %%\n", name, a[int((NR + 1) / 2)], a[NR] }'
    done
done
