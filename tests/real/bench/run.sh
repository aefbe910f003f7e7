#!/usr/bin/env bash
# The benchmarks; called inside tests/private.sh by `./run bench`: run.sh DIRECTORY_OF_PLUGINS_1.9.1 DIRECTORY_OF_WHAT_IS_BUILT_IN_GO
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
BENCH_DIR=$(mktemp -d /run/podwire-bench.XXXXXX)
export BENCH_DIR BENCH_PLUGINS=$1 BENCH_GO=$2
export ANSIBLE_PIPELINING=true
export ANSIBLE_CALLBACK_PLUGINS=$here/callback_plugins ANSIBLE_CALLBACKS_ENABLED=durations
export ANSIBLE_DEPRECATION_WARNINGS=false ANSIBLE_LOCALHOST_WARNING=false

/usr/bin/python3 "$here/measure.py" "$BENCH_GO/calls" "$BENCH_DIR/libcni"
/usr/bin/python3 "$here/multinet.py" "$BENCH_PLUGINS" "$BENCH_DIR/multinet"
/usr/bin/python3 "$here/experiment.py" "$BENCH_PLUGINS" "$BENCH_DIR/experiment"
/usr/bin/python3 "$here/readiness.py" "$BENCH_PLUGINS" "$BENCH_DIR/readiness"
python3 "$here/payload.py" "$BENCH_DIR/payload"
/usr/bin/python3 "$here/own_plugins.py" "$BENCH_PLUGINS" "$BENCH_DIR/own_plugins"
if ! ansible-playbook -i "$here/inventory.yml" "$here/bench.yml" >"$BENCH_DIR/log" 2>&1; then
  cat "$BENCH_DIR/log"
  exit 1
fi
python3 "$here/table.py" "$BENCH_DIR"
