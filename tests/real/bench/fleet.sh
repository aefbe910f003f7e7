#!/usr/bin/env bash
# The benchmark of a fleet; called inside tests/private.sh by `./run bench fleet`: fleet.sh DIRECTORY_OF_PLUGINS
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
BENCH_DIR=$(mktemp -d /run/podwire-fleet.XXXXXX)
export BENCH_DIR BENCH_PLUGINS=$1
export ANSIBLE_PIPELINING=true ANSIBLE_DEPRECATION_WARNINGS=false ANSIBLE_LOCALHOST_WARNING=false
export ANSIBLE_CALLBACK_PLUGINS=$here/callback_plugins ANSIBLE_CALLBACKS_ENABLED=tasks
# What of a host is its own. Its binaries are those of the first one, because two hundred times their size is a lot of memory.
own=(/etc/cni /var/lib/podwire /run/podwire-cni)

play() {
  ansible-playbook -i "$here/fleet/inventory.py" "$@" >"$BENCH_DIR/log" 2>&1 && return
  tail -n 40 "$BENCH_DIR/log"
  return 1
}

# The file of a namespace can be bound only in one that has a lower number, and since Linux 6.18 each CPU gives numbers of its own. One
# of them fits: that which made the namespace that this script is in.
make_namespace() {
  local cpu
  for cpu in $(python3 -c 'import os; print(*os.sched_getaffinity(0))'); do
    # shellcheck disable=SC2016 # It is the other shell that expands them.
    taskset --cpu-list "$cpu" unshare --mount="$1/namespace" --propagation private bash -ec '
      for path in "${@:2}"; do mount --bind "$1$path" "$path"; done' bash "$1" "${own[@]}" 2>"$1/errors" && return
  done
  cat "$1/errors" >&2
  return 1
}

# Gives a host its root: a mount namespace of its own with copies of what the first host has, and a Python that runs in there.
make_host() {
  local directory=$BENCH_DIR/hosts/$1 path
  mkdir -p "$directory"
  : >"$directory/namespace"
  for path in "${own[@]}"; do
    mkdir -p "$directory$path"
    cp --archive "$path/." "$directory$path"
  done
  # Somebody has been at every tenth.
  [[ $1 != *7 ]] || sed -i 's/1400/1300/' "$directory/etc/cni/net.d/10-fleet.conflist"
  make_namespace "$directory"
  printf '#!/bin/sh\nexec nsenter --mount=%s/namespace /usr/bin/python3 "$@"\n' "$directory" >"$directory/python"
  chmod +x "$directory/python"
}

# Gives the controller hosts that cost nothing: a Python that prints what a real host has answered to the same module. What is left is
# the controller's own work. The processor time of the script is written down.
make_replay() {
  local answers=$BENCH_DIR/replay
  mkdir "$answers"
  # shellcheck disable=SC2016 # It is the script that expands them.
  printf '#!/bin/sh\ndirectory=%s\n%s\n' "$answers" '
cat >"$directory/sent"
"$directory/../hosts/host1/python" "$@" <"$directory/sent" >"$directory/answered"
kind=ping
! grep --quiet podwire "$directory/sent" || kind=podwire
cp "$directory/answered" "$directory/$kind"
cat "$directory/answered"' >"$answers/python"
  chmod +x "$answers/python"
  BENCH_HOSTS=1 BENCH_REPLAY=yes play "$here/fleet/drift.yml"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\ndirectory=%s\n%s\n' "$answers" '
sent=$(cat)
case $sent in *podwire*) kind=podwire ;; *) kind=ping ;; esac
cat "$directory/$kind"
times >>"$directory/times"' >"$answers/python"
}

tar --create --gzip --file "$BENCH_DIR/cni-plugins.tgz" --directory "$BENCH_PLUGINS" .
BENCH_HOSTS=1 BENCH_FIRST=yes play podwire.cni.bootstrap -e cni_hosts=all
for number in {1..200}; do make_host "host$number"; done
for hosts in 10 200; do
  BENCH_HOSTS=$hosts BENCH_OUTPUT=$BENCH_DIR/tasks.$hosts play "$here/fleet/drift.yml"
done
mv "$BENCH_DIR/report" "$BENCH_DIR/report.200"
make_replay
BENCH_HOSTS=1000 BENCH_REPLAY=yes BENCH_TIMES=$BENCH_DIR/replay/times BENCH_OUTPUT=$BENCH_DIR/tasks.1000 play "$here/fleet/drift.yml"
python3 "$here/fleet/table.py" "$BENCH_DIR" 10 200 1000
