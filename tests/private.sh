#!/usr/bin/env bash
# Runs a command as root where it can change nothing outside: in mount, network, pid, ipc and uts namespaces of its own.
#
#   tests/private.sh COMMAND [ARGUMENT...]
#
# Inside, loopback is up and no other interface exists. /etc, /opt, /var/lib and /run are overlays whose changes are kept in
# memory and end with the command; what an earlier installation left of CNI is not visible in them. HOME is in there, too.
# Every process that the command leaves behind is killed when it ends, and all of them when this script is killed.
set -euo pipefail

overlaid=(etc opt var/lib run)
# What a host that has never seen CNI does not have.
absent=(/etc/cni /opt/cni /var/lib/cni /var/lib/podwire /run/cni /run/netns /run/podwire-cni)

die() {
  printf 'tests/private.sh: %s\n' "$*" >&2
  exit 125
}

# Makes this mount namespace deaf and mute towards the one it was copied from. In a chroot, "/" is no mount point and cannot be
# told so; entering our own mount namespace takes nsenter to the real root, where it can.
isolate_mounts() {
  nsenter --mount=/proc/self/ns/mnt mount --make-rprivate /
}

# `ip netns exec` and others want "/" to be a mount point, which it is not in a chroot. There, this script starts again in a bind mount of it.
make_root_a_mount_point() {
  mountpoint -q / && return
  mount --rbind / /mnt
  exec chroot /mnt env --chdir="$PWD" "$0" --inside "$@"
}

overlay_directories() {
  local dir
  mount -t tmpfs -o mode=0700 podwire-private /mnt
  for dir in "${overlaid[@]}"; do
    mkdir -p "/mnt/$dir/upper" "/mnt/$dir/work"
    chmod --reference="/$dir" "/mnt/$dir/upper"
    mount -t overlay -o "lowerdir=/$dir,upperdir=/mnt/$dir/upper,workdir=/mnt/$dir/work" podwire-private "/$dir"
  done
  umount --lazy /mnt
}

remove_traces_of_cni() {
  local path
  for path in "${absent[@]}"; do
    [ -e "$path" ] || continue
    [ "$(stat -f -c %T "$path")" = overlayfs ] || die "$path is not in an overlay; it was not removed"
    rm -rf "$path"
  done
}

private_run() {
  mkdir -p /run/netns /run/home
  mount -t tmpfs -o mode=0755 podwire-private /run/netns
  mount --make-shared /run/netns
  # podman keeps its locks there, and a test removes them.
  [ ! -d /dev/shm ] || mount -t tmpfs -o mode=1777 podwire-private /dev/shm
}

inside() {
  isolate_mounts
  make_root_a_mount_point "$@"
  mount -t proc proc /proc
  mount -t sysfs sysfs /sys
  overlay_directories
  remove_traces_of_cni
  private_run
  hostname podwire-private
  ip link set lo up
  # Whoever called sudo, this is root here: Ansible would otherwise use sudo again, which drops variables.
  export HOME=/run/home USER=root LOGNAME=root
  "$@"
}

as_root() {
  local environment
  mapfile -d '' environment < <(env --null)
  exec sudo -- env "${environment[@]}" "$0" "$@"
}

outside() {
  [ $# -gt 0 ] || die "usage: tests/private.sh COMMAND [ARGUMENT...]"
  [ "$(id -u)" -eq 0 ] || as_root "$@"
  # The input is named because a command in the background gets none otherwise.
  setpriv --pdeathsig KILL unshare --mount --propagation unchanged --net --pid --ipc --uts --kill-child \
    -- "$0" --inside "$@" <&0 &
  trap 'kill -KILL $! 2>/dev/null' INT TERM HUP
  wait $!
}

if [ "${1-}" = --inside ] && [ $$ -eq 1 ]; then
  shift
  inside "$@"
else
  outside "$@"
fi
