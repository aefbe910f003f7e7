#!/usr/bin/env bash
# Hosts that are roots with an SSH server on loopback; to be sourced inside tests/private.sh.
#
#   unpack_hosts ARCHIVE DIRECTORY        the Debian system in ARCHIVE is what all hosts start with
#   start_host DIRECTORY NUMBER KEY       host NUMBER answers on port 22000 + NUMBER, for the owner of KEY.pub; its root is
#                                         /run/hosts/rootNUMBER
#   host_variables KEY                    the variables of all hosts, for an inventory
#   host_line NUMBER                      the line of a host, named hostNUMBER
#   site_variables ARCHIVE                the variables of a site with one network, and plugins in ARCHIVE, for group_vars

unpack_hosts() {
  mkdir -p /run/hosts
  mount -t tmpfs podwire-hosts /run/hosts
  mkdir -p "$2"
  tar --extract --file "$1" --directory "$2" --exclude './dev/*'
}

start_host() {
  local root=/run/hosts/root$2 path
  mkdir -p "/run/hosts/upper$2" "/run/hosts/work$2" "$root"
  mount -t overlay -o "lowerdir=$1,upperdir=/run/hosts/upper$2,workdir=/run/hosts/work$2" podwire-host "$root"
  for path in dev proc sys; do mount --rbind "/$path" "$root/$path"; done
  mkdir -p "$root/run/sshd" "$root/root/.ssh"
  install -m 0600 "$3.pub" "$root/root/.ssh/authorized_keys"
  chroot "$root" ssh-keygen -q -A
  chroot "$root" /usr/sbin/sshd -o ListenAddress=127.0.0.1 -o "Port=$((22000 + $2))" -o PidFile=none -o UsePAM=no \
    -o PermitRootLogin=prohibit-password -o MaxStartups=200
}

host_variables() {
  printf '    ansible_host: 127.0.0.1\n    ansible_user: root\n    ansible_ssh_private_key_file: %s\n' "$1"
  printf '    ansible_ssh_common_args: -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR\n'
}

host_line() {
  printf '    host%d: {ansible_port: %d, ansible_python_interpreter: /usr/bin/python3}\n' "$1" "$((22000 + $1))"
}

site_variables() {
  printf 'cni_plugins_src: "%s"\n' "$1"
  cat <<'END'
cni_plugins_names: [bridge, host-local, loopback, portmap]
cni_networks:
  - name: apps
    conflist:
      cniVersion: "1.0.0"
      plugins:
        - {type: bridge, bridge: apps0, mtu: 1400, ipam: {type: host-local, ranges: [[{subnet: 10.88.0.0/24}]]}}
        - {type: portmap, capabilities: {portMappings: true}}
END
}
