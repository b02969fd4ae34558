#!/usr/bin/env bash
# 64 hosts and P0's: up, one scatter of 64 x 1 MiB, one gather, down, each timed. The hosts are
# network namespaces of deploy/lab, on one switch.
#   run.sh [REPETITIONS [SIZE [RATE]]]
# from a built checkout (cargo build --release, or $FLITCAST), as root, with deploy/lab's
# packages and jq. What came back is compared byte for byte.
set -euo pipefail
repetitions=${1:-5} size=${2:-1M} rate=${3:-1gbit}
here=$(dirname "$(readlink -f "$0")")
root=$here/../../..
flitcast=${FLITCAST:-$root/target/release/flitcast}
HOSTS=64
cluster=/run/flitcast-lab/cluster.toml
work=$(mktemp --directory)
rows=$here/64-hosts.csv
trap 'rm -rf "$work"; "$root/deploy/lab/down" >/dev/null' EXIT
trap 'exit 130' INT TERM

mkdir "$work/in"
for ((pe = 1; pe <= HOSTS; pe++)); do head -c "$size" /dev/urandom >"$work/in/p$pe"; done

# timed NAME COMMAND..: of a round, what it took without launching and measuring as well.
timed() {
    local name=$1 began ended round
    shift
    began=$EPOCHREALTIME
    "$@" >"$work/report"
    ended=$EPOCHREALTIME
    round=$(jq '.round.measured_us.median / 1000' "$work/report" 2>/dev/null) || round=
    awk -v row="$tree,$name,$repetition" -v a="$began" -v b="$ended" -v round="$round" \
        'BEGIN { printf "%s,%.0f,%s\n", row, (b - a) * 1000, round }' | tee --append "$rows" >&2
}

echo "tree,step,repetition,command_ms,round_ms" >"$rows"
for tree in star:$((HOSTS + 1)) kary:2:$((HOSTS + 1)); do
    for ((repetition = 1; repetition <= repetitions; repetition++)); do
        timed up "$root/deploy/lab/up" --layout rack --tree "$tree" --rate "$rate" --flitcast "$flitcast"
        # Once, for commands that need not measure 64 edges themselves.
        if ((repetition == 1)); then
            timed calibrate "$flitcast" calibrate --cluster "$cluster" --output "$work/profile" --format json
        fi
        timed scatter "$flitcast" scatter --cluster "$cluster" --input "$work/in" --output "$work/there" --format json
        timed gather "$flitcast" gather --cluster "$cluster" --input "$work/there" --output "$work/back" --format json
        diff --recursive "$work/in" "$work/back"
        rm -rf "$work/there" "$work/back"
        known=(--cluster "$cluster" --profile "$work/profile" --format json)
        timed "scatter with a profile" "$flitcast" scatter "${known[@]}" --input "$work/in" --output "$work/there"
        timed "gather with a profile" "$flitcast" gather "${known[@]}" --input "$work/there" --output "$work/back"
        timed down "$root/deploy/lab/down"
        diff --recursive "$work/in" "$work/back"
        rm -rf "$work/there" "$work/back"
    done
done

echo "$HOSTS hosts, $size each, links of $rate; medians of $repetitions, in ms"
printf '%-10s %-23s %10s %10s\n' tree step command round
sed 1d "$rows" | cut --delimiter=, --fields=1,2 | awk '!seen[$0]++' | while IFS=, read -r tree step; do
    middle=$(((repetitions + 1) / 2))
    median() { awk -F, -v tree="$tree" -v step="$step" -v column="$1" '$1 == tree && $2 == step { print $column }' "$rows" | sort --general-numeric-sort | sed -n "${middle}p"; }
    [[ $step != calibrate ]] || middle=1
    printf '%-10s %-23s %10s %10.6s\n' "$tree" "$step" "$(median 4)" "$(median 5)"
done
