#!/bin/bash
# What there is of containers: look.sh POD_THAT_LIVES
#
# Each line begins with a word of what it is about; what the living have and need is "living".
set -euo pipefail
pod=$1
netns=$(sed -E 's|.*"netns":"([^"]*)".*|\1|' "/var/lib/cni/results/pods-$pod-eth0")

for living in /run/netns/web "$netns"; do
  nsenter --net="$living" ping -c 1 -W 30 10.88.0.1 >/dev/null
  nsenter --net="$living" ip -oneline -4 address show eth0 | awk -v netns="$living" '{ print "living", netns, $4 }'
  nsenter --net="$living" ip route show default | sed "s|^|living $living |"
done
ctr --namespace k8s.io containers ls --quiet | sed 's/^/container /'
find /var/lib/cni/networks/pods -name '10.*' -printf 'lease %f\n'
find /var/lib/podwire/cni/results /var/lib/podwire/cni/podwire /var/lib/cni/results -type f -printf 'cache %p\n'
ip -oneline link show master pods0 | sed -E 's/^[0-9]+: ([^:@]+).*/port \1/'
for command in iptables-save ip6tables-save; do
  "$command" 2>/dev/null | sed -nE "s/^-A/rule $command -A/p"
done
