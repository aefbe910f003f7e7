#!/usr/bin/env bash
# Makes a minimal Debian and runs commands in it, in mount, pid, ipc and uts namespaces of its own, with the network of this
# machine. Called as root by tests/tools/fresh.py.
#
#   tests/fresh.sh make DIRECTORY USER SUITE [MIRROR]
#   tests/fresh.sh enter DIRECTORY USER COMMAND [ARGUMENT...]
#
# `make` reads from DIRECTORY: project.git; apt.conf; settings, whose files are copied to the new system. It writes the system
# to DIRECTORY/root, with a user who may use sudo, unless USER is root. `enter` runs the command in that user's clone.
# All processes end with the command, or when this script is killed.
set -euo pipefail

minimal=ca-certificates,git,sudo

home_of() { [ "$1" = root ] && echo /root || echo "/home/$1"; }

make() {
  local directory=$1 user=$2 root=$1/root home
  home=$(home_of "$user")
  umask 022
  # The credentials are those that a mirror may want. The expression is for mmdebstrap's shell.
  # shellcheck disable=SC2016
  mmdebstrap --variant=minbase --include="$minimal" --aptopt="$directory/apt.conf" \
    --setup-hook='for file in /etc/apt/auth.conf /etc/apt/auth.conf.d; do [ ! -e $file ] || cp -r $file "$1/etc/apt/"; done' \
    "$3" "$root" "${@:4}"
  cp -r --no-preserve=mode "$directory/settings/." "$root"
  chroot "$root" update-ca-certificates >/dev/null
  if [ "$user" != root ]; then
    chroot "$root" useradd --create-home --shell /bin/bash "$user"
    echo "$user ALL=(ALL) NOPASSWD: ALL" >"$root/etc/sudoers.d/$user"
  fi
  mv "$directory/project.git" "$root/srv"
  chroot "$root" chown -R "$user:" /srv/project.git
  chroot --userspec="$user:$user" "$root" env HOME="$home" git clone --quiet /srv/project.git "$home/podwire.cni"
}

enter() {
  local root=$1/root user=$2 home path=/usr/local/bin:/usr/bin:/bin
  home=$(home_of "$user")
  [ "$user" != root ] || path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  hostname fresh
  mount --bind "$root" "$root"
  # The file system that it is on may forbid sudo.
  mount -o remount,bind,exec,suid,dev "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs -o mode=1777 podwire-fresh "$root/dev/shm"
  mount -t tmpfs -o mode=0755 podwire-fresh "$root/run"
  mkdir -m 1777 "$root/run/lock"
  cd "$root"
  pivot_root . mnt
  cd "$home/podwire.cni"
  umount --lazy /mnt
  setpriv --reuid "$user" --regid "$user" --init-groups \
    env HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash PATH="$path" "${@:3}"
}

outside() {
  setpriv --pdeathsig KILL unshare --mount --pid --ipc --uts --kill-child -- "$0" --inside "$@" <&0 &
  trap 'kill -KILL $! 2>/dev/null' INT TERM HUP
  wait $!
}

if [ "${1-}" = --inside ] && [ $$ -eq 1 ]; then
  mount -t proc proc /proc
  "${@:2}"
else
  outside "$@"
fi
