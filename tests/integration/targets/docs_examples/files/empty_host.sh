#!/usr/bin/env bash
# Runs a command on a host without anything of CNI: empty_host.sh COMMAND [ARGUMENT...]
set -euo pipefail

if [ "${1-}" != --inside ]; then
  exec unshare --mount --net -- "$0" --inside "$@"
fi
shift
mount --make-rprivate /
for directory in /etc/cni /opt/cni /var/lib/cni /var/lib/podwire /run/netns /run/podwire-cni; do
  mkdir -p "$directory"
  mount -t tmpfs -o mode=0755 empty-host "$directory"
done
mount --make-shared /run/netns
mount -t sysfs sysfs /sys
ip link set lo up
"$@"
