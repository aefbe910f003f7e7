#!/usr/bin/env bash
# The playground: hosts, and a shell in which to use them; called by `./run playground`: playground.sh DIRECTORY [NAME...]
#
# Each host has mount, network, process and other namespaces of its own (tests/private.sh). Ansible reaches it through a Python
# that enters them. The shell is on this machine, as on a controller. The hosts end with the shell.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
hosts=$1/hosts work=$1/fleet
names=("${@:2}")
[ ${#names[@]} -gt 0 ] || names=(web1 web2 web3)
inputs=()
sudo=()
[ "$(id -u)" -eq 0 ] || sudo=(sudo --)

# Prints the first process of a host, once it is there: process_of NAME
process_of() {
  local namespace='' process=''
  for _ in {1..300}; do
    [ -n "$namespace" ] || namespace=$(cat "$hosts/$1/namespace" 2>/dev/null || true)
    [ -z "$namespace" ] || process=$("${sudo[@]}" lsns --type pid --noheadings --output NS,PID | awk -v wanted="$namespace" '$1 == wanted { print $2 }')
    [ -z "$process" ] || break
    sleep 0.1
  done
  [ -n "$process" ] || { echo "playground: the host $1 has not started; its messages are above" >&2; return 1; }
  echo "$process"
}

# Starts a host: start NAME
start() {
  local process
  mkdir -p "$hosts/$1"
  mkfifo "$hosts/$1/alive"
  # shellcheck disable=SC2016 # it is the other shell that expands them
  "$here/../tests/private.sh" bash -c '
    hostname "$0"
    readlink /proc/self/ns/pid | tr -dc 0-9 >"$1/namespace.new"
    mv "$1/namespace.new" "$1/namespace"
    exec cat' "$1" "$hosts/$1" <"$hosts/$1/alive" >/dev/null &
  # It ends when nobody holds the other end of its input, also if this script is killed.
  exec {input}>"$hosts/$1/alive"
  inputs+=("$input")
  process=$(process_of "$1")
  printf '#!/bin/sh\nexec %s nsenter --target %s --root --wd=/ --mount --net --pid --ipc --uts /usr/bin/python3 "$@"\n' \
    "${sudo[*]}" "$process" >"$hosts/$1/python"
  chmod +x "$hosts/$1/python"
  printf '    %s:\n      ansible_python_interpreter: %s\n' "$1" "$hosts/$1/python" >>"$work/inventory.yml"
}

finish() {
  local input
  for input in "${inputs[@]}"; do exec {input}>&-; done
  wait
  rm -rf "$hosts"
}

trap finish EXIT
rm -rf "$hosts"
mkdir -p "$work"
printf -- '---\nall:\n  vars:\n    ansible_connection: local\n  hosts:\n' >"$work/inventory.yml"
for name in "${names[@]}"; do start "$name"; done
cat <<END

The hosts ${names[*]} are ready. They are namespaces of this machine, know nothing of CNI, and end with this shell (exit).
Their inventory is inventory.yml, in $work.

END
cd "$work"
export ANSIBLE_PIPELINING=true
# What somebody leaves running in the shell keeps no host.
(
  for input in "${inputs[@]}"; do exec {input}>&-; done
  trap - EXIT
  if [ -t 0 ]; then
    PS1='playground$ ' exec bash --norc
  else
    # Commands from a file.
    exec bash
  fi
)
