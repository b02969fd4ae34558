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
work=$(mktemp --directory)
# HOSTS in the environment says other numbers of hosts, up to this.
MOST=32

clean() {
    for ((host = 0; host < MOST; host++)); do
        ip netns pids "fcsc$host" 2>/dev/null | xargs --no-run-if-empty kill -KILL || true
        ip netns del "fcsc$host" 2>/dev/null || true
    done
    ip netns del fcsc-switch 2>/dev/null || true
    ip link del fcsc 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM

for key in host user; do ssh-keygen -q -t ed25519 -N '' -f "$work/$key"; done
cat >"$work/sshd_config" <<END
HostKey $work/host
AuthorizedKeysFile $work/user.pub
StrictModes no
UsePAM no
PidFile none
END
echo 'root:*:19000:0:99999:7:::' >"$work/shadow"
echo "10.119.0.* $(cat "$work/host.pub")" >"$work/known_hosts"
cat >"$work/ssh_config" <<END
Host *
  User root
  IdentityFile $work/user
  IdentitiesOnly yes
  UserKnownHostsFile $work/known_hosts
END
ip netns add fcsc-switch
ip -n fcsc-switch link add bridge type bridge stp_state 0 mcast_snooping 0
ip -n fcsc-switch link set bridge up
ip link add fcsc type veth peer name out netns fcsc-switch
ip address add 10.119.0.254/24 dev fcsc
ip link set fcsc up
ip -n fcsc-switch link set out master bridge up
[[ -z $rate ]] || tc qdisc add dev fcsc root tbf rate "$rate" burst 64kb latency 50ms
for ((host = 0; host < MOST; host++)); do
    ip netns add "fcsc$host"
    ip -n "fcsc$host" link set lo up
    ip -n fcsc-switch link add "h$host" type veth peer name eth0 netns "fcsc$host"
    ip -n fcsc-switch link set "h$host" master bridge up
    ip -n "fcsc$host" address add "10.119.0.$((host + 1))/24" dev eth0
    ip -n "fcsc$host" link set eth0 up
    mkdir "$work/home$host"
    ip netns exec "fcsc$host" unshare --mount sh -c "mount --bind $work/home$host /root \
        && mount --bind $work/shadow /etc/shadow && mount -t tmpfs tmpfs /run \
        && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f $work/sshd_config" \
        2>"$work/log$host" </dev/null &
    until grep --quiet 'listening on 0.0.0.0' "$work/log$host"; do :; done
done

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
