# shellcheck shell=bash
# Provides the real CNI plugins of two generations, and container runtimes that call plugins. They are unpacked from Debian's packages
# and not installed. Sourced by ./run.

plugin_package=containernetworking-plugins

# containerd, and the last podman with CNI in Debian, with the libraries that a small system lacks.
runtime_suite=bookworm
runtime_packages=(
  containerd podman crun conmon busybox-static golang-github-containers-common golang-github-containers-image
  libassuan0 libdevmapper1.02.1 libglib2.0-0 libgpg-error0 libgpgme11 libseccomp2 libsubid4 libyajl2
)

# Prints the directory of the plugins of SUITE. fetch_plugins creates it.
plugins_of() {
  printf '%s\n' "$cache/plugins/$1/usr/lib/cni"
}

# Prints the mirror of Debian's main archive that this machine is configured for.
debian_mirror() {
  local code
  code=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Identifier: Packages' |
    awk -v release="$code" '$2 == release { print $1; exit }'
}

# Prints the directory of the runtimes. fetch_runtimes creates it.
runtimes() {
  # The name of the directory depends on the list, so that another list is fetched again.
  printf '%s\n' "$cache/runtimes-$(printf '%s\n' "$runtime_suite" "${runtime_packages[@]}" | sha256sum | cut -c 1-12)"
}

# Fetches the plugins of the given Debian suites.
fetch_plugins() {
  local suite
  lock
  for suite in "$@"; do
    [ -d "$(plugins_of "$suite")" ] || unpack_packages "$suite" "$cache/plugins/$suite" "$plugin_package"
  done
  unlock
}

fetch_runtimes() {
  lock
  [ -d "$(runtimes)" ] || unpack_packages "$runtime_suite" "$(runtimes)" "${runtime_packages[@]}"
  unlock
}

# Prints the directory of the containerd of SUITE. fetch_containerds creates it.
containerd_of() {
  if [ "$1" = "$runtime_suite" ]; then runtimes; else printf '%s\n' "$cache/containerd/$1"; fi
}

# Fetches the containerds of the given Debian suites.
fetch_containerds() {
  local suite
  fetch_runtimes
  lock
  for suite in "$@"; do
    [ -d "$(containerd_of "$suite")" ] || unpack_packages "$suite" "$(containerd_of "$suite")" containerd
  done
  unlock
}

# Runs tests/runtimes of COLLECTION with the containerds of some suites: ask_containerds COLLECTION "SUITE..." OPTION...
ask_containerds() {
  local collection=$1 suite suites options=()
  read -ra suites <<<"$2"
  shift 2
  for suite in "${suites[@]}"; do
    options+=(--containerd "$(containerd_of "$suite")")
  done
  "$root/tests/private.sh" python "$collection/tests/runtimes" \
    --plugins "$(plugins_of bookworm)" --packages "$(runtimes)" "${options[@]}" "$@"
}

# Unpacks packages of a Debian suite, each verified by apt with Debian's keys: unpack_packages SUITE DIRECTORY PACKAGE...
# apt works in a directory of its own. The sources, lists and packages of the machine do not change.
unpack_packages() {
  local suite=$1 directory=$2 apt=$cache/apt-$1 mirror keyring package
  shift 2
  say "Fetching $* of $suite"
  command -v apt-get >/dev/null || die "$1 comes from Debian's archive and needs apt-get, which this machine does not have"
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || die "this machine's apt sources name no mirror of Debian's main archive; see: apt-get indextargets"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  rm -rf "$apt"
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/unpacked"
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$suite" >"$apt/sources.list"
  local options=(
    -qq
    -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null
    -o "Dir::State=$apt" -o Dir::State::Status=/dev/null -o "Dir::Cache=$apt"
    -o Acquire::Languages=none -o APT::Sandbox::User=
  )
  apt-get "${options[@]}" update
  (cd "$apt" && apt-get "${options[@]}" download "$@")
  for package in "$apt"/*.deb; do
    dpkg-deb --extract "$package" "$apt/unpacked"
  done
  mkdir -p "$(dirname "$directory")"
  rm -rf "$directory"
  mv "$apt/unpacked" "$directory"
  rm -rf "$apt"
}
