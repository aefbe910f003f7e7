# shellcheck shell=bash
# The real CNI plugins of two generations, unpacked from Debian's packages and not installed. Sourced by ./run.

plugin_package=containernetworking-plugins

# Prints the directory of the plugins of SUITE; they are there after fetch_plugins.
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

# Fetches the plugins of the Debian suites that are given, each verified by apt with Debian's keys. apt works in a directory of
# its own; the machine's sources, lists and packages stay as they are.
fetch_plugins() {
  local suite
  lock
  for suite in "$@"; do
    [ -d "$(plugins_of "$suite")" ] || fetch_suite "$suite"
  done
  unlock
}

fetch_suite() {
  local suite=$1 apt=$cache/apt-$1 mirror keyring
  say "Fetching $plugin_package of $suite"
  command -v apt-get >/dev/null || die "the plugins come from Debian's archive, by apt-get, which is not here"
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
  (cd "$apt" && apt-get "${options[@]}" download "$plugin_package")
  dpkg-deb --extract "$apt"/"$plugin_package"_*.deb "$apt/unpacked"
  mkdir -p "$cache/plugins"
  rm -rf "$cache/plugins/$suite"
  mv "$apt/unpacked" "$cache/plugins/$suite"
  rm -rf "$apt"
}
