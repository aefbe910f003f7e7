#!/usr/bin/env bash
# Prints what is on this host of all that bootstrap may touch and teardown has to leave as it was, a thing a line.
set -euo pipefail

# Not among it are directories, which stay, what the collection remembers, and the notes of host-local on addresses given before.
for directory in /etc/cni /opt/cni /var/lib/cni /var/lib/podwire/cni; do
  [ -d "$directory" ] || continue
  find "$directory" -type f ! -name lock ! -name 'last_reserved_ip.*' -printf '%p %m %U %G ' -exec sh -c 'sha256sum <"$1"' - {} \;
done | sort
ip netns list
ip -oneline link show | awk '{ print $2 }'
ip -oneline address show scope global | awk '{ print $2, $4 }'
# The base chains of the plugins stay; nothing in them may speak of a network, a container or an address.
iptables-save | grep -e 'name:' -e 'id:' -e '10\.8[89]\.' || true
