#!/bin/bash
# Processor time per byte and process of a chain of eight processes that pass 64 MiB on, beside plain
# processes with a buffer of 64 KiB and with splice(2) (`limit chain`, `limit splice`), in turns:
#
#     relay.sh FLITCAST LIMIT TURNS     (root: each command runs in a control group, which counts its time)
#
# The difference between 25 and 5 rounds leaves out how the processes start and end.
set -euo pipefail
flitcast=$1 limit=$2 turns=$3
# The first version of control groups has a folder for each resource.
group=/sys/fs/cgroup/cpuacct/flitcast-relay
[ -d /sys/fs/cgroup/cpuacct ] || group=/sys/fs/cgroup/flitcast-relay
mkdir "$group"
trap 'rmdir "$group"' EXIT
bytes=67108864

microseconds() {
    if [ -e "$group/cpuacct.usage" ]; then
        echo $(($(cat "$group/cpuacct.usage") / 1000))
    else
        awk '/^usage_usec/ { print $2 }' "$group/cpu.stat"
    fi
}

# used COMMAND...: microseconds of processor time.
used() {
    local before
    before=$(microseconds)
    (
        echo "$BASHPID" > "$group/cgroup.procs"
        exec "$@" > /dev/null 2>&1
    )
    until [ -z "$(cat "$group/cgroup.procs")" ]; do sleep 0.1; done
    echo $(($(microseconds) - before))
}

echo "  turn  flitcast  chain  splice   picoseconds of processor time per byte and process"
for ((turn = 1; turn <= turns; turn++)); do
    line=
    for what in flitcast chain splice; do
        for rounds in 5 25; do
            case $what in
                flitcast) us=$(used "$flitcast" scatter --tree path:8 --lengths "0,0,0,0,0,0,$bytes" --rounds $rounds) ;;
                *) us=$(used "$limit" $what 7 $bytes $rounds) ;;
            esac
            [ $rounds = 5 ] && few=$us || many=$us
        done
        line+=" $(((many - few) * 1000000 / 20 / 8 / bytes))"
    done
    # Words of a line.
    # shellcheck disable=SC2086
    printf '%6d%10d%7d%8d\n' $turn $line
done
