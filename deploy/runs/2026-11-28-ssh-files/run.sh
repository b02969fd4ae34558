#!/usr/bin/env bash
# Files for eight hosts over ssh, by several programs in turns:
#   run.sh FLITCAST [ROUNDS [WORKLOAD,..]]
# as root, with iproute2, openssh-server, parallel and rsync, and 20 GB below $TMPDIR.
set -euo pipefail
rate=
here=$(dirname "$(readlink -f "$0")")
flitcast=$(readlink -f "$1")
MOST=8
# shellcheck source=deploy/lab/ssh-hosts.sh
source "$here/../../lab/ssh-hosts.sh"
mkdir "$work/bin" "$work/own"
printf '#!/bin/sh\nexec /usr/bin/ssh -F %s/ssh_config "$@"\n' "$work" >"$work/bin/ssh"
chmod +x "$work/bin/ssh"
PATH=$work/bin:$PATH HOME=$work/own SHELL=/bin/sh \
    "$here/move.py" "$work" "$flitcast" "$here/files.csv" "${2:-3}" "${3:-}"
