#!/usr/bin/env bash
# What `--algorithm auto --tree auto` picks for 30 random workloads, and what every
# candidate really takes.
#   run.sh [FLITCAST]
# Writes candidates.csv (a line for each candidate) and picks.csv (a line for each
# workload: what was picked, what it took, what the best took).
set -euo pipefail
flitcast=${1:-target/release/flitcast}
cd "$(dirname "$0")"
[ "${flitcast#/}" = "$flitcast" ] && flitcast=../../../$flitcast
RANDOM=2026

pick() { local -n from=$1; echo "${from[RANDOM % ${#from[@]}]}"; }
sizes=(5 6 8)
links=(rate=100mbit,latency=200us rate=400mbit,latency=1ms rate=1gbit,latency=100us rate=200mbit,latency=3ms)
patterns=(equal ramp onebig halfnull uniform)
means=(2 9 33 70 150)

echo "workload,operation,link,lengths,tree,algorithm,flit_bytes,predicted_us,median_us" > candidates.csv
echo "workload,operation,link,lengths,picked,picked_us,best,best_us,more_pct" > picks.csv
for workload in $(seq 30); do
    n=$(pick sizes) link=$(pick links) pattern=$(pick patterns) mean=$(pick means)
    lengths=$pattern:${mean}kB
    [ "$pattern" = uniform ] && lengths=uniform:0..$((2 * mean))kB:$workload
    operation=gather algorithms=certification-serial,certification-serial-turns,certification-serial-eager
    algorithms+=,certification-pipelined,certification-pipelined-turns,certification-pipelined-eager
    if [ $((workload % 2)) = 0 ]; then operation=scatter algorithms=fdf; fi
    profiles=$(mktemp -d)
    for shape in star path kary:2 kary:4 binomial; do
        "$flitcast" calibrate --tree "$shape:$n" --link "$link" --seconds 1 \
            --output "$profiles/$shape" > /dev/null 2>&1
    done
    # The tree of the network, breadth first, is the star.
    chosen=$("$flitcast" "$operation" --algorithm auto --tree auto --network "complete:$n" --link "$link" \
        --lengths "$lengths" --profile "$profiles/star" | sed -n 's/^  chosen: \(.*\) on \(.*\), flits of \([0-9]*\) KiB: .* predictions .*/\2 \1 \3/p' |
        sed "s/^complete:$n root 0 [a-z]*/star:$n/")
    read -r tree algorithm flit <<< "$chosen"
    for shape in star path kary:2 kary:4 binomial; do
        extra=
        [ "$operation $shape" = "gather path" ] && extra=,shoulder-tap,shoulder-tap-turns,shoulder-tap-eager
        for size in 16 64 256; do
            "$flitcast" bench "$operation" --tree "$shape:$n" --link "$link" --lengths "$lengths" \
                --flit-size "${size}KiB" --algorithms "$algorithms$extra" --profile "$profiles/$shape" \
                --rounds 3 --warm-up 1 --format csv 2> /dev/null |
                awk -F, -v head="$workload,$operation,$link,$lengths" -v flit="$((size * 1024))" '
                    NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
                    { print head "," $c["tree"] "," $c["algorithm"] "," flit "," $c["predicted_us"] "," $c["median_us"] }'
        done
    done > candidates.tmp
    # The link has a comma of its own.
    awk -F, -v head="$workload,$operation,$link,$lengths" -v tree="$tree" -v algorithm="$algorithm" \
        -v flit="$((flit * 1024))" '
        { name = $6 " " $7 " " $8 / 1024 "KiB"; took = $10 }
        best == "" || took < least { best = name; least = took }
        $6 == tree && $7 == algorithm && $8 == flit { picked = name; its = took }
        END { printf "%s,%s,%s,%s,%s,%.2f\n", head, picked, its, best, least, (its / least - 1) * 100 }' \
        candidates.tmp >> picks.csv
    cat candidates.tmp >> candidates.csv
    rm -r "$profiles"
    tail -1 picks.csv
done
rm candidates.tmp
