#!/usr/bin/env bash
# A day's jobs, command after command with what each prints, so that a reader sees what a user sees:
#   walk.sh FLITCAST > walk.txt
# Needs tmux and script. Exit statuses other than 0 are shown.
set -uo pipefail
flitcast=$(realpath "$1")
folder=$(mktemp -d)
trap '"$flitcast" down cluster.toml > /dev/null 2>&1; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export XDG_CACHE_HOME=$folder/cache XDG_RUNTIME_DIR=$folder/run
mkdir -m 700 run
mkdir bin && ln -s "$flitcast" bin/flitcast && PATH=$folder/bin:$PATH

part() { printf '\n======== %s\n' "$*"; }
# Shows and runs a command line.
try() {
    printf '\n$ %s\n' "$*"
    bash -c "$*" 2>&1 | sed -e "s|$folder|~|g"
    local status=${PIPESTATUS[0]}
    [ "$status" = 0 ] || echo "(exit status $status)"
}

part 'the costs of this machine are measured by the first command'
try 'flitcast scatter -n 8 --size 1KiB'

part '1: names'
for name in a b c d; do
    printf '[[pe]]\nname = "%s"\naddress = "localhost"\n' $name
    [ $name = a ] || echo 'parent = "a"'
done > cluster.toml
mkdir -p by-name/b by-name/c by-name/e by-number/p2
for entry in by-name/* by-number/*; do echo "for $entry" > $entry/text; done
try 'flitcast check cluster.toml'
try 'flitcast scatter --cluster cluster.toml --input by-name --output out'
mv by-name/e by-name/d
try 'flitcast scatter --cluster cluster.toml --input by-name --output out'
try 'ls out'
try 'flitcast scatter --cluster cluster.toml --input by-number --output other && ls other'
try 'flitcast gather --cluster cluster.toml --input out --output back --format json | jq -c ".pes[] | [.pe, .name, .host != null, .bytes]"'
sed -i 's/localhost/nowhere.invalid/' cluster.toml
try 'flitcast check cluster.toml'
sed -i 's/nowhere.invalid/localhost/' cluster.toml
printf '[launch]\nkind = "ssh"\n' | cat - cluster.toml > ssh.toml
try 'flitcast check ssh.toml | head -4'
try 'flitcast check --reach ssh.toml'
try 'flitcast scatter -w "node[01-03,07]" -x node02 --size 1MiB --dry-run'

part '2: no tree, and inputs of all kinds'
for shard in 1 2 3 4 5 6 7 8; do mkdir -p shards/p$shard odd/shard$shard; head -c 20000 /dev/zero > shards/p$shard/part; cp shards/p$shard/part odd/shard$shard; done
try 'flitcast scatter --tree kary:2:8 --input odd --output there'
try 'flitcast scatter --tree kary:2:8 --input shards --output there'
try 'flitcast scatter -n 8 --input shards --output there'
try 'flitcast scatter --input shards --output there'
try 'flitcast gather --input there --output again -q && diff -r shards again && echo equal'
try 'seq 10000 > numbers; flitcast scatter -n 3 --lines --input numbers --output lines -q; wc -l lines/*'
try 'flitcast scatter -n 3 --blocks 4KiB --input numbers --output blocks -q; wc -c blocks/*'
try 'flitcast scatter --split 5 --input - --output pieces -q < numbers; ls pieces'
try 'flitcast gather --input lines --output - -q | cmp - numbers && echo equal'

part '3: map'
mkdir jobs; for job in 1 2 3 4 5 6 7; do echo $job > jobs/job$job; done
try 'flitcast map -n 3 --input jobs --output done --joblog log -- sh -c "[ {} != job5 ] || { echo no licence >&2; exit 3; }; cat {}"'
try 'cat done/job5.failed/stderr; cat log'
try 'flitcast map -n 3 --input jobs --output done --joblog log --resume -- cat {}'
try 'ls done; cat done/job*/stdout'
try "flitcast map --tree kary:2:8 --spread --input shards --output sizes -q -- sh -c 'cat */part | wc -c' && cat sizes/*/stdout"
try 'flitcast map -h | grep -E -- "--(jobs|retries|halt|joblog|resume)"'

part '4: wildcards'
mkdir -p host/p{0,1,2}/var; for pe in 0 1 2; do echo log $pe > host/p$pe/var/app.log; echo no > host/p$pe/var/app.db; done
try 'flitcast gather --input "host/p*/var/*.log" --output logs -q; find logs -type f | sort'
try 'flitcast gather --input "host/p*/var/*.nothing" --output none'
try 'flitcast gather --input shards --include "*.log" --output none'

part '5: help'
try 'flitcast -h'
try 'for command in scatter gather broadcast gossip exchange map resume check up status watch down ca plan compare bench calibrate; do echo $command: $(flitcast $command -h | wc -l) lines of at most $(flitcast $command -h | wc -L) columns; done'
try 'flitcast gather -h'
try 'flitcast scater --size 1KiB'
try 'flitcast scatter -n 3 --sze 1KiB'

part '6: the screen'
try 'flitcast gather -n 3 --size 10KiB'
for width in 60 80 120; do
    try "COLUMNS=$width flitcast gather -n 20 --size 10KiB"
done
try 'flitcast gather -n 3 --size 10KiB -v'
try 'flitcast gather -n 3 --size 10KiB -q'
try 'flitcast gather -n 3 --size 10KiB --color always | head -4 | cat -v'
try 'flitcast up cluster.toml'
try 'flitcast status cluster.toml'
try 'flitcast scatter --cluster cluster.toml --size 10KiB'
printf '\n$ flitcast scatter -n 3 --size 100MiB --link rate=200mbit   (in a terminal of 60, 80 and 120 columns, after 3 s)\n'
for width in 60 80 120; do
    tmux -L walk$width new-session -d -x $width -y 12 "flitcast scatter -n 3 --size 100MiB --link rate=200mbit"
    sleep 3
    tmux -L walk$width capture-pane -p | sed '/^$/d'
    tmux -L walk$width kill-server
done
printf '\n$ flitcast watch   (the same)\n'
for width in 60 80 120; do
    flitcast scatter -n 3 --size 100MiB --link rate=200mbit -q &
    sleep 1
    tmux -L watch$width new-session -d -x $width -y 16 "flitcast watch"
    sleep 2
    tmux -L watch$width capture-pane -p | sed '/^$/d'
    tmux -L watch$width kill-server
    { kill -INT $!; wait $!; } 2> /dev/null
done
try 'flitcast down cluster.toml'

part '7: pictures (see the pages in the manual, and the tests overlap:: and browser::)'
for operation in scatter gather broadcast gossip exchange; do
    try "flitcast $operation -n 7 --size 20KiB --report $operation.html -q; grep -o 'title\":\"[^,]*' $operation.html | head -1; grep -c prefers-color-scheme $operation.html"
done
try 'flitcast plan exchange --network complete:4 --lengths each:1 --format svg > exchange.svg; grep -o "<title>[^<]*" exchange.svg | head -3; grep -c prefers-color-scheme exchange.svg'
