#!/usr/bin/env bash
# Prints what of the containers an upgrade must leave as it is.
set -euo pipefail
find /var/lib/podwire/cni -type f -exec sha256sum {} + | sort
find /var/lib/cni -type f ! -name 'last_reserved_ip.*' -exec sha256sum {} + | sort
ip -oneline link show
for netns in pwu-a pwu-b; do
  ip -n "$netns" -oneline address show
  ip -n "$netns" route show
done
iptables-save | grep '^-' | sort
