#!/usr/bin/env bash
# Prints what of the containers an upgrade must leave as it is.
set -euo pipefail
find /var/lib/podwire/cni -type f -exec sha256sum {} + | sort
find /var/lib/cni -type f ! -name 'last_reserved_ip.*' ! -name lock -exec sha256sum {} + | sort
ip -oneline link show
for netns in pwu-a pwu-b; do
  # An IPv6 address is tentative for some seconds.
  ip -n "$netns" -oneline address show | sed 's/ tentative//'
  ip -n "$netns" route show
done
iptables-save | grep '^-' | sort
