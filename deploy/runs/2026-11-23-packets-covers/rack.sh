#!/bin/bash
# a broadcast of 128 MiB over a rack of N hosts at 100 Mbit/s, three rounds
#     rack.sh FLITCAST N ALGORITHM..
set -e
program=$1 n=$2; shift 2
cd "$(dirname "$0")/../../.."
deploy/lab/up --tree star:$n --layout rack --rate 100mbit --flitcast "$program" > /dev/null
trap 'deploy/lab/down > /dev/null' EXIT
lab=/run/flitcast-lab/cluster.toml
for algorithm in "$@"; do
    $program broadcast --cluster $lab --algorithm $algorithm --size 128MiB --rounds 3 --format json 2> /dev/null |
        python3 -c '
import json, sys
report = json.load(sys.stdin)
round = report["round"]
took, predicted = round["measured_us"]["median"] / 1e6, round["predicted_us"] / 1e6
# A frame of 1514 bytes has 1448 of payload.
link = (128 << 20) * 1514 / 1448 * 8 / 100e6
print("{:14} {:>3} PEs, flits of {:>7} B: {:6.2f} s, {:.3f} of what a link needs; predicted {:6.2f} s, {:+.1f} %".format(
    report["tree"], len(report["pes"]), report["flit_bytes"], took, took / link, predicted, (predicted / took - 1) * 100))'
done
