#!/usr/bin/env bash
# Makes one mistake after the other in a copy of the program, and sees that the storm finds each:
#
#     tests/mistakes.sh [SEEDS [WORD]]
#
# What runs in the storm is what ships, so a mistake in the node's driver, in the round, in the
# conductor or in the rules of a retry has to show there. Each takes a build of what depends on it;
# with WORD, only those are made whose names have it.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-1000} word=${2:-}
copy=$(mktemp -d)
trap 'git worktree remove --force "$copy"' EXIT
git worktree add --quiet --detach "$copy" HEAD
# Built quickly: the storm takes seconds in any case.
export CARGO_TARGET_DIR=$PWD/target/mistakes CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false
missed=0

# mistake NAME FILE RIGHT WRONG: RIGHT stands once in FILE.
mistake() {
    local name=$1 file=$2
    [[ $name == *"$word"* ]] || return 0
    git -C "$copy" checkout --quiet .
    RIGHT=$3 WRONG=$4 perl -0pi -e '
        my ($right, $wrong) = @ENV{qw(RIGHT WRONG)};
        my $times = () = /\Q$right\E/g;
        die "`$right` stands $times times in $ARGV\n" unless $times == 1;
        s/\Q$right\E/$wrong/;
    ' "$copy/$file"
    cargo build --quiet --manifest-path "$copy/Cargo.toml" -p flitcast-tests --bin storm
    local out
    if out=$("$CARGO_TARGET_DIR/debug/storm" --seeds "$seeds" 2> /dev/null); then
        echo "MISSED  $name"
        missed=1
    else
        local found first
        found=$(awk '$1 == "findings" { print $2 }' <<< "$out")
        first=$(grep -m 1 '^  seed' <<< "$out" | cut -c 3-)
        echo "found   $name: $found of $seeds seeds; $first"
    fi
}

mistake "driver: what becomes visible is not passed on" node/src/round.rs \
    'Heard::Committed(message) => round.handle_committed(now, message),' \
    'Heard::Committed(_) => {}'
mistake "driver: a round that is given up is not settled" node/src/rounds.rs \
    'io.settle(round).await;' ''
mistake "driver: a frame is passed on to where it came from" node/src/round.rs \
    'io.forward(from, to).await?;' \
    'io.forward(from, if to == from { to } else { from }).await?;'
mistake "round: no digest is verified" proto/src/round/incoming.rs \
    'ours.filter(|ours| Some(*ours) != theirs)' \
    'ours.filter(|_| false)'
mistake "round: a frame of an earlier round is none" proto/src/round/incoming.rs \
    'RoundId(0) < round && round < self.id' 'round < RoundId(0)'
mistake "round: a message is whole one flit too early" proto/src/round/outgoing.rs \
    'let is_last = offset + payload.len() as u64 == message.bytes;' \
    'let is_last = offset == 0;'
mistake "conductor: what came is taken for delivered" coordinator/src/rounds/conductor/end.rs \
    'Some((_, true)) => delivered.push(delivery),' 'Some(_) => delivered.push(delivery),'
mistake "conductor: a round is over when P0 says so" coordinator/src/rounds/conductor/round.rs \
    'pes.filter(|pe| self.last_reports[pe.index()].is_none())' 'pes.filter(|_| false)'
mistake "conductor: nobody is told that a round is given up" coordinator/src/rounds/conductor/end.rs \
    'self.say(pe, ToPe::Abort { round, reason });' 'let _ = (pe, round, reason);'
mistake "retry: what was delivered is sent again" coordinator/src/retry/progress.rs \
    'left_out: self.delivered.iter().copied().collect(),' 'left_out: Vec::new(),'
exit "$missed"
