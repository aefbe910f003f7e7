#!/usr/bin/env bash
# Ends a pod and three containers as no runtime does, and leaves more of what others have left: die.sh POD
set -euo pipefail
pod=$1
cache=/var/lib/podwire/cni
leases=/var/lib/cni/networks/pods

netns=$(sed -nE 's|.*"sandbox":"([^"]+)".*|\1|p' "/var/lib/cni/results/pods-$pod-eth0")
ctr --namespace k8s.io tasks kill --signal KILL "$pod"
# containerd 2 removes it itself.
while ctr --namespace k8s.io tasks ls | grep -q "^$pod "; do
  ctr --namespace k8s.io tasks rm "$pod" || sleep 1
done
ctr --namespace k8s.io containers rm "$pod"
# containerd 2 keeps sandboxes apart.
if ctr --namespace k8s.io sandboxes list 2>/dev/null | grep -q "$pod"; then ctr --namespace k8s.io sandboxes rm --force "$pod"; fi
umount "$netns"
rm "$netns"

for netns in job lost blank; do ip netns delete "$netns"; done
rm "$cache"/*/pods-lost-eth0
: >"$cache/results/pods-blank-eth0"
: >"$leases/10.88.0.200"
printf old >"$leases/10.88.0.201"
ip link add stray0 type veth peer name stray1
ip link set stray0 master pods0
