#!/usr/bin/env bash
# The benchmark of Ansible's settings; called inside tests/private.sh by `./run bench settings`: settings.sh PLUGINS BASE
#
# PLUGINS has plugins, BASE is the archive of the Debian system of the hosts.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=tests/ssh_hosts.sh
source "$here/../ssh_hosts.sh"
work=/run/hosts hosts=20

unpack_hosts "$2" "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/key"
tar --create --gzip --file "$work/cni-plugins.tgz" --directory "$1" .
{
  printf 'all:\n  vars:\n'
  host_variables "$work/key"
  printf '    cni_plugins_src: %s/cni-plugins.tgz\n    cni_report_dir: %s/report\n' "$work" "$work"
  cat <<'VARIABLES'
    cni_plugins_names: [bridge, host-local, loopback, portmap]
    cni_networks:
      - name: apps
        conflist:
          cniVersion: "1.0.0"
          plugins:
            - {type: bridge, bridge: apps0, ipam: {type: host-local, ranges: [[{subnet: 10.88.0.0/24}]]}}
            - {type: portmap, capabilities: {portMappings: true}}
  hosts:
VARIABLES
  for ((number = 1; number <= hosts; number++)); do host_line "$number"; done
} >"$work/inventory.yml"
for ((number = 1; number <= hosts; number++)); do start_host "$work/host" "$number" "$work/key"; done
python3 "$here/settings.py" "$work" "$hosts"
