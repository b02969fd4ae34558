# MOST hosts on one switch, for measurements: network namespaces, each with an OpenSSH server and a home
# of its own, $work/homeN, at 10.119.0.(N+1); this machine is 10.119.0.254. To be sourced, as root, with
# iproute2 and openssh-server. `rate` is that of this machine's way out to them, as tc says it (100mbit);
# without one it is not shaped. $work/ssh_config leads to them.
work=$(mktemp --directory)

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
Subsystem sftp internal-sftp
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
    until grep --quiet --no-messages "listening on 0.0.0.0" "$work/log$host"; do :; done
done
