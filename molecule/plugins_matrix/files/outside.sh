#!/bin/sh
# What is outside of the machine: a namespace at the other ends of four cables. Each end of the machine's is for another plugin.
set -e

ip netns add outside
for cable in up0 up1 spare0 wan0; do
  ip link add "$cable" type veth peer name "to-$cable" netns outside
  ip link set "$cable" up
  ip -n outside link set "to-$cable" up
done
ip -n outside link set lo up

# For macvlan and dhcp, and with a tag of 802.1Q for vlan.
ip -n outside address add 10.70.0.1/24 dev to-up0
ip -n outside link add link to-up0 name tagged type vlan id 30
ip -n outside address add 10.73.0.1/24 dev tagged
ip -n outside link set tagged up
# For ipvlan.
ip -n outside address add 10.71.0.1/24 dev to-up1
# For host-device, and an address behind it for sbr.
ip -n outside address add 10.72.0.1/24 dev to-spare0
ip -n outside address add 10.99.0.1/32 dev lo
# For what the machine masquerades and maps. Outside knows no way to the containers.
ip address add 10.74.0.1/24 dev wan0
ip -n outside address add 10.74.0.2/24 dev to-wan0

systemd-run --quiet --unit=outside-dhcp --property=NetworkNamespacePath=/run/netns/outside \
  dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= --user=root --port=0 --interface=to-up0 --no-ping \
  --dhcp-range=10.70.0.100,10.70.0.150,1h --dhcp-leasefile=/run/outside.leases
