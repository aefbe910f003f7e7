# shellcheck shell=bash
# The comparison with Go's libcni: its source is Debian's package, its toolchain comes from PyPI. Sourced by ./run.

go_suite=forky
go_package=golang-github-appc-cni-dev

# Prints the directory of what is built in Go, NAME.of its sources, and of Go itself: another of either is built anew.
go_build() {
  local key
  key=$({
    cat "$root/tests/requirements-peer.txt" "$root"/tests/peer/*/*.go "$root"/tests/bench/*/*.go
    printf '%s\n' "$go_suite" "$go_package"
  } | sha256sum | cut -c 1-12)
  printf '%s\n' "$cache/peer-$key"
}

# Builds the driver, the recording plugin and what the benchmarks compare with, unless they are there.
build_peer() {
  local build toolchain=$cache/go sources
  build=$(go_build)
  lock
  if [ ! -e "$build/.complete" ]; then
    [ -d "$cache/go-cni-$go_suite" ] || unpack_packages "$go_suite" "$cache/go-cni-$go_suite" "$go_package"
    fetch_go "$toolchain"
    rm -rf "$build"
    for sources in peer/driver peer/recorder bench/calls; do
      (
        cd "$root/tests/$sources"
        export GO111MODULE=off GOPATH=$cache/go-cni-$go_suite/usr/share/gocode GOCACHE=$cache/go-build
        export GOFLAGS=-trimpath GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0 GOENV=off
        "$toolchain/bin/go" vet .
        "$toolchain/bin/go" build -o "$build/${sources#*/}" .
      )
    done
    touch "$build/.complete"
  fi
  unlock
}

# Installs the Go toolchain in an environment of its own.
fetch_go() {
  local directory=$1 python
  if ! cmp -s "$root/tests/requirements-peer.txt" "$directory/.complete"; then
    python=$(choose_python)
    say "Fetching a Go toolchain"
    rm -rf "$directory"
    "$python" -m venv "$directory"
    "$directory/bin/python" -m pip install -qq --disable-pip-version-check --requirement "$root/tests/requirements-peer.txt"
    cp "$root/tests/requirements-peer.txt" "$directory/.complete"
  fi
}

# Runs the comparison with the options that are given: compare_with_go PYTHON [OPTION...]
compare_with_go() {
  local build python=$1
  shift
  build=$(go_build)
  PYTHONDONTWRITEBYTECODE=1 "$python" "$root/tests/peer/peer.py" "$build/driver" "$build/recorder" "$@"
}

# ./run peer [OPTION...]
peer() {
  local python
  python=$(choose_python)
  install_packages ca-certificates python3-venv
  build_peer
  compare_with_go "$python" "$@"
}
