# shellcheck shell=bash
# What has to be on the machine before anything runs: packages, a virtual environment, plugin binaries. Everything but the
# distribution's packages lies below $cache. Sourced by ./run, which sets $root.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/podwire-cni

# The collection where Ansible looks for it: a link, so that an edit is seen at once.
linked=$cache/linked
linked_collection=$linked/ansible_collections/podwire/cni

# python3-pyroute2 is the managed host's; the managed host of tests and demo is this machine, through /usr/bin/python3.
packages_to_run=(ca-certificates curl iproute2 iptables iputils-ping nftables python3 python3-pyroute2 python3-venv)
packages_to_test=(
  "${packages_to_run[@]}" debian-archive-keyring e2fsprogs git mmdebstrap openssh-client openssl procps shellcheck xz-utils
)

# The Pythons that a managed host may have.
host_pythons=(3.8 3.9 3.10 3.11 3.12 3.13 3.14)
user_home=$HOME

say() { printf '%s\n' "$*"; }

die() {
  printf './run: %s\n' "$*" >&2
  exit 1
}

# Between lock and unlock, no other ./run changes the cache.
lock() {
  mkdir -p "$cache"
  exec {cache_lock}>"$cache/lock"
  flock "$cache_lock"
}

unlock() { exec {cache_lock}>&-; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -- "$@"; fi
}

install_packages() {
  local package missing=()
  if ! command -v apt-get >/dev/null; then
    say "No apt-get here; these have to be installed, under whatever name: $*"
    return
  fi
  for package in "$@"; do
    dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing the packages ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
}

# Prints the interpreter of the virtual environments: $PYTHON, else the first python3 of PATH, else the distribution's; not older than
# the oldest supported ansible-core wants it, and able to make a virtual environment.
choose_python() {
  local candidate
  for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
    "$candidate" -c '
import sys
if sys.version_info < (3, 11):
    sys.exit(1)
import ensurepip, venv
print(sys.executable)
' 2>/dev/null && return
  done
  die "no Python >= 3.11 with venv and ensurepip found (tried ${PYTHON:-python3 of PATH, /usr/bin/python3}); name one: PYTHON=/path/to/python3 ./run ..."
}

# Prints what changes when an environment of these requirements has to be made anew.
environment_key() {
  local python=$1
  {
    "$python" -c 'import sys; print(sys.executable, sys.version)'
    cat "$root"/tests/requirements*.txt "$root"/tests/{unit,integration}/requirements.txt "$root/meta/ee-requirements.txt"
  } | sha256sum | cut -c 1-12
}

# Makes the virtual environment NAME from REQUIREMENTS, if it is not there, and puts it first in PATH.
use_environment() {
  local name=$1 requirements=$2 python directory
  python=$(choose_python)
  directory=$cache/$name-$(environment_key "$python")
  lock
  if [ ! -e "$directory/.complete" ]; then
    say "Making a virtual environment for $name with $("$python" -V)"
    rm -rf "$directory"
    "$python" -m venv "$directory"
    "$directory/bin/python" -m pip install -qq --disable-pip-version-check --requirement "$requirements"
    touch "$directory/.complete"
  fi
  unlock
  export VIRTUAL_ENV=$directory PATH=$directory/bin:$PATH
  unset PYTHONPATH PYTHONHOME
}

# Compiles the collection in DIRECTORY once for all who import it from there and may write nothing there: compile_collection DIRECTORY
compile_collection() { python -m compileall -q "$1/plugins"; }

link_collection() {
  mkdir -p "$(dirname "$linked_collection")"
  ln -sfn "$root" "$linked_collection"
  compile_collection "$root"
  export ANSIBLE_COLLECTIONS_PATH=$linked
}

# Ansible writes to the home directory; the user's own is not ours to fill.
use_private_home() {
  export HOME=$cache/home
  mkdir -p "$HOME/.config"
  [ ! -e "$user_home/.config/pip" ] || ln -sfn "$user_home/.config/pip" "$HOME/.config/pip"
}

# Prints the path of Python VERSION; fails when this machine has none. pyenv's shims are asked, too, but they run only the versions
# that are switched on, so pyenv's own directory is looked into.
find_python() {
  local version=$1 candidate
  for candidate in $(type -ap "python$version") "${PYENV_ROOT:-$user_home/.pyenv}/versions/$version".*/bin/"python$version"; do
    "$candidate" -c 'import sys; print(sys.executable)' 2>/dev/null && return
  done
  return 1
}

# Prints the newest Python of this machine that is newer than the environment's, which PATH begins with.
newer_python() {
  local version newest=
  for version in "${host_pythons[@]}"; do
    newest=$(find_python "$version" || say "$newest")
  done
  [ -z "$newest" ] || [ "$(minor_of "$newest")" -le "$(minor_of python)" ] || PYTHON=$newest choose_python
}

minor_of() { "$1" -c 'import sys; print(sys.version_info.minor)'; }

# Puts the directories of all Pythons behind the virtual environment in PATH, for ansible-test, which looks there for them and
# must not meet a shim.
use_pythons() {
  local version python directories=
  for version in "${host_pythons[@]}"; do
    python=$(find_python "$version") || continue
    directories+=:$(dirname "$python")
  done
  export PATH=$VIRTUAL_ENV/bin$directories:$PATH
}
