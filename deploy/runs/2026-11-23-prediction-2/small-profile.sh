#!/usr/bin/env bash
# small.sh on a disk, and what the disk did in each round: its flushes, and what one took.
#
#     small-profile.sh FLITCAST FOLDER DEVICE [ROUNDS]
#
# DEVICE is the block device below FOLDER, such as vda.
set -euo pipefail
flitcast=$(realpath "$1") here=$2/flitcast-small-$$ stat=/sys/block/$3/stat rounds=${4:-8}
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/in"
for pe in 1 2 3 4 5 6 7; do
    mkdir "$here/in/p$pe"
    head -c $((1500 * 4096)) /dev/urandom | split -a 4 -d -b 4096 - "$here/in/p$pe/f"
done
# Writes, and the time of all of them in ms; flushes, and the time of all of those.
counted() { awk '{ print $5, $8, $16, $17 }' "$stat"; }
for ((round = 0; round < rounds; round++)); do
    rm -rf "$here/out" "$here/cache"
    sync
    # What is learned of the files is measured here, by one that is not looked at.
    XDG_CACHE_HOME=$here/cache "$flitcast" scatter --tree kary:2:8 --lengths equal:1 > /dev/null
    before=$(counted)
    took=$(XDG_CACHE_HOME=$here/cache "$flitcast" scatter --tree kary:2:8 --input "$here/in" \
        --output "$here/out" --format json |
        jq -r '[.phases | .transfer, .commit | .predicted_us, .measured_us.median] |
            "\((.[0] + .[2]) / 1000 | round) \((.[1] + .[3]) / 1000 | round)"')
    after=$(counted)
    awk -v took="$took" -v before="$before" -v after="$after" 'BEGIN {
        split(took, t, " "); split(before, b, " "); split(after, a, " ")
        printf "predicted %d ms, measured %d ms; %d writes of %.2f ms, %d flushes of %.2f ms\n",
            t[1], t[2], a[1] - b[1], (a[2] - b[2]) / (a[1] - b[1]), a[3] - b[3], (a[4] - b[4]) / (a[3] - b[3]) }'
done
