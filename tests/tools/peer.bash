# shellcheck shell=bash
# Compares this libcni with Go's. The source is Debian's package, and the toolchain comes from PyPI. Sourced by ./run.

go_suite=forky
go_package=golang-github-appc-cni-dev

# Prints the directory of the Go binaries. Its name depends on the sources and the toolchain.
go_build() {
  local key
  key=$({
    cat "$root/tests/requirements-peer.txt" "$root"/tests/peer/*/*.go "$root"/tests/bench/*/*.go
    printf '%s\n' "$go_suite" "$go_package"
  } | sha256sum | cut -c 1-12)
  printf '%s\n' "$cache/peer-$key"
}

# Fetches the source and the toolchain.
fetch_peer() {
  local requirements=$root/tests/requirements-peer.txt python
  lock
  [ -d "$cache/go-cni-$go_suite" ] || unpack_packages "$go_suite" "$cache/go-cni-$go_suite" "$go_package"
  if ! cmp -s "$requirements" "$cache/go/.complete"; then
    say 'Fetching a Go toolchain'
    python=$(choose_python)
    rm -rf "$cache/go"
    "$python" -m venv "$cache/go"
    "$cache/go/bin/python" -m pip install -qq --disable-pip-version-check --requirement "$requirements"
    cp "$requirements" "$cache/go/.complete"
  fi
  unlock
}

# Builds the driver, the recording plugin and the peer of the benchmarks, unless they exist.
build_peer() {
  local build sources
  build=$(go_build)
  lock
  if [ ! -e "$build/.complete" ]; then
    rm -rf "$build"
    for sources in peer/driver peer/recorder bench/calls; do
      (
        cd "$root/tests/$sources"
        export GO111MODULE=off GOPATH=$cache/go-cni-$go_suite/usr/share/gocode GOCACHE=$cache/go-build
        export GOFLAGS=-trimpath GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0 GOENV=off
        "$cache/go/bin/go" vet .
        "$cache/go/bin/go" build -o "$build/${sources#*/}" .
      )
    done
    touch "$build/.complete"
  fi
  unlock
}

# compare_with_go PYTHON [OPTION...]
compare_with_go() {
  local build python=$1
  build=$(go_build)
  PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/peer/peer.py" "$build/driver" "$build/recorder" "${@:2}"
}

# Tests interoperation with real plugins: interoperate PYTHON
interoperate() {
  local build
  build=$(go_build)
  PYTHONDONTWRITEBYTECODE=1 "$root/tests/private.sh" \
    "$1" "$root/tests/peer/interop.py" "$build/driver" "$(plugins_of bookworm)" "$(plugins_of forky)"
}

# Tests whether the comparison finds planted bugs: plant_bugs PYTHON
plant_bugs() {
  local build
  build=$(go_build)
  PYTHONDONTWRITEBYTECODE=1 "$1" "$root/tests/peer/mutants.py" "$build/driver" "$build/recorder"
}

# ./run peer [OPTION...]
peer() {
  local python
  install_packages "${packages_to_run[@]}"
  python=$(choose_python)
  fetch_peer
  build_peer
  compare_with_go "$python" "$@"
  # If only some cases are requested, skip the rest.
  case " $* " in *' --case '* | *' --category '* | *' --help '*) return ;; esac
  plant_bugs "$python"
  fetch_plugins bookworm forky
  interoperate "$python"
}

# --- a part of ./run test: a short comparison, of the snapshot

peer_checks() {
  start "libcni and Go's, the same commands" run_peer_cases
  start "libcni and Go's, planted bugs" run_planted_bugs
  start "libcni and Go's, interoperation" run_interoperation
}

# Reports why there is nothing to compare with, if so. Fetches in a separate process, because bash ignores set -e in conditions.
peer_is_there() {
  fetch_peer &
  wait $! || {
    skipped "no source of Go's libcni or no Go toolchain available"
    return 1
  }
}

run_peer_cases() {
  local root=$snapshot cases=104
  peer_is_there || return 0
  build_peer
  compare_with_go python --cases "$cases"
  passed "$cases"
}

run_planted_bugs() {
  local root=$snapshot
  peer_is_there || return 0
  build_peer
  plant_bugs python
}

run_interoperation() {
  local root=$snapshot
  peer_is_there || return 0
  build_peer
  fetch_plugins bookworm forky
  interoperate "$(command -v python)"
}
