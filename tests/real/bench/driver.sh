#!/usr/bin/env bash
# Runs Go's libcni, a program for each verb and container, one after another: driver.sh VERB... CONTAINER...
set -euo pipefail

verbs=()
while [[ $1 == add || $1 == check || $1 == del ]]; do
  verbs+=("$1")
  shift
done
export CNI_PATH=/opt/cni/bin CNI_CACHE_DIR=$BENCH_DIR/go
begun=$EPOCHREALTIME
for verb in "${verbs[@]}"; do
  for container in "$@"; do
    CNI_CONTAINERID=$container "$BENCH_GO/driver" "$verb" bench0 "/run/netns/$container" >/dev/null
  done
done
# What it took, in seconds; both are numbers of microseconds once the point is gone.
microseconds=$((${EPOCHREALTIME/[.,]/} - ${begun/[.,]/}))
printf '%d.%06d\n' $((microseconds / 1000000)) $((microseconds % 1000000))
