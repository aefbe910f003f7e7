#!/usr/bin/env bash
# Prints all that a drift run must leave as it is.
set -euo pipefail
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire -printf '%p %m %U %G %T@\n' | sort
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire -type f -exec sha256sum {} + | sort
ip -oneline link show | sed 's/ .*master/ master/'
ip netns list
