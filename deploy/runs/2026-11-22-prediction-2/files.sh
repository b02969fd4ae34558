#!/usr/bin/env bash
# Predicted beside measured for messages made of files:
#
#     files.sh FLITCAST OUT.csv DISK MEMORY [PASSES]
#
# DISK and MEMORY are folders, one on a disk and one in memory (tmpfs). Each pass runs 30
# workloads, scatters and gathers over kary:2:8: 1 to 10,000 files, all in memory or, where the
# name says cold, forgotten by the kernel before. Every output is compared with its input.
set -euo pipefail
flitcast=$(realpath "$1") csv=$(realpath -m "$2") disk=$3 memory=$4 passes=${5:-1}
export XDG_CACHE_HOME=${XDG_CACHE_HOME:-$(mktemp -d)}

# make FOLDER NAME: the shards p1..p7 of a workload.
make() {
    rm -rf "$1" && mkdir -p "$1"
    local pe
    for pe in 1 2 3 4 5 6 7; do
        case $2 in
        long) head -c 8M /dev/urandom > "$1/p$pe" ;;
        longer) head -c 40M /dev/urandom > "$1/p$pe" ;;
        some) files "$1/p$pe" 100 4096 ;;
        many) files "$1/p$pe" 500 1024 ;;
        most) files "$1/p$pe" 1428 4000 ;;
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
# run PLACE NAME OPERATION COLD
run() {
    local here=$1/flitcast-files-$$ result
    mkdir -p "$here"
    make "$here/in" "$2"
    sync
    [ "$4" = cold ] && forget "$here/in"
    rm -rf "$here/out"
    result=$("$flitcast" "$3" --tree kary:2:8 --input "$here/in" --output "$here/out" --format json)
    diff -r "$here/in" "$here/out" > /dev/null
    rm -rf "$here"
    jq -r --arg place "$5" --arg name "$2" --arg cold "$4" \
        '[$place, .operation, $name, $cold,
          (.phases | .transfer, .disk, .commit | .predicted_us, .measured_us.median),
          .costs.files.source] | @csv' <<< "$result" | tee -a "$csv"
}

echo 'place,operation,workload,cache,transfer_predicted_us,transfer_us,disk_predicted_us,disk_us,commit_predicted_us,commit_us,costs' > "$csv"
for ((pass = 0; pass < passes; pass++)); do
    for operation in scatter gather; do
        for name in long longer some many most unlike; do
            run "$disk" $name $operation warm disk
        done
        for name in long some many unlike; do
            run "$disk" $name $operation cold disk
        done
        for name in longer some many most unlike; do
            run "$memory" $name $operation warm memory
        done
    done
done
