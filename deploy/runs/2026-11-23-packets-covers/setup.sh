#!/bin/sh
# A link on which each flit takes a millisecond beside its bytes: whether it is found, and what a message
# in packets takes down five such links beside what is predicted of it.
#     setup.sh FLITCAST
set -e
profile=$(mktemp)
link='--tree path:6 --link rate=100mbit,setup=1ms'
# shellcheck disable=SC2086
"$1" calibrate $link --output "$profile" 2>/dev/null | sed -n 3,14p
for packets in auto 4 16 64; do
    # shellcheck disable=SC2086
    "$1" scatter $link --profile "$profile" --lengths 0,0,0,0,256KiB --rounds 5 --packets $packets |
        grep -E 'round  |packets  '
done
