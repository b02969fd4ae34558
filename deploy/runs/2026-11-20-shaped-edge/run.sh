#!/usr/bin/env bash
# What a shaped edge delivers: one message of each length down an edge, medians.
#   run.sh [FLITCAST]
# rate: bytes over (its time - the time of a message of 1 byte), against the rate asked for.
# latency: the time of a message of 1 byte, less that byte's own frame on the wire.
set -euo pipefail
flitcast=${1:-../../../target/release/flitcast}
cd "$(dirname "$0")"
echo "link,bytes,rounds,median_us,delivered,off" > edge.csv
median() {
    "$flitcast" scatter --tree path:2 --lengths "$2" --link "$1" --rounds "$3" --format json |
        jq .round.measured_us.median
}
while read -r rate mbit latency latency_us longest; do
    link=rate=$rate,latency=$latency
    least=$(median "$link" 1B 201)
    # A message of 1 byte is one frame of 42.
    awk -v link="$link" -v t="$least" -v mbit="$mbit" -v asked="$latency_us" 'BEGIN {
        latency = t - 42 * 8 / mbit
        printf "\"%s\",1,201,%.1f,%.1f us,%+.1f us\n", link, t, latency, latency - asked }' >> edge.csv
    for bytes in 16384:101 262144:51 1048576:31 16777216:7 67108864:5; do
        rounds=${bytes#*:} bytes=${bytes%:*}
        [ "$bytes" -gt "$longest" ] && continue
        awk -v link="$link" -v bytes="$bytes" -v rounds="$rounds" -v mbit="$mbit" -v least="$least" \
            -v t="$(median "$link" "${bytes}B" "$rounds")" 'BEGIN {
            rate = bytes * 8 / (t - least)
            printf "\"%s\",%d,%d,%.1f,%.2f Mbit/s,%+.2f %%\n", link, bytes, rounds, t, rate, (rate / mbit - 1) * 100 }' >> edge.csv
    done
done << LINKS
50mbit 50 3ms 3000 16777216
200mbit 200 1ms 1000 67108864
1gbit 1000 1ms 1000 67108864
LINKS
column -s, -t edge.csv 2> /dev/null || cat edge.csv
