#!/usr/bin/env bash
# Predicted beside measured for messages made of files:
#
#     files.sh FLITCAST OUT.csv DISK MEMORY [PASSES]
#
# DISK and MEMORY are folders, one on a disk and one in memory (tmpfs). Each pass runs 30
# workloads, scatters and gathers over kary:2:8: 7 to 10,500 files, all in memory or, where the
# name says cold, forgotten by the kernel before. Every output is compared with its input. Nothing is
# removed before the end: ext4 without a journal looks at each inode that was freed in the last
# minutes whenever a file is made, so that what follows a removal measures the removal.
set -euo pipefail
flitcast=$(realpath "$1") csv=$(realpath -m "$2") disk=$3 memory=$4 passes=${5:-1}
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$(mktemp -d)}
trap 'rm -rf "$disk/flitcast-files-$$" "$memory/flitcast-files-$$"' EXIT
count=0

# make FOLDER NAME: the shards p1..p7 of a workload.
make() {
    mkdir -p "$1"
    local pe
    for pe in 1 2 3 4 5 6 7; do
        case $2 in
        long) head -c 8M /dev/urandom > "$1/p$pe" ;;
        longer) head -c 40M /dev/urandom > "$1/p$pe" ;;
        some) files "$1/p$pe" 100 4096 ;;
        many) files "$1/p$pe" 500 1024 ;;
        most) files "$1/p$pe" 1500 4096 ;;
        unlike) if [ $pe = 3 ]; then files "$1/p$pe" 10 6000000; else files "$1/p$pe" $((pe * 12)) 20000; fi ;;
        esac
    done
}
# files FOLDER COUNT BYTES
files() {
    mkdir "$1"
    head -c $(($2 * $3)) /dev/urandom | split -a 4 -d -b "$3" - "$1/f"
}
forget() {
    sync
    find "$1" -type f -exec dd if={} iflag=nocache count=0 status=none \;
}
# run FOLDER NAME OPERATION CACHE KIND: one round on the shards in FOLDER/in.
run() {
    local result
    local out=$1/out$((++count))
    sync
    if [ "$4" = cold ]; then forget "$1/in"; else find "$1/in" -type f -exec cat {} + > /dev/null; fi
    result=$("$flitcast" "$3" --tree kary:2:8 --input "$1/in" --output "$out" --format json)
    diff -r "$1/in" "$out" > /dev/null
    jq -r --arg kind "$5" --arg name "$2" --arg cache "$4" \
        '[$kind, .operation, $name, $cache,
          (.phases | .transfer, .disk, .commit | .predicted_us, .measured_us.median),
          .costs.files.source] | @csv' <<< "$result" | tee -a "$csv"
}
# both FOLDER NAME KIND CACHE..: scatters and gathers of a workload.
both() {
    local here=$1/flitcast-files-$$/$2-$((++count)) name=$2 kind=$3 cache
    shift 3
    mkdir -p "$here"
    make "$here/in" "$name"
    for cache in "$@"; do
        run "$here" "$name" scatter "$cache" "$kind"
        run "$here" "$name" gather "$cache" "$kind"
    done
}

echo 'place,operation,workload,cache,transfer_predicted_us,transfer_us,disk_predicted_us,disk_us,commit_predicted_us,commit_us,costs' > "$csv"
for ((pass = 0; pass < passes; pass++)); do
    for name in long some many unlike; do both "$disk" $name disk warm cold; done
    for name in longer most; do both "$disk" $name disk warm; done
    for name in longer some many most unlike; do both "$memory" $name memory warm; done
done
# How far the whole time, until every file is visible, is off.
awk -F, -v OFS=, 'NR > 1 { e = ($5 + $9) / ($6 + $10) * 100 - 100; print $1, $2, $3, $4, int(($6 + $10) / 1000) " ms", int(e) " %" }' "$csv" | tr -d '"' | column -t -s,
awk -F, 'NR > 1 && $6 + $10 >= 100000 { e = ($5 + $9) / ($6 + $10) * 100 - 100; print e < 0 ? -e : e }' "$csv" | sort -n |
    awk '{ a[NR] = $1 } END { printf "%d rounds of 100 ms or more: median %.1f %%, worst %.1f %%\n", NR, a[int((NR + 1) / 2)], a[NR] }'
