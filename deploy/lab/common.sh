# shellcheck shell=bash disable=SC2034
# What `up` and `down` share: the names of all that the lab is made of, and how it is
# taken away. Sourced by both, not run.

# Its presence says that a lab is up. The system empties /run at boot, as it forgets
# namespaces, and nobody but root can put anything there: the cluster file in it says
# what root runs.
STATE=/run/flitcast-lab
CLUSTER_FILE=$STATE/cluster.toml
# The namespaces that are the lab's, a line each, written before the first is made.
NAMESPACES=$STATE/namespaces
# The only interface outside the lab's namespaces: the coordinator's.
MANAGEMENT=fc-mgmt

fail() {
  echo "lab: $*" >&2
  exit 1
}

# Says what is missing on this machine, all at once.
check_machine() {
  local missing=()
  ((EUID == 0)) || missing+=("you are not root: network namespaces need it (sudo $0 ...)")
  local tool package
  while read -r tool package; do
    command -v "$tool" >/dev/null ||
      missing+=("there is no \`$tool\` here: Debian and Ubuntu have it in the package $package")
  done <<<'ip iproute2
tc iproute2'
  ((${#missing[@]} == 0)) || fail "$(printf '%s\n' "${missing[@]}")"
}

# Removes the lab, whole or half made. Fails if something of it stays.
remove_lab() {
  local namespace failed=0
  # Without the list, nothing was made yet.
  if [[ -e $NAMESPACES ]]; then
    if [[ -e /sys/class/net/$MANAGEMENT ]]; then
      ip link del dev "$MANAGEMENT" || failed=1
    fi
    while read -r namespace; do
      [[ -e /run/netns/$namespace ]] || continue
      ip netns del "$namespace" || failed=1
    done <"$NAMESPACES"
  fi
  ((failed == 0)) || return 1
  rm -rf "$STATE"
}
