#!/usr/bin/env bash
# Different files to different hosts, as people copy them now and with flitcast, by turns: each
# of 8 hosts gets one of its own. The hosts are those of deploy/lab, on one switch.
#   run.sh [REPETITIONS [SIZE [RATE [CSV]]]]
# from a built checkout (cargo build --release, or $FLITCAST), as root, with deploy/lab's packages,
# openssh-server, clustershell and jq. 5 repetitions of 256 MiB at 1gbit take half an hour, and
# 5 GB below $TMPDIR. Nothing else should run beside it.
#
# Seconds are those of the whole command, CPU seconds those of the whole machine meanwhile:
# both ends, and the kernel that carries the frames. What arrives is compared by sha256.
set -euo pipefail
repetitions=${1:-5} size=${2:-256M} rate=${3:-1gbit}
here=$(dirname "$(readlink -f "$0")")
root=$here/../../..
flitcast=${FLITCAST:-$root/target/release/flitcast}
HOSTS=8
cluster=/run/flitcast-lab/cluster.toml
work=$(mktemp --directory)
rows=${4:-$here/copies.csv}
# The source's host, and where the others are reached.
source_host=(nsenter --net=/run/netns/fc0)
address() { echo "198.18.0.$(($1 + 1))"; }

servers=()
finish() {
    local server
    for server in "${servers[@]}"; do
        [[ ! -s $work/$server.pid ]] || kill "$(<"$work/$server.pid")" || true
    done
    "$root/deploy/lab/down" || true
    rm -rf "$work"
}
"$root/deploy/lab/up" --layout rack --tree "star:$((HOSTS + 1))" --rate "$rate" --flitcast "$flitcast" >/dev/null
trap finish EXIT
trap 'exit 130' INT TERM

# An sshd on each host, with keys of its own, as fast as sshd goes.
mkdir -p /run/sshd "$work/in"
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
for ((host = 1; host <= HOSTS; host++)); do
    servers+=("sshd$host")
    nsenter --net="/run/netns/fc$host" "$(command -v sshd || echo /usr/sbin/sshd)" -f /dev/null \
        -o "ListenAddress=$(address "$host")" -o "HostKey=$work/host" -o "PidFile=$work/sshd$host.pid" \
        -o "AuthorizedKeysFile=$work/user.pub" -o StrictModes=no -o UsePAM=no -o UseDNS=no \
        -o PermitRootLogin=prohibit-password -o "Subsystem=sftp internal-sftp"
    printf 'Host fc%s\n  HostName %s\n' "$host" "$(address "$host")" >>"$work/ssh_config"
    head -c "$size" /dev/urandom >"$work/in/fc$host"
done
cat >>"$work/ssh_config" <<CONFIG
Host *
  User root
  IdentityFile $work/user
  UserKnownHostsFile $work/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
CONFIG
(cd "$work/in" && sha256sum fc* >"$work/sums")
for ((host = 1; host <= HOSTS; host++)); do
    "${source_host[@]}" ssh -F "$work/ssh_config" "fc$host" true
done

# Another tree over the same hosts: the lab's file, with other parents.
clusters=("star")
cp "$cluster" "$work/star.toml"
for shape in kary:2 path; do
    parents=$("$flitcast" tree --tree "$shape:$((HOSTS + 1))" --format json | jq --raw-output '.parents | @tsv')
    awk -v parents="$parents" 'BEGIN { split(parents, parent, "\t") }
        /^\[\[pe]]/ { pe++ }
        /^parent = / { $0 = "parent = \"fc" parent[pe] "\"" } { print }' "$cluster" >"$work/$shape.toml"
    clusters+=("$shape")
done

with_scp_one_by_one() {
    local host
    for ((host = 1; host <= HOSTS; host++)); do
        "${source_host[@]}" scp -q -F "$work/ssh_config" "$work/in/fc$host" "fc$host:$work/out/fc$host"
    done
}
# at_once COMMAND..: with each host's number, all at the same time.
at_once() {
    local host pids=() pid
    for ((host = 1; host <= HOSTS; host++)); do
        "$@" "$host" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
}
scp_to() { "${source_host[@]}" scp -q -F "$work/ssh_config" "$work/in/fc$1" "fc$1:$work/out/fc$1"; }
# clush copies the same files to all its nodes: different ones are so many calls.
clush_to() {
    "${source_host[@]}" clush --quiet --options="-F $work/ssh_config" -w "fc$1" --copy "$work/in/fc$1" --dest "$work/out/fc$1"
}
with_scp_at_once() { at_once scp_to; }
with_clush() { at_once clush_to; }
with_flitcast() {
    "$flitcast" scatter --cluster "$work/$1.toml" --input "$work/in" --output "$work/out" >"$work/report"
}

cpu_s() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { print ($2 + $3 + $4 + $7 + $8) / hz }' /proc/stat; }
# measure NAME COMMAND..
measure() {
    local name=$1 began cpu took
    shift
    rm -rf "$work/out"
    mkdir "$work/out"
    sync
    cpu=$(cpu_s) began=$EPOCHREALTIME
    "$@"
    took=$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }')
    cpu=$(awk -v a="$cpu" -v b="$(cpu_s)" 'BEGIN { print b - a }')
    (cd "$work/out" && sha256sum --quiet --check "$work/sums") || { echo "$name: not what was sent" >&2; exit 1; }
    echo "$name,$repetition,$took,$cpu" | tee --append "$rows" >&2
}

echo "way,repetition,seconds,cpu_seconds" >"$rows"
for ((repetition = 1; repetition <= repetitions; repetition++)); do
    measure "scp one by one" with_scp_one_by_one
    measure "scp at once" with_scp_at_once
    measure "clush --copy" with_clush
    for name in "${clusters[@]}"; do measure "flitcast $name" with_flitcast "$name"; done
done

echo "$HOSTS files of $size, links of $rate; medians of $repetitions"
printf '%-16s %10s %10s %10s %10s\n' way seconds least greatest CPU
cut --delimiter=, --fields=1 "$rows" | sed 1d | awk '!seen[$0]++' | while read -r name; do
    column() { awk -F, -v name="$name" -v column="$1" '$1 == name { print $column }' "$rows" | sort --general-numeric-sort; }
    middle=$(((repetitions + 1) / 2))
    printf '%-16s %10.2f %10.2f %10.2f %10.2f\n' "$name" "$(column 3 | sed -n "${middle}p")" \
        "$(column 3 | head -n 1)" "$(column 3 | tail -n 1)" "$(column 4 | sed -n "${middle}p")"
done
