#!/usr/bin/env bash
# An afternoon with the collection: what an engineer types on five new hosts of Debian 13, and all that he then reads; called inside
# tests/private.sh by `./run test afternoon`: afternoon.sh SYSTEM NEW OLD REPORT
#
# SYSTEM is the archive of a Debian with containerd and podman; NEW and OLD are directories of plugins, 1.9.1 and 1.1.1. k8s1 and k8s2 run
# containerd, podman1 has podman, both1 has both, plain1 has neither. REPORT gets the report. Output is not changed;
# the script goes on if a fact does not hold, and fails at the end.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
scratch=$(mktemp -d /run/podwire-afternoon.XXXXXX)
report=$4
hosts=(k8s1 k8s2 podman1 both1 plain1)
declare -A daemons=([k8s1]=containerd [k8s2]=containerd [both1]=containerd)
declare -A without=([k8s1]=podman [k8s2]=podman [podman1]=containerd [plain1]="containerd podman")
declare -A first
inputs=()
misses=()
export ANSIBLE_PIPELINING=true ANSIBLE_NOCOLOR=true ANSIBLE_HOST_KEY_CHECKING=false

say() { printf '\n\n# %s\n' "$*"; }

missed() {
  printf 'afternoon: %s\n' "$*"
  misses+=("$*")
}

# Runs a command as it was typed, in the folder of the fleet; its status must be STATUS: run STATUS COMMAND
run() {
  local status=0
  printf '\n$ %s\n' "$2"
  bash -o pipefail -c "$2" >"$scratch/output" 2>&1 || status=$?
  cat "$scratch/output"
  [ "$status" = "$1" ] || missed "the status of $2 is $status, and not $1"
}

# The last output must have a line that matches each: printed PATTERN...
printed() {
  local pattern
  for pattern; do
    grep -Eq -- "$pattern" "$scratch/output" || missed "nothing matches $pattern"
  done
}

# No line of the last output may match: absent PATTERN
absent() { if grep -Eq -- "$1" "$scratch/output"; then missed "a line matches $1"; fi; }

# The last output must have no more lines: at_most LINES
at_most() { [ "$(wc -l <"$scratch/output")" -le "$1" ] || missed "there are more than $1 lines"; }

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
printed '^\+bridge: ' 'install [0-9]+ plugins' '5 hosts: 5 would change'
absent 'cni_versions|: null'
at_most 450

say "13:15. Do it."
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'
printed '5 hosts: 5 changed'
at_most 55
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'
printed '5 hosts: 5 unchanged'

say "13:20. Are the nodes ready?"
run 0 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'
printed 'bin_dir_unused'

say "13:30. The plugins go to where containerd of Debian looks for them."
printf 'cni_bin_dirs: [/usr/lib/cni]\n' >>group_vars/workers.yml
run 0 'ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed 'item=k8s1: clean' 'item=plain1: clean'

say "14:00. Somebody has been at the hosts."
on k8s1 sed -i 's/10.42.0.0/10.43.0.0/' /etc/cni/net.d/10-podnet.conflist
on k8s2 rm /usr/lib/cni/portmap
on podman1 rm /etc/cni/net.d/10-podnet.conflist
on podman1 ln -sf /bin/false /usr/lib/cni/bridge
on both1 iptables -P FORWARD DROP
on plain1 cp /bin/true /usr/lib/cni/host-local
on plain1 chmod 0666 /etc/cni/net.d/10-podnet.conflist
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed 'k8s1: drift: write 10-podnet.conflist [(]disruptive[)]' 'k8s2: drift: install portmap' 'podman1: drift: .*replace bridge'
printed 'podman1: drift: .*10-podnet.conflist' 'item=both1: ' 'plain1: drift: .*replace host-local' 'plain1: drift: .*10-podnet.conflist'
run 2 'ansible-playbook podwire.cni.explain -e cni_hosts=workers'
printed 'both1: .*(FORWARD|forward)' 'k8s2: .*portmap'

say "14:10. One host does not answer."
sed -i '/^      hosts:/a\        gone1: {ansible_connection: ssh, ansible_host: 192.0.2.99}' inventory.yml
run 2 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed 'gone1: error: unreachable' '1 with an error [(]gone1[)]' '^gone1 .* failed=1'
sed -i '/gone1/d' inventory.yml
run 0 'rm cni-report/hosts/gone1*'

say "14:20. Repair it."
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers --check'
printed 'k8s1: would leave: write 10-podnet.conflist [(]disruptive[)]' 'k8s2: would repair: install portmap'
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers'
printed 'k8s2: repaired: install portmap' 'to repair what is left: ansible-playbook podwire.cni.remediate --limit k8s1 '
run 0 'ansible-playbook podwire.cni.remediate -e cni_hosts=workers -e cni_remediate_classes=safe,disruptive'
printed 'k8s1: repaired: write 10-podnet.conflist [(]disruptive[)]'
on both1 iptables -P FORWARD ACCEPT
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed 'item=k8s1: clean[)]' 'item=k8s2: clean[)]' 'item=podman1: clean[)]' 'item=both1: clean[)]' 'item=plain1: clean[)]'
printed 'All 5 hosts are clean'

say "14:40. Another release of the plugins. First with a mirror that is away, then with a file."
checksum=$(sha256sum cni-plugins-1.1.1.tgz)
run 2 "ansible-playbook podwire.cni.bootstrap -e cni_hosts=workers -e cni_plugins_src=https://192.0.2.254/cni-plugins-1.1.1.tgz \
  -e cni_plugins_checksum=sha256:${checksum%% *}"
printed 'https://192.0.2.254/cni-plugins-1.1.1.tgz' '"code": "download_failed"' '^k8s1 .* failed=1'
absent 'missing_plugin'
at_most 80
# shellcheck disable=SC2016 # it is the other shell that expands it
run 0 'ansible-playbook podwire.cni.upgrade -e cni_hosts=workers -e cni_plugins_src=$PWD/cni-plugins-1.1.1.tgz'
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed '[(]disruptive[)].*upgraded .*by upgrade|upgraded .*by upgrade.*[(]disruptive[)]'
sed -i 's/cni-plugins-1.9.1.tgz/cni-plugins-1.1.1.tgz/' group_vars/workers.yml
run 0 'ansible-playbook podwire.cni.drift -e cni_hosts=workers'
printed 'item=k8s1: clean[)]' 'item=k8s2: clean[)]' 'item=podman1: clean[)]' 'item=both1: clean[)]' 'item=plain1: clean[)]'

say "15:00. A report for the others."
run 0 'ansible-playbook podwire.cni.report'
mkdir -p "$report"
cp -r cni-report/. "$report"

say "15:30. One host goes."
run 0 'ansible-playbook podwire.cni.teardown -e cni_hosts=plain1'
printed 'plain1: changed'
run 0 'ansible-playbook podwire.cni.teardown -e cni_hosts=podman1'
printed 'podman1: changed'
say "16:00. That was the afternoon."
[ "${#misses[@]}" = 0 ] || { printf 'afternoon: %s\n' "${misses[@]}"; exit 1; }
