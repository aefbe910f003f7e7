# shellcheck shell=sh
# What of containers' networks a machine shows: files, interfaces, namespaces, rules. Read by the playbooks, not run from here.
find /etc/cni /opt/cni /var/lib/cni /var/lib/podwire ! -type d 2>/dev/null | sed 's/^/file /' | sort
# A veth that a plugin gave any name goes by that of its other end.
ip -o link show | sed -E 's/^[0-9]+: veth[0-9a-f]{8}(@[^:]+).*/link veth\1/; s/^[0-9]+: ([^:@]+).*/link \1/' | sort
ip netns list | sed -E 's/^([^ ]+).*/netns \1/' | sort
for command in iptables-save ip6tables-save; do
  "$command" 2>/dev/null | sed -nE "s/^-A/$command -A/p"
done
# The tables of nftables that are not those of the commands above. A priority has a number or a name, as nft likes.
nft list tables | grep -vE '^table ip6? (filter|mangle|nat|raw|security)$' | while read -r _ family table; do
  nft list table "$family" "$table" | sed -nE "s/priority -100;/priority dstnat;/; s/^\t\t(.*)/nft $family $table \1/p"
done
