#!/usr/bin/env bash
# How long large plans take, and their memory.
#
#     plans.sh FLITCAST > plans.txt
set -euo pipefail
flitcast=$(realpath "$1")
cd "$(mktemp --directory)"
python3 -c '
import random
random.seed(1)
for i in range(256):
    print(",".join("0" if i == j else str(random.randint(0, 10**6)) for j in range(256)))' > m.csv
plan() {
    /usr/bin/time --format="%e s, %M KiB: plan $*" "$flitcast" plan "$@" --summary 2>&1 > /dev/null
}
plan broadcast --tree kary:2:1000000 --size 100
plan scatter --tree kary:2:1000000 --lengths equal:3 --from P77
plan gossip --network ring:729 --lengths equal:1
plan gossip --network torus:27x27 --lengths equal:2
plan exchange --network complete:256 --matrix m.csv --algorithm rounds
plan gossip --tree star:1000 --lengths equal:1
plan gossip --tree kary:2:1000 --lengths equal:1
plan exchange --tree star:1000 --lengths each:1
