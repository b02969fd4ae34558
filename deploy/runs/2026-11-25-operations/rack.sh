#!/usr/bin/env bash
# Broadcasts behind one switch, 100 KB of queue for each host: by path and over a hypercube's trees, the
# median of three rounds, as a multiple of what one link needs for the message and the acknowledgements
# of what it takes itself (a frame of 1,514 bytes for 1,448, and 66 bytes for every second one).
#
#     rack.sh FLITCAST PES RATE_MBIT MIB ALGORITHM..      (root; builds and removes the network lab)
set -euo pipefail
flitcast=$(realpath "$1") pes=$2 rate=$3 mib=$4
lab=$(dirname "$(readlink -f "$0")")/../../lab
"$lab/up" --tree "star:$pes" --layout rack --rate "${rate}mbit" --queue 100000 --flitcast "$flitcast" > /dev/null
trap '"$lab/down" > /dev/null' EXIT
for algorithm in "${@:5}"; do
    "$flitcast" broadcast --cluster /run/flitcast-lab/cluster.toml --size "${mib}MiB" --algorithm "$algorithm" \
        --rounds 3 --format json | jq --raw-output '[.round.measured_us.median, .round.predicted_us] | @tsv' |
        awk -v a="$algorithm" -v p="$pes" -v r="$rate" -v m="$mib" '{
            needs = m * 1048576 / 1448 * (1514 + 66 / 2) * 8 / r
            printf "%s,%d,%d,%d,%.2f,%.3f,%+.1f\n", a, p, r, m, $1 / 1e6, $1 / needs, ($2 / $1 - 1) * 100 }'
done
