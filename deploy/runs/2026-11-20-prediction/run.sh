#!/usr/bin/env bash
# Predicted beside measured: 12 workloads x 3 trees x every algorithm.
#   run.sh shaped|lab-rack|lab-tree|loopback [FLITCAST]
# Writes NAME.csv (a line for each algorithm and workload), NAME-raw/ (every round) and
# the profiles beside this file. The lab needs root.
set -euo pipefail
place=$1
flitcast=${2:-target/release/flitcast}
here=$(dirname "$0")
root=$here/../../..
rounds=6
workloads="equal:4KiB equal:24KiB equal:64KiB equal:256KiB equal:600KiB ramp:64KiB ramp:256KiB
    onebig:64KiB halfnull:64KiB halfnull:256KiB uniform:0..256KiB:7 uniform:0..800KiB:11"

csv=$here/$place.csv
raw=$here/$place-raw
rm -rf "$csv" "$raw"
mkdir -p "$raw"

for tree in path:8 kary:2:15 star:8; do
    name=${tree//:/-}
    profile=$here/profile-$place-$name.toml
    case $place in
        shaped) where=(--tree "$tree" --link rate=200mbit,latency=1ms) seconds=20 ;;
        loopback) where=(--tree "$tree") seconds=20 rounds=21 ;;
        lab-*)
            # There is one lab a machine.
            until "$root/deploy/lab/up" --tree "$tree" --rate 100mbit --layout "${place#lab-}" >&2; do
                sleep 5
            done
            trap '"$root/deploy/lab/down" >&2' EXIT
            where=(--cluster /run/flitcast-lab/cluster.toml) seconds=40 rounds=4
            ;;
    esac
    "$flitcast" calibrate "${where[@]}" --seconds "$seconds" --output "$profile" > "$raw/calibrate-$name.txt"
    for lengths in $workloads; do
        for operation in scatter gather; do
            file=$raw/$operation-$name-${lengths//[:.]/-}.csv
            "$flitcast" bench "$operation" "${where[@]}" --profile "$profile" --lengths "$lengths" \
                --rounds "$rounds" --warm-up 1 --format csv --raw "$file" 2> /dev/null |
                { [ -s "$csv" ] && tail -n +2 || cat; } >> "$csv"
        done
    done
    if [ "${place#lab-}" != "$place" ]; then
        "$root/deploy/lab/down" >&2
        trap - EXIT
    fi
done
