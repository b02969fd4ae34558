#!/usr/bin/env bash
# A folder of 2,000 files (200 MB) to 8 hosts of the lab, the same for all, as people copy it now and
# with flitcast, by turns.
#
#     copies.sh FLITCAST REPETITIONS RATE > copies.csv
#
# as root, with what deploy/lab wants, openssh-server, clustershell, rsync and jq. Each host writes
# into a folder of its own. Seconds are those of the whole command; what arrives is compared.
set -euo pipefail
flitcast=$(realpath "$1") repetitions=$2 rate=$3
lab=$(dirname "$(readlink -f "$0")")/../../lab
HOSTS=8
work=$(mktemp --directory)
source_host=(nsenter --net=/run/netns/fc0)
finish() {
    pkill -F "$work/sshd.pids" 2>/dev/null || cat "$work"/sshd*.pid 2>/dev/null | xargs -r kill || true
    "$lab/down" > /dev/null || true
    rm -rf "$work"
}
"$lab/up" --layout rack --tree "star:$((HOSTS + 1))" --rate "$rate" --queue 100000 --flitcast "$flitcast" > /dev/null
trap finish EXIT

mkdir -p /run/sshd "$work/in" "$work/target"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
for ((file = 1; file <= 2000; file++)); do head -c 100000 /dev/urandom > "$work/in/f$file"; done
for ((host = 1; host <= HOSTS; host++)); do
    mkdir -p "$work/out/p$host"
    # Its own folder stands where all are asked to write.
    nsenter --net="/run/netns/fc$host" unshare --mount sh -c "mount --bind $work/out/p$host $work/target &&
        exec /usr/sbin/sshd -f /dev/null -o ListenAddress=198.18.0.$((host + 1)) -o HostKey=$work/host \
        -o PidFile=$work/sshd$host.pid -o AuthorizedKeysFile=$work/user.pub -o StrictModes=no -o UsePAM=no \
        -o UseDNS=no -o PermitRootLogin=prohibit-password -o 'Subsystem=sftp internal-sftp'"
    printf 'Host fc%s\n  HostName 198.18.0.%s\n' "$host" "$((host + 1))" >> "$work/ssh_config"
done
cat >> "$work/ssh_config" <<CONFIG
Host *
  User root
  IdentityFile $work/user
  UserKnownHostsFile $work/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
CONFIG
for ((host = 1; host <= HOSTS; host++)); do "${source_host[@]}" ssh -F "$work/ssh_config" "fc$host" true; done

with_clush() {
    "${source_host[@]}" clush --quiet --options="-F $work/ssh_config" -w "fc[1-$HOSTS]" --copy "$work/in" --dest "$work/target/"
}
with_rsync() {
    local host
    for ((host = 1; host <= HOSTS; host++)); do
        "${source_host[@]}" rsync --archive --rsh="ssh -F $work/ssh_config" "$work/in" "fc$host:$work/target/"
    done
}
# The copy of P1 is out/p1/in here as well.
with_flitcast() {
    "$flitcast" broadcast --cluster /run/flitcast-lab/cluster.toml --algorithm "$1" --input "$work/in" \
        --output "$work/new" > "$work/report"
    local host
    for ((host = 1; host <= HOSTS; host++)); do mv "$work/new/p$host" "$work/out/p$host/in"; done
}
measure() {
    local name=$1 began host
    shift
    mkdir -p "$work/old"
    # Removing files makes those slow that are made next.
    for ((host = 1; host <= HOSTS; host++)); do
        [[ ! -e $work/out/p$host/in ]] || mv "$work/out/p$host/in" "$work/old/$EPOCHREALTIME"
    done
    sync
    began=$EPOCHREALTIME
    "$@"
    awk -v name="$name" -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%s,%.2f\n", name, b - a }'
    for ((host = 1; host <= HOSTS; host++)); do diff -rq "$work/in" "$work/out/p$host/in" >&2; done
}
echo way,seconds
for ((repetition = 1; repetition <= repetitions; repetition++)); do
    measure "flitcast path" with_flitcast path
    measure "clush --copy" with_clush
    measure "flitcast kary:2" with_flitcast kary:2
    measure "rsync one by one" with_rsync
    measure "flitcast auto" with_flitcast auto
done
