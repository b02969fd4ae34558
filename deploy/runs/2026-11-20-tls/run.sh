#!/usr/bin/env bash
# What TLS costs: 1 GiB scattered with and without, by turns, every byte checked.
#   run.sh [FLITCAST] [PAIRS]
# Needs jq and GNU time. CPU is that of all processes, the coordinator's as well.
set -euo pipefail
flitcast=$(realpath "${1:-$(dirname "$0")/../../../target/release/flitcast}")
pairs=${2:-11}
cd "$(dirname "$0")"
credentials=$(mktemp -d)/ca
trap 'rm -rf "$(dirname "$credentials")"' EXIT
"$flitcast" ca init "$credentials" --pes 4 > /dev/null
echo "tree,security,pair,predicted_ms,round_ms,user_s,system_s" > tls.csv
once() {
    local tree=$1 pair=$2 cpu report
    shift 2
    cpu=$(mktemp)
    # Three messages of a third of a GiB each.
    report=$(command time -o "$cpu" -f "%U,%S" "$flitcast" scatter --tree "$tree" \
        --lengths 357913941B,357913941B,357913942B --format json "$@" 2> /dev/null)
    jq -r --arg tree "$tree" --arg pair "$pair" --arg cpu "$(cat "$cpu")" \
        '[$tree, .security, $pair, .round.predicted_us / 1000, .round.measured_us.median / 1000, $cpu] | join(",")' \
        <<< "$report" >> tls.csv
    rm "$cpu"
}
for tree in path:4 star:4; do
    for pair in $(seq "$pairs"); do
        once $tree "$pair"
        once $tree "$pair" --credentials "$credentials"
    done
done
# Medians, and the ratio of each pair's.
awk -F, 'NR > 1 {
    key = $1 "," $2; n[key]++; wall[key, n[key]] = $5; cpu[key, n[key]] = $6 + $7; trees[$1] = 1 }
function median(of, key, count,   i, j, t, list) {
    for (i = 1; i <= count; i++) list[i] = of[key, i]
    for (i = 2; i <= count; i++) for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
        t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return list[int((count + 1) / 2)] }
END { for (tree in trees) {
    plain = tree ",loopback"; tls = tree ",tls"
    for (i = 1; i <= n[tls]; i++) {
        ratio[tree ",wall", i] = wall[tls, i] / wall[plain, i]; ratio[tree ",cpu", i] = cpu[tls, i] / cpu[plain, i] }
    printf "%s: round %.0f ms plain, %.0f ms with TLS, x %.2f; CPU %.2f s and %.2f s, x %.2f (medians of %d pairs)\n",
        tree, median(wall, plain, n[plain]), median(wall, tls, n[tls]), median(ratio, tree ",wall", n[tls]),
        median(cpu, plain, n[plain]), median(cpu, tls, n[tls]), median(ratio, tree ",cpu", n[tls]), n[tls] } }' tls.csv
