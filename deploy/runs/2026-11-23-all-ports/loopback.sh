#!/usr/bin/env bash
# Gossip and exchange over all links of a PE at once and over one at a time, on shaped links of
# 20 Mbit/s and 1 ms on one machine: predicted and measured, five rounds each.
#
#     loopback.sh FLITCAST > loopback.csv
set -euo pipefail
flitcast=$1
link=rate=20mbit,latency=1ms
echo operation,site,algorithm,size,ports,predicted_us,measured_us,error_pct
while read -r operation site algorithm size; do
    for ports in single multi; do
        # shellcheck disable=SC2086
        "$flitcast" $operation ${site/=/ } --algorithm "$algorithm" --size "$size" --link $link \
            --ports $ports --rounds 5 --format json |
            jq -r --arg row "$operation,${site#--*=},$algorithm,$size,$ports" '.round |
                "\($row),\(.predicted_us),\(.measured_us.median),\((.predicted_us / .measured_us.median - 1) * 1000 | round / 10)"'
    done
done <<'CASES'
gossip --network=ring:9 approach1 256KiB
gossip --network=ring:8 halves 256KiB
gossip --network=array:8 approach1 128KiB
gossip --network=mesh:3x3 approach1 256KiB
gossip --network=torus:3x3 approach1 256KiB
gossip --network=torus:3x4 approach2:1 100KiB
gossip --network=torus:3x3 cubgos 256KiB
gossip --tree=kary:2:9 flood 256KiB
gossip --tree=path:6 flood 300KiB
gossip --tree=star:8 flood 64KiB
exchange --tree=kary:2:9 tree 64KiB
exchange --tree=path:6 tree 100KiB
CASES
