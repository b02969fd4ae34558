#!/usr/bin/env bash
# How long it takes until a program is on all hosts that lack it and a round is done: copied to
# each from here, as FLITCAST_BEFORE does, and over the tree. The hosts are network namespaces
# on one switch, each with an OpenSSH server and a home of its own.
#   run.sh FLITCAST_BEFORE FLITCAST [REPETITIONS [RATE]]
# as root, with iproute2 and openssh-server. RATE is that of this machine's way out to them, as
# tc says it (100mbit); without one it is not shaped.
set -euo pipefail
before=$(readlink -f "$1") after=$(readlink -f "$2") repetitions=${3:-3} rate=${4:-}
here=$(dirname "$(readlink -f "$0")")
# HOSTS in the environment says other numbers of hosts, up to this.
MOST=32
# shellcheck source=deploy/lab/ssh-hosts.sh
source "$here/../../lab/ssh-hosts.sh"

# cluster HOSTS DIVISOR: P_i is below P_(i/DIVISOR), or below the one before it.
cluster() {
    printf 'coordinator = "10.119.0.254"\n[launch]\nkind = "ssh"\nconfig = "%s"\n' "$work/ssh_config"
    for ((pe = 0; pe < $1; pe++)); do
        printf '[[pe]]\nname = "pe %d"\nssh = "10.119.0.%d"\naddress = "10.119.0.%d"\n' \
            "$pe" $((pe + 1)) $((pe + 1))
        ((pe == 0)) || printf 'parent = "pe %d"\n' $(($2 ? (pe - 1) / $2 : pe - 1))
    done
}

rows=$here/copies${rate:+-$rate}.csv
echo "tree,hosts,way,repetition,launch_ms" >"$rows"
for hosts in ${HOSTS:-8 16 32}; do
    for tree in kary path; do
        cluster "$hosts" "$([[ $tree == path ]] && echo 0 || echo 2)" >"$work/$tree.toml"
        for ((repetition = 1; repetition <= repetitions; repetition++)); do
            for way in before after; do
                rm -rf "$work"/home*/.cache
                launch=$("${!way}" scatter --cluster "$work/$tree.toml" --size 1KiB --format json |
                    sed -n 's/.*"launch_us": \([0-9]*\).*/\1/p')
                echo "$tree,$hosts,$way,$repetition,$((launch / 1000))" | tee --append "$rows" >&2
            done
        done
    done
done
