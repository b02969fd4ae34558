#!/usr/bin/env bash
# Counts the instructions of the functions that hot_path.rs measures, each called once for each of its
# cases, by valgrind's callgrind: neither the load of the machine nor its speed changes them.
#   instructions.sh [PROFILE]     as optimised in a profile of Cargo.toml, like test [default: bench]
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(cargo bench --quiet --workspace --bench hot_path --no-run --profile "${1:-bench}" \
    --message-format json | grep -o '"executable":"[^"]*hot_path[^"]*"' | cut --delimiter '"' --fields 4)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
printf '%-14s %14s\n' function instructions
for function in write_flit read_flit hash_flit pass_token plan_scatter step_gather step_gossip run_storm; do
    valgrind --tool=callgrind --callgrind-out-file="$out/$function" --collect-atstart=no \
        --toggle-collect="hot_path::$function*" "$program" --test "$function" > "$out/said" 2>&1 ||
        { cat "$out/said" >&2; exit 1; }
    printf '%-14s %14s\n' "$function" "$(awk '/^(summary|totals):/ { print $2; exit }' "$out/$function")"
done
