#!/usr/bin/env bash
# How far predictions on loopback are off, for one program, part by part:
#
#     run.sh FLITCAST OUT PART...     cold, warm, one-core, nice or profile; all: each of them
#     run.sh FLITCAST OUT summary     of the parts that are there
#
# A part is 114 cases of `bench` in OUT/PART.csv, and takes less than four minutes. One that was
# interrupted goes on where it was; to do it anew, remove its file, and its cache in OUT/cache.
# Every line of a part is what `flitcast bench --format csv` prints. `cold` begins on an empty
# cache, and `warm` on what that has learned; `one-core` (`taskset -c 0`) and `nice`
# (`nice -n 10`) begin on empty caches of their own, since a slower machine is another one.
# `profile` has `flitcast calibrate` measure each tree just before its cases.
set -euo pipefail
if [ $# -lt 3 ]; then
    sed -n '2,/^set/{/^set/!p}' "$0"
    exit 2
fi
flitcast=$(realpath "$1")
out=$2
shift 2
mkdir -p "$out/cache"
out=$(realpath "$out")

trees="path:8 star:8 kary:2:8 kary:3:13"
lengths="uniform:0..900KiB:3 onebig:64KiB uniform:3KiB..5KiB:9"
parts="cold warm one-core nice profile"

# bench CSV OPERATION TREE LENGTHS COMMAND...: one call, whose lines are kept whole or not at all.
bench() {
    local csv=$1 operation=$2 tree=$3 dealt=$4
    shift 4
    if grep -qs "^$operation,$tree,$dealt," "$csv"; then
        return
    fi
    local lines
    lines=$("$@" bench "$operation" --tree "$tree" --lengths "$dealt" --rounds 9 --format csv \
        ${profile:+--profile "$profile"})
    [ -s "$csv" ] || head -n 1 <<< "$lines" > "$csv"
    tail -n +2 <<< "$lines" >> "$csv"
}

# part NAME CACHE COMMAND...: all cases of a part.
part() {
    local name=$1
    export XDG_CACHE_HOME=$out/cache/$2
    shift 2
    mkdir -p "$XDG_CACHE_HOME"
    local tree dealt operation profile
    for tree in $trees; do
        profile=
        if [ "$name" = profile ]; then
            profile=$out/cache/${tree//:/-}.toml
            "$@" calibrate --tree "$tree" --output "$profile" \
                > "$out/calibrate-${tree//:/-}.txt" 2> /dev/null
        fi
        for dealt in $lengths; do
            for operation in scatter gather; do
                bench "$out/$name.csv" "$operation" "$tree" "$dealt" "$@"
            done
        done
    done
}

# Median and worst absolute error of a part, and where the worst is.
summary() {
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { error = $column["error_pct"] + 0; print (error < 0 ? -error : error) "," error "," $0 }' \
        "$out/$1.csv" | sort -t, -g -k1,1 | awk -F, -v part="$1" '
        { all[NR] = $1; off = $2; where = $3 " " $4 " " $5 " " $7 }
        END { printf "%-9s %3d cases, median %4.1f %%, 90 of 100 below %4.1f %%, worst %4.1f %% (%+.1f %%: %s)\n",
            part, NR, all[int((NR + 1) / 2)], all[int((NR * 9 + 9) / 10)], all[NR], off, where }'
}

for wanted in "$@"; do
    [ "$wanted" = all ] && chosen=$parts || chosen=$wanted
    for name in $chosen; do
        case $name in
            cold | warm) part "$name" two-cores "$flitcast" ;;
            one-core) part "$name" one-core taskset -c 0 "$flitcast" ;;
            nice) part "$name" nice nice -n 10 "$flitcast" ;;
            profile) part "$name" two-cores "$flitcast" ;;
            summary)
                for name in $parts; do
                    [ ! -s "$out/$name.csv" ] || summary "$name"
                done
                continue
                ;;
            *)
                echo "run.sh: there is no part $name" >&2
                exit 2
                ;;
        esac
        summary "$name"
    done
done
