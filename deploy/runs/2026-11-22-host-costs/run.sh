#!/usr/bin/env bash
# How far predictions on loopback are off without a profile, for one program and one cache:
#
#     run.sh FLITCAST OUT.csv          on a cache that is empty, and again on what that has learned
#
# Prints the median and the worst of the absolute errors, in percent; OUT.csv has every case.
set -euo pipefail
flitcast=$1
out=$2
export XDG_CACHE_HOME
XDG_CACHE_HOME=$(mktemp -d)
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
: > "$out"
for turn in cold warm; do
    for tree in path:8 star:8 kary:2:8 kary:3:13; do
        for lengths in uniform:0..900KiB:3 onebig:64KiB uniform:3KiB..5KiB:9; do
            for operation in scatter gather; do
                "$flitcast" bench $operation --tree $tree --lengths $lengths --rounds 9 --format csv |
                    tail -n +2 | sed "s/^/$turn,/" >> "$out"
            done
        done
    done
done
for turn in cold warm; do
    awk -F, -v turn=$turn '$1 == turn { error = $13 + 0; print error < 0 ? -error : error }' "$out" |
        sort -n | awk -v turn=$turn '{ all[NR] = $1 }
            END { printf "%s: %d cases, median %.1f %%, worst %.1f %%\n", turn, NR, all[int((NR + 1) / 2)], all[NR] }'
done
