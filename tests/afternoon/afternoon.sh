#!/usr/bin/env bash
# An afternoon with the collection: what an engineer types on five new hosts of Debian 13, and all that he then reads; called inside
# tests/private.sh by `./run test afternoon`: afternoon.sh SYSTEM NEW OLD REPORT
#
# SYSTEM is the archive of a Debian with containerd and podman; NEW and OLD are directories of plugins, 1.9.1 and 1.1.1. k8s1 and k8s2 run
# containerd, podman1 has podman, both1 has both, plain1 has neither. REPORT gets the report. Output is not changed;
# the script fails if a fact does not hold.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
scratch=$(mktemp -d /run/podwire-afternoon.XXXXXX)
report=$4
hosts=(k8s1 k8s2 podman1 both1 plain1)
declare -A daemons=([k8s1]=containerd [k8s2]=containerd [both1]=containerd)
declare -A without=([k8s1]=podman [k8s2]=podman [podman1]=containerd [plain1]="containerd podman")
declare -A first
inputs=()
export ANSIBLE_PIPELINING=true ANSIBLE_NOCOLOR=true ANSIBLE_HOST_KEY_CHECKING=false

say() { printf '\n\n# %s\n' "$*"; }

# Runs a command as it was typed, in the folder of the fleet, and ends the afternoon if its status is not STATUS: run STATUS COMMAND
run() {
  local status=0
  printf '\n$ %s\n' "$2"
  bash -o pipefail -c "$2" >"$scratch/output" 2>&1 || status=$?
  cat "$scratch/output"
  [ "$status" = "$1" ] || { printf 'afternoon: the status is %s, and not %s\n' "$status" "$1"; exit 1; }
}

# Ends the afternoon unless the last output has a line that matches: printed PATTERN
printed() { grep -Eq -- "$1" "$scratch/output" || { printf 'afternoon: nothing matches %s\n' "$1"; exit 1; }; }

on() { nsenter --target "${first[$1]}" --root --wd=/ --mount --net --pid --ipc --uts -- "${@:2}"; }

# Prints the first process of a host: process_of NAME
process_of() {
  local pid _try
  for _try in {1..200}; do
    for pid in $(pgrep -x cat); do
      if [ "$(nsenter --target "$pid" --uts hostname 2>/dev/null)" = "$1" ] && [ -e "/proc/$pid/root/run/namespace" ]; then
        echo "$pid"
        return
      fi
    done
    sleep 0.1
  done
  echo "afternoon: the host $1 has not started" >&2
  return 1
}

start() {
  local name=$1 number=$2 directory=$scratch/$1
  mkdir -p "$directory"
  mkfifo "$directory/alive"
  # shellcheck disable=SC2086 # there may be no daemon
  WITHOUT=${without[$name]-} unshare --mount --net --pid --ipc --uts --fork --kill-child -- \
    "$here/host.sh" "$name" "$directory" "$scratch/base" ${daemons[$name]-} <"$directory/alive" >/dev/null &
  exec {input}>"$directory/alive"
  inputs+=("$input")
  first[$name]=$(process_of "$name")
  ip link add "port$number" type veth peer name eth0 netns "${first[$name]}"
  ip link set "port$number" master site up
  on "$name" ip address add "192.0.2.$number/24" dev eth0
  on "$name" ip link set eth0 up
  on "$name" ip route add default via 192.0.2.254
  printf '#!/bin/sh\nexec nsenter --target %s --root --wd=/ --mount --net --pid --ipc --uts /usr/bin/python3 "$@"\n' "${first[$name]}" \
    >"$directory/python"
  chmod +x "$directory/python"
  printf '        %s: {ansible_python_interpreter: %s}\n' "$name" "$directory/python" >>"$scratch/fleet/inventory.yml"
}

finish() {
  local input
  for input in "${inputs[@]}"; do exec {input}>&-; done
  wait
}
trap finish EXIT

# The changes of a root cannot be kept in the overlay that /run is.
mount -t tmpfs podwire-afternoon "$scratch"
mkdir /run/sent
mkdir -p "$scratch/base" "$scratch/fleet/group_vars"
tar --extract --file "$1" --directory "$scratch/base" --exclude './dev/*'
tar --create --gzip --file "$scratch/fleet/cni-plugins-1.9.1.tgz" --directory "$2" .
tar --create --gzip --file "$scratch/fleet/cni-plugins-1.1.1.tgz" --directory "$3" .
ip link add site type bridge
ip address add 192.0.2.254/24 dev site
ip link set site up

cat >"$scratch/fleet/inventory.yml" <<'END'
---
all:
  children:
    workers:
      hosts:
END
number=0
for name in "${hosts[@]}"; do start "$name" $((number += 1)); done
cat >>"$scratch/fleet/inventory.yml" <<'END'
  vars:
    ansible_connection: local
    ansible_remote_tmp: /run/sent
END
cat >"$scratch/fleet/group_vars/workers.yml" <<'END'
---
cni_plugins_src: "{{ inventory_dir }}/cni-plugins-1.9.1.tgz"
cni_networks:
  - name: podnet
    conflist:
      cniVersion: "1.0.0"
      plugins:
        - type: bridge
          bridge: cni0
          isGateway: true
          ipMasq: true
          ipam:
            type: host-local
            ranges: [[{subnet: 10.42.0.0/24}]]
            routes: [{dst: 0.0.0.0/0}]
        - {type: portmap, capabilities: {portMappings: true}}
END
cd "$scratch/fleet"
export ANSIBLE_INVENTORY=inventory.yml

say "13:00. Five new hosts, an inventory and a file of variables."
run 0 'cat inventory.yml group_vars/workers.yml'

say "13:10. What would happen?"
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers --check --diff'

say "13:15. Do it."
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'

say "13:20. Are the nodes ready?"
run 0 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'
printed 'bin_dir_unused'

say "13:30. The plugins go to where containerd of Debian looks for them."
printf 'cni_bin_dirs: [/usr/lib/cni]\n' >>group_vars/workers.yml
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'

say "14:00. Somebody has been at the hosts."
on k8s1 sed -i 's/10.42.0.0/10.43.0.0/' /etc/cni/net.d/10-podnet.conflist
on k8s2 rm /usr/lib/cni/portmap
on podman1 rm /etc/cni/net.d/10-podnet.conflist
on both1 iptables -P FORWARD DROP
on plain1 chmod 0666 /etc/cni/net.d/10-podnet.conflist
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
run 2 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'

say "14:20. Repair it."
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers --check'
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers -e cni_remediate_classes=safe,disruptive'

say "14:40. Another release of the plugins."
# shellcheck disable=SC2016 # it is the other shell that expands it
run 0 'ansible-playbook podwire.cni.upgrade -e cni_hosts=workers -e cni_plugins_src=$PWD/cni-plugins-1.1.1.tgz'
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed '[(]disruptive[)].*upgraded .*by upgrade|upgraded .*by upgrade.*[(]disruptive[)]'

say "15:00. A report for the others."
run 0 'ansible-playbook podwire.cni.report'
mkdir -p "$report"
cp -r cni-report/. "$report"

say "15:30. One host goes."
run 0 'ansible-playbook podwire.cni.teardown -e cni_hosts=plain1'
run 0 'ansible-playbook podwire.cni.teardown -e cni_hosts=podman1'
say "16:00. That was the afternoon."
