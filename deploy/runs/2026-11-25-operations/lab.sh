#!/bin/bash
# An exchange and a gossip over a rack of N hosts at RATE, whose switch holds 16 KiB for each host, where
# receivers call (turns) and where everybody sends as soon as it can (eager):
#     lab.sh FLITCAST RATE N SIZE..
# SIZE for each of the others; five rounds each. The bound is what a host's link takes for all that it
# sends: frames of 1514 bytes have 1448 of payload.
set -e
program=$1 rate=$2 n=$3; shift 3
cd "$(dirname "$0")/../../.."
deploy/lab/up --tree star:$n --layout rack --rate ${rate}mbit > /dev/null
trap 'deploy/lab/down > /dev/null' EXIT
lab=/run/flitcast-lab/cluster.toml
for size in "$@"; do
    for way in "exchange rounds turns" "exchange shifts turns" "exchange rounds eager" "gossip direct turns" "gossip direct eager" "gossip circulate -"; do
        set -- $way
        pacing="--pacing $3"
        [ $3 = - ] && pacing=
        $program $1 --cluster $lab --algorithm $2 $pacing --size $size --rounds 5 --format json 2> /dev/null |
            python3 -c '
import json, sys
size, rate, pacing = sys.argv[1:]
report = json.load(sys.stdin)
round, pes = report["round"], report["pes"]
took, predicted = round["measured_us"]["median"] / 1e3, round["predicted_us"] / 1e3
link = max(pe["bytes"] for pe in pes) * 1514 / 1448 * 8 / (float(rate) * 1e6) * 1e3
sent_again = sum(pe.get("retransmitted_packets", 0) for pe in pes)
print("{} Mbit/s {:9}{:10}{:6}{:>3} PEs {:>8}: {:8.1f} ms, {:6.3f} of the bound; predicted {:8.1f} ms, {:+6.1f} %; {} packets sent again".format(
    rate, report["operation"], report["algorithm"], pacing, len(pes), size, took, took / link, predicted,
    (predicted / took - 1) * 100, sent_again))' $size $rate $3
    done
done
