#!/bin/bash
# gossip and exchange over a rack of N hosts at 100 Mbit/s, whose switch holds 16 KiB for each host:
#     lab.sh FLITCAST N SIZE..
# SIZE for each of the others; five rounds each. The bound is what a host's link takes for all that it
# sends: frames of 1514 bytes have 1448 of payload.
set -e
program=$1 n=$2; shift 2
cd "$(dirname "$0")/../../.."
deploy/lab/up --tree star:$n --layout rack --rate 100mbit > /dev/null
trap 'deploy/lab/down > /dev/null' EXIT
lab=/run/flitcast-lab/cluster.toml
for size in "$@"; do
    for way in "exchange rounds" "exchange shifts" "gossip circulate" "gossip dissemination" "gossip direct"; do
        set -- $way
        $program $1 --cluster $lab --algorithm $2 --size $size --rounds 5 --format json 2> /dev/null |
            python3 -c '
import json, sys
report = json.load(sys.stdin)
round, pes = report["round"], report["pes"]
took, predicted = round["measured_us"]["median"] / 1e3, round["predicted_us"] / 1e3
link = max(pe["bytes"] for pe in pes) * 1514 / 1448 * 8 / 100e6 * 1e3
sent_again = sum(pe.get("retransmitted_packets", 0) for pe in pes)
print("{:9} {:14}{:>3} PEs {:>8}: {:8.1f} ms, {:.3f} of the bound; predicted {:8.1f} ms, {:+.1f} %; {} packets sent again".format(
    report["operation"], report["algorithm"], len(pes), sys.argv[1], took, took / link, predicted,
    (predicted / took - 1) * 100, sent_again))' $size
    done
done
