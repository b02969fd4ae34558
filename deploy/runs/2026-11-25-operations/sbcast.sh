#!/usr/bin/env bash
# One file of 1 GiB to 8 nodes of deploy/lab/slurm, by Slurm's sbcast and by flitcast, by turns.
#
#     sbcast.sh FLITCAST REPETITIONS > sbcast.csv
#
# as root, with slurm-wlm and munge. Each node writes into a folder of its own; what arrives is compared.
set -euo pipefail
flitcast=$(realpath "$1") repetitions=$2
slurm=$(dirname "$(readlink -f "$0")")/../../lab/slurm
NODES=8
work=$(mktemp --directory)
export SLURM_CONF=/run/flitcast-slurm/slurm.conf
"$slurm" up $NODES > /dev/null
trap '"$slurm" down > /dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/target"
head -c 1G /dev/urandom > "$work/in"
# Its own folder stands where all are asked to write.
for ((node = 1; node <= NODES; node++)); do
    mkdir -p "$work/out/n$node"
    pid=$(cat "/run/flitcast-slurm/slurmd.n$node.pid")
    kill "$pid"
    while kill -0 "$pid" 2> /dev/null; do sleep 0.1; done
    nsenter --net="/run/netns/fcslurm$node" unshare --mount sh -c \
        "mount --bind $work/out/n$node $work/target && exec slurmd -f $SLURM_CONF -N n$node"
done
until [[ $(sinfo --noheader --states=idle --format=%D) == "$NODES" ]]; do sleep 0.2; done
cat > "$work/job" <<JOB
#!/bin/bash
"$flitcast" ca init "$work/keys" --pes \$SLURM_NTASKS > /dev/null
srun --overlap --kill-on-bad-exit=0 --wait=0 "$flitcast" node --join slurm --stay --credentials "$work/keys" &
with_sbcast() { sbcast --force "$work/in" "$work/target/copy"; }
with_flitcast() {
    "$flitcast" broadcast --cluster slurm --credentials "$work/keys" --algorithm "\$1" --input "$work/in" \
        --output "$work/target" --force > "$work/report" 2>&1
}
measure() {
    local name=\$1 copy=\$2 began
    shift 2
    sync
    began=\$EPOCHREALTIME
    "\$@" || { cat "$work/report"; exit 1; }
    awk -v name="\$name" -v a="\$began" -v b="\$EPOCHREALTIME" 'BEGIN { printf "%s,%.2f\n", name, b - a }'
    for ((node = 1; node <= $NODES; node++)); do cmp "$work/in" "$work/out/n\$node/\${copy/NODE/\$node}" >&2; done
}
echo way,seconds
for ((repetition = 1; repetition <= $repetitions; repetition++)); do
    measure sbcast copy with_sbcast
    measure "flitcast path" pNODE with_flitcast path
    measure "flitcast kary:2" pNODE with_flitcast kary:2
done
scancel \$SLURM_JOB_ID
JOB
# Task 0 has the file and task 1 is on its node, so each node gets a copy.
sbatch --quiet --wait --nodes=$NODES --ntasks=$((NODES + 1)) --overcommit --chdir="$work" \
    --output="$work/log" "$work/job" || true
cat "$work/log"
