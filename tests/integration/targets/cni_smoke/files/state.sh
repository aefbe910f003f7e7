#!/usr/bin/env bash
# Prints what a smoke test must leave as it is: state.sh LEASE_DIR CACHE_DIR
set -euo pipefail
find "$1" -type f ! -name 'last_reserved_ip.*' ! -name lock -printf '%p %T@\n' | sort
find "$2" -type d -printf '%p\n' -o -type f -printf '%p %T@\n' 2>/dev/null | sort || true
ip -oneline link show
for netns in $(ip netns list | cut -d ' ' -f 1); do
  ip -n "$netns" -oneline address show
done
iptables-save | grep '^-' | grep -vE 'CNI-(FORWARD|ADMIN|HOSTPORT-[A-Z]+) ' || true
ip6tables-save | grep '^-' | grep -vE 'CNI-(FORWARD|ADMIN|HOSTPORT-[A-Z]+) ' || true
nft list ruleset | grep -E 'masquerade' || true
