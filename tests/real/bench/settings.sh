#!/usr/bin/env bash
# The benchmark of Ansible's settings; called inside tests/private.sh by `./run bench settings`: settings.sh PLUGINS BASE
#
# PLUGINS has plugins, BASE is the archive of the Debian system of the hosts.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/ssh_hosts.sh
source "$here/../../ssh_hosts.sh"
work=/run/hosts hosts=20

unpack_hosts "$2" "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
tar --create --gzip --file "$work/cni-plugins.tgz" --directory "$1" .
mkdir -p "$work/inventory/group_vars"
{
  printf 'all:\n  vars:\n'
  host_variables "$work/key"
  printf '    cni_report_dir: %s/report\n  hosts:\n' "$work"
  for ((number = 1; number <= hosts; number++)); do host_line "$number"; done
} >"$work/inventory/hosts.yml"
site_variables "$work/cni-plugins.tgz" >"$work/inventory/group_vars/all.yml"
for ((number = 1; number <= hosts; number++)); do start_host "$work/host" "$number" "$work/key"; done
python3 "$here/settings.py" "$work" "$hosts"
