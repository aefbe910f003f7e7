# shellcheck shell=bash
# Installs what must be on the machine before anything runs: packages, a virtual environment, plugin binaries. Everything except the
# distribution's packages is below $cache. Sourced by ./run, which sets $root.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/podwire-cni

# The path where Ansible finds the collection. It is a link, so that edits take effect at once.
linked=$cache/linked
linked_collection=$linked/ansible_collections/podwire/cni

# python3-pyroute2 is for the managed host. In tests and in the demo, that is this machine, through /usr/bin/python3.
packages_to_run=(ca-certificates curl iproute2 iptables iputils-ping nftables python3 python3-pyroute2 python3-venv)
packages_to_test=(
  "${packages_to_run[@]}" debian-archive-keyring e2fsprogs git mmdebstrap openssh-client openssl procps shellcheck xz-utils
)

# The Python versions that a managed host may have.
host_pythons=(3.8 3.9 3.10 3.11 3.12 3.13 3.14)
user_home=$HOME

say() { printf '%s\n' "$*"; }

die() {
  printf './run: %s\n' "$*" >&2
  exit 1
}

# No other ./run changes the cache between lock and unlock.
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
    say "There is no apt-get. Install these packages yourself, under the names of your distribution: $*"
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

# Prints the interpreter for virtual environments: $PYTHON, else the first python3 in PATH, else that of the distribution. It must be
# new enough for the oldest supported ansible-core, and able to create a virtual environment.
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
  die "no Python >= 3.11 with venv and ensurepip found (tried ${PYTHON:-python3 in PATH, /usr/bin/python3}); set one: PYTHON=/path/to/python3 ./run ..."
}

# Prints a key that changes when an environment with these requirements must be created again.
environment_key() {
  local python=$1
  {
    "$python" -c 'import sys; print(sys.executable, sys.version)'
    cat "$root"/tests/requirements*.txt "$root"/tests/{unit,integration}/requirements.txt "$root/meta/ee-requirements.txt"
  } | sha256sum | cut -c 1-12
}

# Creates the virtual environment NAME from REQUIREMENTS, if it does not exist, and puts it first in PATH.
use_environment() {
  local name=$1 requirements=$2 python directory
  python=$(choose_python)
  directory=$cache/$name-$(environment_key "$python")
  lock
  if [ ! -e "$directory/.complete" ]; then
    say "Creating a virtual environment for $name with $("$python" -V)"
    rm -rf "$directory"
    "$python" -m venv "$directory"
    "$directory/bin/python" -m pip install -qq --disable-pip-version-check --requirement "$requirements"
    touch "$directory/.complete"
  fi
  unlock
  export VIRTUAL_ENV=$directory PATH=$directory/bin:$PATH
  unset PYTHONPATH PYTHONHOME
}

# Compiles the collection once, for programs that import it but cannot write to its directory: compile_collection DIRECTORY
compile_collection() { python -m compileall -q "$1/plugins"; }

link_collection() {
  mkdir -p "$(dirname "$linked_collection")"
  ln -sfn "$root" "$linked_collection"
  compile_collection "$root"
  export ANSIBLE_COLLECTIONS_PATH=$linked
}

# Ansible writes to the home directory. This keeps it out of the user's own.
use_private_home() {
  export HOME=$cache/home
  mkdir -p "$HOME/.config"
  [ ! -e "$user_home/.config/pip" ] || ln -sfn "$user_home/.config/pip" "$HOME/.config/pip"
}

# Prints the path of Python VERSION, and fails if this machine has none. Tries the shims of pyenv, too. They run only the versions that
# are switched on, so this also searches the directory of pyenv.
find_python() {
  local version=$1 candidate
  for candidate in $(type -ap "python$version") "${PYENV_ROOT:-$user_home/.pyenv}/versions/$version".*/bin/"python$version"; do
    "$candidate" -c 'import sys; print(sys.executable)' 2>/dev/null && return
  done
  return 1
}

# Prints the newest Python of this machine if it is newer than that of the environment, which is first in PATH.
newer_python() {
  local version newest=
  for version in "${host_pythons[@]}"; do
    newest=$(find_python "$version" || say "$newest")
  done
  [ -z "$newest" ] || [ "$(minor_of "$newest")" -le "$(minor_of python)" ] || PYTHON=$newest choose_python
}

minor_of() { "$1" -c 'import sys; print(sys.version_info.minor)'; }

# Puts the directories of all Pythons after the virtual environment in PATH. ansible-test searches for them there, and must not find a
# shim.
use_pythons() {
  local version python directories=
  for version in "${host_pythons[@]}"; do
    python=$(find_python "$version") || continue
    directories+=:$(dirname "$python")
  done
  export PATH=$VIRTUAL_ENV/bin$directories:$PATH
}
