#!/usr/bin/env bash
# Builds the execution environment, and runs the playbooks in it on three hosts; called as root by `./run ee`:
# ee.sh WORK BASE RUNTIMES NAVIGATOR
#
# WORK has context/ (of ansible-builder), settings/ (files that the image gets from this machine) and cni-plugins.tgz. BASE is the
# archive of a Debian system, which is the base of the image and the system of the hosts. RUNTIMES has an unpacked podman, NAVIGATOR is
# the program ansible-navigator. Nothing comes from a registry. The hosts are roots with an SSH server on loopback, in the namespaces
# of tests/private.sh.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
output=''

# shellcheck source=tests/ssh_hosts.sh
source "$here/../../ssh_hosts.sh"

image() { buildah --storage-driver "$(cat "$work/driver")" --root "$work/storage" --runroot "$work/runroot" "$@"; }

ok() { printf '  [ok] %s\n' "$*"; }

# Fails with the last output unless it has a line: has PATTERN WHAT
has() {
  grep --quiet --extended-regexp --regexp "$1" <<<"$output" || { printf '%s\n  [FAILED] %s: no line matches %s\n' "$output" "$2" "$1" >&2; exit 1; }
  ok "$2"
}

# Runs a command in the execution environment as AWX does, and prints how long it took: in_ee COMMAND...
in_ee() {
  local begun=$SECONDS
  printf '\n  $ %s\n' "$*"
  output=$(image run --isolation chroot --network host --user 1000:0 --workingdir /runner --volume "$work/runner:/runner" \
    --env ANSIBLE_NOCOLOR=true --env container=podman "$container" -- \
    /opt/builder/bin/entrypoint dumb-init "$@" </dev/null 2>&1) || { printf '%s\n  [FAILED] %s\n' "$output" "$*" >&2; exit 1; }
  printf '  %s s\n' "$((SECONDS - begun))"
}

# Runs a playbook with ansible-navigator, which starts the execution environment by podman: by_navigator PLAYBOOK [OPTION...]
by_navigator() {
  local begun=$SECONDS
  printf '\n  $ ansible-navigator run %s\n' "$*"
  output=$(cd "$work/runner" && ANSIBLE_NOCOLOR=true "$navigator" run "$@" -i inventory --mode stdout --playbook-artifact-enable false \
    --ee true --container-engine podman --execution-environment-image localhost/podwire-ee --pull-policy never \
    --container-options=--net=host </dev/null 2>&1) || { printf '%s\n  [FAILED] %s\n' "$output" "$*" >&2; exit 1; }
  printf '  %s s\n' "$((SECONDS - begun))"
}

# Makes podman a command, which has the images of buildah.
install_podman() {
  # podman refuses to start without it.
  mkdir -p /opt/cni/bin
  # Its Python has what the file imports from elsewhere; the rest is in the directory of collections.
  PYTHONPATH=$(realpath "$here/../../../../../..") \
    "$(dirname "$navigator")/python" "$here/../runtimes/installed.py" install "$runtimes"
  mkdir "$work/bin"
  printf '#!/bin/sh\nexec /usr/bin/podman --storage-driver %s --root %s/storage --runroot %s/runroot "$@"\n' \
    "$(cat "$work/driver")" "$work" "$work" >"$work/bin/podman"
  chmod +x "$work/bin/podman"
  PATH=$work/bin:$PATH
}

build() {
  local made
  # Overlays cannot be stacked everywhere.
  echo overlay >"$work/driver"
  image info >/dev/null 2>&1 || echo vfs >"$work/driver"
  made=$(image from scratch)
  image add --quiet "$made" "$base" / >/dev/null
  image add --quiet "$made" "$work/settings" / >/dev/null
  image commit --quiet "$made" localhost/base >/dev/null
  image rm "$made" >/dev/null
  image bud --isolation chroot --network host --build-arg EE_BASE_IMAGE=localhost/base --tag localhost/podwire-ee \
    --file "$work/context/Containerfile" "$work/context" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; exit 1; }
  ok "the execution environment is built in $SECONDS s ($(cat "$work/driver"))"
}

