#!/usr/bin/env bash
# 10,500 files of 4 KiB to seven PEs, again and again, each time by what a command knows that is the
# first on its machine:
#
#     small.sh FLITCAST OUT.csv FOLDER [ROUNDS]
set -euo pipefail
flitcast=$(realpath "$1") csv=$(realpath -m "$2") here=$3/flitcast-small-$$ rounds=${4:-8}
trap 'rm -rf "$here"' EXIT
mkdir -p "$here/in"
for pe in 1 2 3 4 5 6 7; do
    mkdir "$here/in/p$pe"
    head -c $((1500 * 4096)) /dev/urandom | split -a 4 -d -b 4096 - "$here/in/p$pe/f"
done
echo 'transfer_predicted_us,transfer_us,commit_predicted_us,commit_us' > "$csv"
for ((round = 0; round < rounds; round++)); do
    rm -rf "$here/out" "$here/cache"
    sync
    XDG_CACHE_HOME=$here/cache "$flitcast" scatter --tree kary:2:8 --input "$here/in" \
        --output "$here/out" --format json |
        jq -r '[.phases | .transfer, .commit | .predicted_us, .measured_us.median] | @csv' >> "$csv"
    diff -r "$here/in" "$here/out"
done
awk -F, 'NR > 1 { p = $1 + $3; m = $2 + $4; e = p / m * 100 - 100
    printf "predicted %.0f ms, measured %.0f ms: %+.0f %%\n", p / 1000, m / 1000, e }' "$csv"
