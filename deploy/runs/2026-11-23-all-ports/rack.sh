#!/usr/bin/env bash
# Exchange among 16 hosts of a rack with links of 20 Mbit/s and 16 KiB of queue for each, where
# receivers call and where everybody sends to all at the same time: the median of so many rounds,
# as a multiple of what a link needs for 15 messages, and segments that TCP sent again in all of them,
# and how often it gave up waiting for an acknowledgement.
#
#     rack.sh FLITCAST > rack.csv     (root; builds and removes the network lab)
set -euo pipefail
flitcast=$(realpath "$1") lab=$(dirname "$(readlink -f "$0")")/../../lab
"$lab/up" --tree star:16 --layout rack --rate 20mbit --flitcast "$flitcast" > /dev/null
trap '"$lab/down" > /dev/null' EXIT
resent() { for i in {0..15}; do ip netns exec fc$i awk '/^Tcp: [0-9]/ { print $13 }' /proc/net/snmp; done | paste -sd+ | bc; }
timeouts() {
    for i in {0..15}; do
        ip netns exec fc$i awk '/^TcpExt:/ && !n { n = split($0, names) ; next }
            /^TcpExt:/ { for (i = 1; i <= n; i++) if (names[i] == "TCPTimeouts") print $i }' /proc/net/netstat
    done | paste -sd+ | bc
}
echo algorithm,kib,rounds,median_ms,times_the_bound,segments_sent_again,timeouts
for kib in 16 64 256; do
    rounds=$((kib == 16 ? 9 : 5))
    for algorithm in rounds at-once; do
        before=$(resent) timed_out=$(timeouts)
        took=$("$flitcast" exchange --cluster /run/flitcast-lab/cluster.toml --size ${kib}KiB \
            --algorithm $algorithm --rounds $rounds --format json | jq .round.measured_us.median)
        # Bytes of 15 messages in frames: 1448 of 1514 are payload.
        awk -v took="$took" -v kib=$kib -v a=$algorithm -v r=$rounds -v s=$(($(resent) - before)) \
            -v t=$(($(timeouts) - timed_out)) 'BEGIN {
            bound = 15 * kib * 1024 * 1514 / 1448 / 2.5e6 * 1000
            printf "%s,%d,%d,%.0f,%.3f,%d,%d\n", a, kib, r, took / 1000, took / 1000 / bound, s, t }'
    done
done
