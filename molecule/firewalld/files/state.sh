#!/usr/bin/env bash
# What the machine has for containers: interfaces with their indexes, addresses, routes, leases, and the rules of plugins in their order.
set -eo pipefail
ip -oneline link show | sed -E 's/^([0-9]+: [^ ]+).*/link \1/'
for netns in $(ip netns list | sed 's/ .*//' | sort); do
  ip -oneline -netns "$netns" link show | sed -E "s/^([0-9]+: [^ ]+).*(link\/.*)/$netns link \1 \2/"
  ip -oneline -netns "$netns" address show scope global | awk -v netns="$netns" '{ print netns, "address", $2, $4 }'
  ip -netns "$netns" route show | sed "s/^/$netns route /"
done
find /var/lib/cni/networks -type f ! -name lock -exec sha256sum {} +
# Not those of firewalld.
for table in filter nat; do
  iptables-save -t "$table" | sed -nE "s/^-A (.*(CNI|10[.]88[.]0).*)/rule $table \1/p"
done
