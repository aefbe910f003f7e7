#!/usr/bin/env bash
# Starts a host of Debian 13 in namespaces of its own, and keeps it until its input ends: host.sh NAME DIRECTORY BASE DAEMON...
#
# Its root is a layer over BASE, less the packages in WITHOUT. DIRECTORY gets `namespace`, by which the caller finds its processes. The caller gives it an uplink.
set -euo pipefail

name=$1 directory=$2 base=$3
root=$directory/root

mkdir -p "$directory/upper" "$directory/work" "$root"
mount --make-rprivate /
mount -t overlay -o "lowerdir=$base,upperdir=$directory/upper,workdir=$directory/work" podwire-host "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=0755 podwire-host "$root/run"
mkdir -m 1777 "$root/run/lock"
# Where Ansible puts what it sends.
mkdir "$root/run/sent"
mount --bind /run/sent "$root/run/sent"
hostname "$name"
cd "$root"
pivot_root . mnt
umount --lazy /mnt
ip link set lo up
readlink /proc/self/ns/pid | tr -dc 0-9 >/run/namespace
mkdir -p /var/log
# shellcheck disable=SC2086 # there may be several packages
[ -z "${WITHOUT-}" ] || dpkg --purge --force-depends $WITHOUT >/var/log/without 2>&1
for daemon in "${@:4}"; do
  "$daemon" >"/var/log/$daemon.log" 2>&1 </dev/null &
done
exec cat
