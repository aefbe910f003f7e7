#!/usr/bin/env bash
# What a machine is like: its files, the containers' interfaces and routes, the rules, and whether a container reaches an address.
#
#   state.sh NETNS ADDRESS
set -eo pipefail
ip netns exec "$1" ping -c 1 -W 30 "$2" >/dev/null
sha256sum /etc/cni/net.d/* /opt/cni/bin/*
stat --format '%n %a %U:%G' /etc/cni/net.d/* /opt/cni/bin/*
for netns in $(ip netns list | sed 's/ .*//' | sort); do
  ip -oneline -netns "$netns" address show scope global | awk -v netns="$netns" '{ print netns, $2, $4 }'
  ip -netns "$netns" route show | sed "s/^/$netns /"
done
iptables-save | sed -nE 's/^-A/rule/p' | sort
