#!/usr/bin/env bash
# Eight scatters of the same 10,500 files of 4 KiB on a disk, each predicted by what a command knows
# that is the first on its machine; and how long the disk was busy in each, what it wrote and how
# often it was flushed.
#
#     disk.sh FLITCAST FOLDER DEVICE keep|remove [ROUNDS]
#
# DEVICE is the block device below FOLDER, such as vda. Outputs are kept until the end, or the last
# one is removed before the next round.
set -euo pipefail
flitcast=$(realpath "$1") here=$2/flitcast-disk-$$ device=$3 way=$4 rounds=${5:-8}
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/in"
for pe in 1 2 3 4 5 6 7; do
    mkdir "$here/in/p$pe"
    head -c $((1500 * 4096)) /dev/urandom | split -a 4 -d -b 4096 - "$here/in/p$pe/f"
done
# Writes, sectors, the time of all writes, the time in which there were any requests; flushes and theirs.
counted() { awk '{ print $5, $7, $8, $10, $16, $17 }' "/sys/block/$device/stat"; }
for ((round = 1; round <= rounds; round++)); do
    rm -rf "$here/cache"
    [ "$way" = keep ] || rm -rf "$here"/out*
    sync
    XDG_CACHE_HOME=$here/cache "$flitcast" scatter --tree kary:2:8 --lengths equal:1 > /dev/null
    before=$(counted)
    took=$(XDG_CACHE_HOME=$here/cache "$flitcast" scatter --tree kary:2:8 --input "$here/in" \
        --output "$here/out$round" --format json 2> /dev/null |
        jq -r '[.phases | .transfer, .commit | .predicted_us, .measured_us.median] |
            "\((.[0] + .[2]) / 1000 | round) \((.[1] + .[3]) / 1000 | round)"')
    after=$(counted)
    awk -v took="$took" -v before="$before" -v after="$after" \
        -v round=$round 'BEGIN {
        split(took, t, " "); split(before, b, " "); split(after, a, " ")
        printf "%d: predicted %d ms, measured %d ms; disk busy %d ms, %d writes of %d bytes in %.3f ms each, %d flushes of %.3f ms\n",
            round, t[1], t[2], a[4] - b[4], a[1] - b[1], (a[2] - b[2]) * 512 / (a[1] - b[1]),
            (a[3] - b[3]) / (a[1] - b[1]), a[5] - b[5], (a[6] - b[6]) / (a[5] - b[5]) }'
done