write_runner() {
  local folder=$work/runner number
  mkdir -p "$folder/inventory/group_vars"
  cp "$work/key" "$work/cni-plugins.tgz" "$folder"
  {
    printf 'all:\n  vars:\n'
    host_variables '"{{ inventory_dir }}/../key"'
    printf '  hosts:\n'
    for number in 1 2 3; do host_line "$number"; done
  } >"$folder/inventory/hosts.yml"
  site_variables '{{ inventory_dir }}/../cni-plugins.tgz' >"$folder/inventory/group_vars/all.yml"
  # As in a container of AWX.
  chown -R 1000:0 "$folder"
  chmod -R g+rwX "$folder"
  chmod 0600 "$folder/key"
}

run() {
  local number
  unpack_hosts "$base" "$work/host"
  for number in 1 2 3; do start_host "$work/host" "$number" "$work/key"; done
  container=$(image from localhost/podwire-ee)
  in_ee sh -c 'id -u; id -g; ansible-galaxy collection list podwire.cni'
  has '^1000$' 'the user is 1000'
  has '^0$' 'its group is 0'
  has '^podwire.cni ' 'the collection is installed'
  in_ee ansible-playbook -i inventory podwire.cni.bootstrap -e cni_hosts=all
  has '"3 hosts: 3 changed"' 'bootstrap installs plugins and networks on three hosts'
  in_ee ansible-playbook -i inventory podwire.cni.bootstrap -e cni_hosts=all
  has '"3 hosts: 3 unchanged"' 'the second bootstrap changes nothing'
  in_ee ansible-playbook -i inventory podwire.cni.drift -e cni_report_dir=/tmp/cni-report
  has '"/tmp/cni-report/report.html; this directory is lost with the container' 'drift says that its report will be lost'
  sed -i 's/1400/1300/' /run/hosts/root2/etc/cni/net.d/10-apps.conflist
  in_ee ansible-runner run /runner -p podwire.cni.drift --ident drift
  has 'item=host2: drift: write 10-apps.conflist' 'drift finds the file that somebody has edited'
  has '"/runner/cni-report/report.html"' 'its report is in a volume'
  [ "$(stat -c '%u %a' "$work/runner/cni-report/report.html")" = '1000 600' ]
  ok 'the report belongs to the user 1000'
  in_ee ansible-playbook -i inventory podwire.cni.remediate -e cni_hosts=all
  has 'item=host2: repaired: write 10-apps.conflist' 'remediate repairs it'
  grep --quiet 1400 /run/hosts/root2/etc/cni/net.d/10-apps.conflist
  ok 'the file has its value again'

  install_podman
  by_navigator podwire.cni.bootstrap -e cni_hosts=all
  has '"3 hosts: 3 unchanged"' 'bootstrap finds nothing to do'
  sed -i 's/1400/1300/' /run/hosts/root3/etc/cni/net.d/10-apps.conflist
  by_navigator podwire.cni.drift
  has "\"$work/runner/cni-report/report.html" 'drift keeps its report in the current directory'
  by_navigator podwire.cni.remediate -e cni_hosts=all
  has 'item=host3: repaired: write 10-apps.conflist' 'remediate repairs the file'
}

if [ "$1" = --inside ]; then
  shift
  work=$1 base=$2 runtimes=$3 navigator=$4
  run
  exit
fi
work=$1 base=$2
# ansible-navigator wants it for podman, and small systems do not have it.
queues=/dev/mqueue
if [ -d "$queues" ]; then queues=''; else mkdir "$queues"; fi
trap '[ -z "$queues" ] || rmdir "$queues"; image rm --all >/dev/null 2>&1 || true; rm -rf --one-file-system "$work"/{bin,storage,runroot,host,runner}' EXIT
build
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
write_runner
"$here/../../private.sh" "$0" --inside "$@"
printf '\n%s s in all\n' "$SECONDS"
