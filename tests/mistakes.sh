#!/usr/bin/env bash
# Makes one mistake after the other in a copy of the program, and checks that the storm finds each:
#
#     tests/mistakes.sh [SEEDS [WORD]]
#     tests/mistakes.sh --check          # only that each mistake can be made
#
# The storm runs the code that ships, so it has to find a mistake in the node's driver, the round, the
# roles, the parts of messages, held messages, the controller or the rules of a retry. It has no files
# and no switches: mistakes that show only there name the tests that have to find them. Each mistake
# takes a build of what depends on it; with WORD, only those are made whose names contain it.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=${1:-1000} word=${2:-}
if [ "$seeds" = --check ]; then
    copy=.
else
    copy=$(mktemp -d)
    trap 'git worktree remove --force "$copy"' EXIT
    git worktree add --quiet --detach "$copy" HEAD
fi
# Built quickly: the storm takes seconds in any case.
export CARGO_TARGET_DIR=$PWD/target/mistakes CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false
missed=0

# mistake NAME FILE RIGHT WRONG [TESTS...]: RIGHT is in FILE once; the arguments TESTS of `cargo test`
# select the tests that fail instead of the storm.
mistake() {
    local name=$1 file=$2 right=$3 wrong=$4 tests=("${@:5}")
    [[ $name == *"$word"* ]] || return 0
    local before
    [ "$copy" = . ] || git -C "$copy" checkout --quiet .
    before=$(<"$copy/$file")
    if [[ $before != *"$right"* || ${before#*"$right"} == *"$right"* ]]; then
        echo "$name: not once in $file: $right" >&2
        exit 1
    fi
    [ "$copy" != . ] || return 0
    printf '%s%s%s\n' "${before%%"$right"*}" "$wrong" "${before#*"$right"}" > "$copy/$file"
    if ((${#tests[@]})); then
        cargo test --quiet --manifest-path "$copy/Cargo.toml" --no-run "${tests[@]}"
        if cargo test --quiet --manifest-path "$copy/Cargo.toml" "${tests[@]}" &> /dev/null; then
            echo "MISSED  $name"
            missed=1
        else
            echo "found   $name: cargo test ${tests[*]}"
        fi
        return
    fi
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
    'round.handle_committed(now, message, digest);' 'let _ = (message, digest);'
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
mistake "round: a message is whole one flit too early" proto/src/round/mod.rs \
    'let digest = piece.is_last().then(' \
    'let digest = is_first.then('
mistake "controller: what came is taken for delivered" coordinator/cluster/src/rounds/controller/end.rs \
    'Some(Arrival {
                    delivered: true,' 'Some(Arrival {'
mistake "controller: a round is over when P0 says so" coordinator/cluster/src/rounds/controller/round.rs \
    'pes.filter(|pe| self.last_reports[pe.index()].is_none())' 'pes.filter(|_| false)'
mistake "controller: nobody is told that a round is given up" coordinator/cluster/src/rounds/controller/end.rs \
    'self.send_command(pe, ToPe::Abort { round, reason });' 'let _ = (pe, round, reason);'
mistake "retry: what was delivered is sent again" coordinator/cluster/src/retry/progress.rs \
    'left_out: self.delivered.iter().copied().collect(),' 'left_out: Vec::new(),'
mistake "list: what is to be sent on is not held" proto/src/ops/static_schedule_role.rs \
    'hold: self.sends_of.contains_key(&message.id),' 'hold: false,'
mistake "list: a held flit is forgotten ahead of its last crossing" proto/src/ops/static_schedule_role.rs \
    'later_from = flits.saturating_mul(self.flit_bytes);' \
    'later_from = flits.saturating_add(1).saturating_mul(self.flit_bytes);'
mistake "list: a part begins where the message does" proto/src/ops/static_schedule_role.rs \
    'let flits = [hop.offset, hop.offset.saturating_add(hop.flits)];' \
    'let flits = [0, hop.offset.saturating_add(hop.flits)];'
mistake "calls: a call is not counted" proto/src/ops/receive_queue.rs \
    '*self.received.entry(receiver).or_default() += 1;' ''
mistake "calls: one call is for all" proto/src/ops/receive_queue.rs \
    'take_one(&mut self.received, receiver);' 'let _ = receiver;' -p flitcast-proto --lib ops::receive_queue
mistake "calls: what came is not counted" proto/src/ops/receive_queue.rs \
    'self.due_bytes = self.due_bytes.saturating_sub(bytes);' 'let _ = bytes;' -p flitcast-proto --lib ops::receive_queue
mistake "calls: a call 64 KiB early" proto/src/ops/receive_queue.rs \
    'self.due_bytes.saturating_sub(self.partial_bytes) <= self.ahead_bytes' \
    'self.due_bytes.saturating_sub(self.partial_bytes) <= self.ahead_bytes + (64 << 10)' \
    -p flitcast-proto --lib ops::receive_queue
mistake "parts: a flit is stored ahead of its turn" node/src/parts.rs \
    'if self.turns.peek() != Some(&place) || received > written {' 'if received > written {'
mistake "parts: a message is durable ahead of its last part" node/src/parts.rs \
    'if assembly.uncommitted == 0 {' 'if assembly.uncommitted < 2 {'
mistake "parts: a part that is given up waits for ever" node/src/parts.rs \
    'assembly.lock().await.done = None;' 'let _ = assembly;'
mistake "parts: a part of an earlier round is taken up" node/src/parts.rs \
    'pub fn forget(&self) {
        self.take_all();' 'pub fn forget(&self) {'
mistake "parts: the first tree gets the short flit" proto/src/ops/parts.rs \
    'trees.max_by_key(|at| flits[*at])' 'trees.min_by_key(|at| *at)'
mistake "held: the frame behind the next one is sent" node/src/held.rs \
    'let place = place.checked_sub(frames.discarded)?;' \
    'let place = place.checked_sub(frames.discarded)? + 1;'
mistake "held: memory keeps an earlier frame" node/src/held.rs \
    'body.clear();' ''
mistake "held: memory is never counted down" node/src/held.rs \
    'self.in_memory -= body.len();' '' -p flitcast-node --lib held
mistake "held: frames are written over each other" node/src/held.rs \
    'file.write_all_at(&body, at)' 'file.write_all_at(&body, 0)' -p flitcast-node --lib held
mistake "held: the file has a name" node/src/held.rs \
    'tempfile::tempfile_in(folder)' \
    'File::options().read(true).write(true).create(true).truncate(true).open(folder.join(".flitcast-held"))' \
    -p flitcast-node --lib held
exit "$missed"
