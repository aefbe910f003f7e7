#!/usr/bin/env bash
# What there is of containers' networks: look.sh POD_THAT_LIVES
#
# Each line begins with a word for what it is about: what the living have, and whose it is, is "living".
set -euo pipefail
pod=$1
netns=$(sed -nE 's|.*"sandbox":"([^"]+)".*|\1|p' "/var/lib/cni/results/pods-$pod-eth0")

for living in /run/netns/web "$netns"; do
  nsenter --net="$living" ping -c 1 -W 30 10.88.0.1 >/dev/null
  nsenter --net="$living" ip -oneline -4 address show eth0 | awk -v netns="$living" '{ print "living", netns, $4 }'
  nsenter --net="$living" ip route show default | sed "s|^|living $living |"
done
for lease in /var/lib/cni/networks/pods/10.*; do
  printf 'lease %s %s\n' "${lease##*/}" "$(head -n 1 "$lease" | tr -d '\r')"
done
find /var/lib/podwire/cni/results /var/lib/podwire/cni/podwire /var/lib/cni/results -type f -printf 'cache %p\n'
ip -oneline link show master pods0 | sed -E 's/^[0-9]+: ([^:@]+).*/port \1/'
for command in iptables-save ip6tables-save; do
  "$command" 2>/dev/null | sed -nE "s/^-A/rule $command -A/p"
done
