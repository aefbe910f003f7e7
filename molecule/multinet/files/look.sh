#!/usr/bin/env bash
# What there is of containers' networks, without the bridges and directories that plugins never remove.
set -euo pipefail
find /var/lib/cni /var/lib/podwire/cni -type f ! -name lock ! -name 'last_reserved_ip.*' 2>/dev/null | sort || true
ip -oneline link show type veth | wc -l
ip -oneline link show type macvlan | wc -l
find /run/netns -mindepth 1 2>/dev/null | sort || true
