#!/usr/bin/env bash
# A command on 200 shards of 1 MB on 8 hosts, one at a time on each, beside GNU parallel: shards go there,
# checksums come back. A command takes 0 to 0.96 s, by the name of its shard.
#   run.sh FLITCAST [REPETITIONS]
# as root, with bc, iproute2, openssh-server, parallel and rsync.
set -euo pipefail
flitcast=$(readlink -f "$1") repetitions=${2:-3} rate=
here=$(dirname "$(readlink -f "$0")")
MOST=8
# shellcheck source=deploy/lab/ssh-hosts.sh
source "$here/../../lab/ssh-hosts.sh"

cd "$work"
mkdir bin shards own
printf '#!/bin/sh\nexec /usr/bin/ssh -F %s/ssh_config "$@"\n' "$work" >bin/ssh
chmod +x bin/ssh
export PATH=$work/bin:$PATH HOME=$work/own SHELL=/bin/sh
for ((shard = 0; shard < 200; shard++)); do head -c 1000000 /dev/urandom >"shards/s$shard"; done
# shellcheck disable=SC2016
task='sleep 0.$(printf "%02d" $(($(printf %s "$FLITCAST_SHARD" | cksum | cut -d " " -f 1) % 97)))'
echo 'way,repetition,seconds' | tee "$here/map.csv"
row() { echo "$1,$2,$(bc <<<"scale=2; ($(date +%s%N) - $3) / 1000000000" | sed 's/^\./0./')" | tee --append "$here/map.csv"; }
for ((repetition = 1; repetition <= repetitions; repetition++)); do
    rm -rf "$work/out" shards/*.sum
    began=$(date +%s%N)
    "$flitcast" map -q -w "10.119.0.[1-8]" --work /root/work --input "$work/shards" --output "$work/out" -- sh -c "$task; exec sha256sum"
    row flitcast "$repetition" "$began"
    began=$(date +%s%N)
    printf '10.119.0.%d\n' 1 2 3 4 5 6 7 8 >hosts
    (cd shards && ls | parallel --will-cite --jobs 1 --sshloginfile ../hosts --transferfile {} --return {}.sum --cleanup \
        "FLITCAST_SHARD={}; $task; sha256sum <{} >{}.sum")
    row parallel "$repetition" "$began"
    for shard in shards/*.sum; do
        cmp "$shard" "out/$(basename "$shard" .sum)/stdout"
    done
done
